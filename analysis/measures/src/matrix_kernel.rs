//! Kernels that multiply matrices: whether they do so on tensor cores, and with which type of number, as far as their names say.

use schemars::JsonSchema;
use serde::Serialize;

/// What a kernel multiplies matrices with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatrixUnit {
    /// Tensor cores.
    TensorCore,
    /// CUDA cores.
    CudaCore,
    /// The name does not say.
    Unknown,
}

impl MatrixUnit {
    /// In words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::TensorCore => "tensor cores",
            Self::CudaCore => "CUDA cores",
            Self::Unknown => "not said",
        }
    }
}

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
    "tensorop",
    "hmma",
    "h884",
    "h1688",
    "h16816",
    "s884",
    "s1688",
    "s16816",
    "d884",
    "imma",
    "i8816",
    "i16832",
    "wgmma",
    "gmma",
    "tf32",
    "bf16",
    "mma_",
    "nvjet",
    "flash_fwd",
    "flash_bwd",
];
/// What names of kernels hold that multiply matrices on the one or the other.
const MATRICES: &[&str] = &[
    "gemm",
    "cutlass",
    "convolve",
    "_conv",
    "conv2d",
    "fprop",
    "dgrad",
    "wgrad",
    "winograd",
    "fmha",
    "attention",
    "_mm_",
    "_bmm",
    "matmul",
    "_dot_",
];
/// What names hold that say one of these and multiply nothing: products with a vector, and what is done before and behind.
const OTHERS: &[&str] = &[
    "gemv",
    "splitkreduce",
    "im2col",
    "col2im",
    "softmax",
    "nchwtonhwc",
    "nhwctonchw",
    "transpose",
    "elementwise",
];

/// Types of numbers by what names hold; the first that is found.
const TYPES: &[(&str, &str)] = &[
    ("e4m3", "fp8"),
    ("e5m2", "fp8"),
    ("fp8", "fp8"),
    ("bf16", "bf16"),
    ("bfloat16", "bf16"),
    ("nvjet_ts", "bf16"),
    ("tf32", "tf32"),
    ("fp16", "fp16"),
    ("_half", "fp16"),
    ("half_t", "fp16"),
    ("hgemm", "fp16"),
    ("h884", "fp16"),
    ("h1688", "fp16"),
    ("h16816", "fp16"),
    ("f16", "fp16"),
    ("nvjet_hs", "fp16"),
    ("dgemm", "fp64"),
    ("d884", "fp64"),
    ("f64", "fp64"),
    ("imma", "int8"),
    ("i8816", "int8"),
    ("i16832", "int8"),
    ("int8", "int8"),
    ("sgemm", "fp32"),
    ("scudnn", "fp32"),
    ("_simt_", "fp32"),
    ("_ffma_", "fp32"),
];

/// What a kernel's name says of the matrices that it multiplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixKernel {
    /// What it multiplies with.
    pub unit: MatrixUnit,
    /// Type of the numbers that it multiplies: `bf16`, `tf32` and so on; `None` where the name does not say.
    pub element_type: Option<&'static str>,
}

impl MatrixKernel {
    /// Of a kernel of that name; `None` of one that multiplies no matrices.
    pub fn of(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let holds = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if holds(OTHERS) {
            return None;
        }
        let unit = if holds(TENSOR_CORES) {
            MatrixUnit::TensorCore
        } else if holds(CUDA_CORES) {
            MatrixUnit::CudaCore
        } else {
            MatrixUnit::Unknown
        };
        // What tensor cores do is a product of matrices, but a type alone says nothing.
        let multiplies = unit == MatrixUnit::CudaCore || holds(MATRICES) || holds(&TENSOR_CORES_ALONE);
        let element_type = TYPES.iter().find(|(word, _)| name.contains(word));
        multiplies.then(|| Self {
            unit,
            element_type: element_type.map(|(_, name)| *name),
        })
    }

    /// Whether a kernel of that name multiplies matrices on CUDA cores.
    pub fn avoids_tensor_cores(name: &str) -> bool {
        Self::of(name).is_some_and(|kernel| kernel.unit == MatrixUnit::CudaCore)
    }
}

/// Words of tensor cores that say that matrices are multiplied, whatever else the name holds.
const TENSOR_CORES_ALONE: [&str; 12] = [
    "tensorop",
    "hmma",
    "h884",
    "h1688",
    "h16816",
    "s884",
    "s1688",
    "s16816",
    "wgmma",
    "nvjet",
    "flash_fwd",
    "flash_bwd",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_told_by_their_names() {
        use MatrixUnit::{CudaCore, TensorCore, Unknown};
        for (name, expected) in [
            ("maxwell_sgemm_128x64_tn", Some((CudaCore, Some("fp32")))),
            (
                "cutlass_80_simt_sgemm_128x128_8x4_nt_align1",
                Some((CudaCore, Some("fp32"))),
            ),
            ("void magma_sgemmEx_kernel<float>", Some((CudaCore, Some("fp32")))),
            (
                "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn",
                Some((TensorCore, Some("bf16"))),
            ),
            (
                "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32",
                Some((TensorCore, Some("tf32"))),
            ),
            (
                "ampere_sgemm_tensorop_s1688_128x64_nn",
                Some((TensorCore, Some("fp32"))),
            ),
            (
                "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT",
                Some((TensorCore, Some("fp16"))),
            ),
            (
                "void flash_fwd_kernel<Flash_fwd_kernel_traits<64>>",
                Some((TensorCore, None)),
            ),
            ("ampere_fp16_s16816gemm_fp16_256x128", Some((TensorCore, Some("fp16")))),
            ("triton_tem_fused_mm_3", Some((Unknown, None))),
            ("void at::native::vectorized_elementwise_kernel<4>", None),
            ("void at::native::bf16_cast_kernel", None),
            (
                "void gemv2T_kernel_val<int, double, double, double, double, 128, 16, 4, 4, false>",
                None,
            ),
            ("void splitKreduce_kernel<32, 16, int, float, bf16>", None),
        ] {
            let found = MatrixKernel::of(name).map(|kernel| (kernel.unit, kernel.element_type));
            assert_eq!(found, expected, "{name}");
        }
    }
}
