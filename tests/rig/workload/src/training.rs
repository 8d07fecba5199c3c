//! A training loop on the simulated GPU: each step loads a batch, launches the kernels of a small
//! transformer as PyTorch names them, and reads the loss. Loading is what is slow: the GPU waits
//! for it.

use std::ffi::CStr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::simulated_gpu::{Stream, Work};
use super::{STOP, count_ended, rest, say};

/// Layers of the model.
const LAYERS: u32 = 4;
/// How long a batch is loaded.
const LOAD_DURATION: Duration = Duration::from_millis(6);
/// What a batch takes, and how long it is copied: 25 GB in a second.
const BATCH_BYTES: u64 = 6 << 20;
const BATCH_DURATION: Duration = Duration::from_micros(252);
/// What the loss takes, and how long it is copied.
const LOSS_BYTES: u64 = 4;
const LOSS_DURATION: Duration = Duration::from_micros(2);
/// What the host does behind the launches for a layer.
const LAYER_DELAY: Duration = Duration::from_micros(250);
/// How far lengths are from the usual one at the most.
const SPREAD: f64 = 0.05;
/// Steps from one line of the log to the next.
const STEPS_PER_LINE: u32 = 100;
/// NVTX ranges of a step.
const RANGES: u64 = 6;

/// A kernel: its name, its length in microseconds, its blocks.
type Kernel = (&'static CStr, u64, u32);

const LAYER_NORM: &CStr =
    c"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float)";
const LAYER_NORM_GRADIENT: &CStr =
    c"void at::native::(anonymous namespace)::layer_norm_grad_input_kernel<float, float>(int, float)";
const SOFTMAX: &CStr = c"void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, float, float, 10>(int, int)";
const SOFTMAX_GRADIENT: &CStr =
    c"void (anonymous namespace)::softmax_warp_backward<c10::BFloat16, float, float, 10>(int, int)";
const GELU: &CStr = c"void at::native::vectorized_elementwise_kernel<8, at::native::GeluCUDAKernelImpl>(int)";
const GELU_GRADIENT: &CStr =
    c"void at::native::vectorized_elementwise_kernel<8, at::native::GeluBackwardCUDAKernelImpl>(int)";
const ADAM: &CStr =
    c"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4> >(int)";
const GEMM_LARGE: &CStr = c"nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNN";
const GEMM_SMALL: &CStr = c"nvjet_tst_128x128_64x6_2x1_v_bz_TNT";
const GEMM_WEIGHTS: &CStr = c"nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NTN";

/// What a layer launches forwards.
const FORWARD: [Kernel; 6] = [
    (LAYER_NORM, 61, 1056),
    (GEMM_SMALL, 248, 528),
    (SOFTMAX, 118, 2112),
    (GEMM_SMALL, 152, 528),
    (GEMM_LARGE, 384, 792),
    (GELU, 87, 1056),
];
/// What a layer launches backwards.
const BACKWARD: [Kernel; 6] = [
    (GELU_GRADIENT, 106, 1056),
    (GEMM_LARGE, 402, 792),
    (GEMM_WEIGHTS, 431, 792),
    (SOFTMAX_GRADIENT, 139, 2112),
    (GEMM_SMALL, 297, 528),
    (LAYER_NORM_GRADIENT, 128, 1056),
];
/// What the optimizer launches for the weights of a layer.
const OPTIMIZER: [Kernel; 1] = [(ADAM, 346, 1320)];

/// The loop of one thread.
#[derive(Debug)]
pub(crate) struct Training {
    stream: Stream,
    random: fastrand::Rng,
    step: u32,
}

impl Training {
    /// A loop whose lengths a seed tells.
    pub(crate) fn new(stream: Stream, seed: u64) -> Self {
        Self {
            stream,
            random: fastrand::Rng::with_seed(seed),
            step: 0,
        }
    }

    /// Trains until the program is to end.
    pub(crate) fn run(mut self, thread: u32) -> anyhow::Result<()> {
        nvtx::name_thread!("trainer-{thread}");
        while !STOP.load(Ordering::Relaxed) {
            self.train();
            count_ended(RANGES);
            self.step = self.step.saturating_add(1);
            if self.step.is_multiple_of(STEPS_PER_LINE) {
                let (step, loss) = (self.step, self.loss());
                say(&format!("simulated GPU: step {step}, loss {loss:.3}"))?;
            }
        }
        Ok(())
    }

    /// One step.
    fn train(&mut self) {
        nvtx::range_push!("step");
        nvtx::range_push!("load batch");
        rest(self.about(LOAD_DURATION));
        nvtx::range_pop!();
        let batch = self.about(BATCH_DURATION);
        self.stream.launch(Work::CopyToDevice(BATCH_BYTES), batch);
        nvtx::range_push!("forward");
        self.launch(&FORWARD);
        nvtx::range_pop!();
        nvtx::range_push!("backward");
        self.launch(&BACKWARD);
        nvtx::range_pop!();
        nvtx::range_push!("optimizer");
        self.launch(&OPTIMIZER);
        nvtx::range_pop!();
        nvtx::range_push!("read loss");
        self.stream.launch(Work::CopyToHost(LOSS_BYTES), LOSS_DURATION);
        self.stream.synchronize();
        nvtx::range_pop!();
        nvtx::range_pop!();
    }

    /// Launches the kernels for each layer.
    fn launch(&mut self, kernels: &[Kernel]) {
        for _ in 0..LAYERS {
            for &(name, micros, blocks) in kernels {
                let length = self.about(Duration::from_micros(micros));
                self.stream.launch(Work::Kernel(name, blocks), length);
            }
            rest(LAYER_DELAY);
        }
    }

    /// A length near the usual one.
    fn about(&mut self, usual: Duration) -> Duration {
        usual.mul_f64(1.0 + SPREAD * (2.0 * self.random.f64() - 1.0))
    }

    /// What stands for a loss: it falls.
    fn loss(&mut self) -> f64 {
        2.0 + 9.0 / (1.0 + f64::from(self.step) / 200.0) + 0.05 * self.random.f64()
    }
}
