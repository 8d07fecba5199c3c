//! Matrix multiplications that do not use tensor cores.

use crate::advice::wording::{share, short, time};
use crate::advice::{About, Area, Confidence, Evidence, Facts, Found, Rule, Threshold, Verdict};
use crate::model::{Category, index};
use crate::page::{Cell, Unit};

/// Fires where kernels of matrix multiplication or convolution work in full precision on a GPU that has tensor cores.
#[derive(Debug)]
pub(super) struct TensorCores;

const SHARE: Threshold = Threshold::percent(
    "time of such kernels, of the window",
    10,
    "XProf: tensor cores idle for 10 % of the step",
);
const CAPABILITY: Threshold = Threshold::count(
    "major compute capability",
    7,
    "NVIDIA: tensor cores are there from Volta on (7.0)",
);

static ABOUT: About = About {
    id: "tensor-cores",
    title: "Tensor cores are not used",
    area: Area::Kernels,
    needs: &[&[Category::CudaKernel]],
    of_gpu_work: true,
    thresholds: &[SHARE, CAPABILITY],
};

/// What names of cuBLAS, cuDNN, CUTLASS and MAGMA kernels hold that multiply in full precision on CUDA cores. Products of a matrix and a vector
/// (`gemv`) are not among them: memory bounds these, and tensor cores do not help.
const CUDA_CORES: &[&str] = &[
    "sgemm",
    "cgemm",
    "_simt_",
    "simt_sgemm",
    "_ffma_",
    "scudnn",
    "fft2d_c2r",
    "implicit_convolve_sgemm",
];
/// What names of kernels hold that use tensor cores; these win.
const TENSOR_CORES: &[&str] = &[
    "tensorop", "hmma", "h884", "h1688", "h16816", "s884", "s1688", "s16816", "imma", "i8816", "i16832", "wgmma",
    "gmma", "tf32", "bf16", "mma_",
];

/// Whether a kernel of that name multiplies matrices without tensor cores.
fn avoids_tensor_cores(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let holds = |words: &[&str]| words.iter().any(|word| name.contains(word));
    holds(CUDA_CORES) && !holds(TENSOR_CORES)
}

impl Rule for TensorCores {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn evaluate(&self, facts: &Facts<'_>) -> Verdict {
        let Some(kernels) = facts.events(Category::CudaKernel) else {
            return Verdict::Quiet;
        };
        let picked: Vec<bool> = kernels.names.iter().map(|name| avoids_tensor_cores(name)).collect();
        if !picked.contains(&true) {
            return Verdict::Quiet;
        }
        let capabilities = facts
            .timeline
            .capture
            .devices
            .iter()
            .filter_map(|device| device.compute_capability);
        let Some((major, _)) = capabilities.max() else {
            return Verdict::abstain("the source does not say the GPU's compute capability");
        };
        if u64::from(major) < CAPABILITY.value {
            return Verdict::Quiet;
        }
        let mut totals = vec![0_u64; kernels.names.len()];
        for (name, length) in kernels.name.iter().zip(&kernels.duration_ns) {
            if let Some(total) = totals.get_mut(index(*name)) {
                *total += length;
            }
        }
        let chosen = totals.iter().zip(&kernels.names).zip(&picked);
        let mut chosen: Vec<(u64, &String)> = chosen
            .filter(|(_, picked)| **picked)
            .map(|((total, name), _)| (*total, name))
            .collect();
        chosen.sort_by_key(|(total, _)| std::cmp::Reverse(*total));
        let total = facts.shared(chosen.iter().map(|(total, _)| total).sum());
        let window = facts.window.len();
        if !SHARE.reached(total, window) {
            return Verdict::Quiet;
        }
        let rows = chosen.iter().take(facts.rows).map(|(total, name)| Evidence {
            what: format!("time of {}", short(name)),
            value: Cell::from(*total),
            unit: Unit::Ns,
            place: None,
        });
        Found::new(format!(
            "Matrix multiplications in full precision take {} ({} of the window) on a GPU of compute capability {major}, which has tensor cores.",
            time(total),
            share(total, window)
        ))
        .worth(total.min(window) / 2, "these kernels take half as long on tensor cores, which is careful: where they fit, a gain below 5x is low")
        .confidence(Confidence::Medium)
        .at(rows)
        .do_this("Train in mixed precision: torch.autocast with bfloat16; JAX: bfloat16 parameters and activations.")
        .do_this("Where float32 must stay, allow TF32 (from compute capability 8.0): torch.set_float32_matmul_precision(\"high\"), NVIDIA_TF32_OVERRIDE=1.")
        .do_this("Make dimensions multiples of 16, better of 128.")
        .into()
    }

    #[cfg(test)]
    fn fires(&self) -> crate::model::Timeline {
        scene("volta_sgemm_128x64_nn")
    }

    #[cfg(test)]
    fn quiet(&self) -> crate::model::Timeline {
        scene("ampere_sgemm_tensorop_s1688_128x64_nn")
    }
}

#[cfg(test)]
fn scene(kernel: &str) -> crate::model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.device((8, 0), 108);
    scene.kernel(kernel, (0, 50));
    scene.kernel("add", (50, 50));
    scene.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_told_by_their_names() {
        for name in [
            "maxwell_sgemm_128x64_tn",
            "cutlass_80_simt_sgemm_128x128_8x4_nt_align1",
            "void magma_sgemmEx_kernel<float>",
        ] {
            assert!(avoids_tensor_cores(name), "{name}");
        }
        for name in [
            "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn",
            "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32",
            "void at::native::vectorized_elementwise_kernel<4>",
            "void gemv2T_kernel_val<int, double, double, double, double, 128, 16, 4, 4, false>",
        ] {
            assert!(!avoids_tensor_cores(name), "{name}");
        }
    }
}
