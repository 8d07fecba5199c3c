//! Kernels that multiply matrices: whether they do so on tensor cores, and with which type of
//! number, as far as their names say.

mod families;

use schemars::JsonSchema;
use serde::Serialize;

use self::families::FAMILIES;
use crate::kernel_name::short;

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

/// Types of numbers by what names hold; the first that is found. Names of nvjet and Tensile say it
/// in letters of their own.
const TYPES: &[(&str, &str)] = &[
    ("e4m3", "fp8"),
    ("e5m2", "fp8"),
    ("fp8", "fp8"),
    ("bf16", "bf16"),
    ("bfloat16", "bf16"),
    ("tfloat32", "tf32"),
    ("tf32", "tf32"),
    ("fp16", "fp16"),
    ("_half", "fp16"),
    ("half_t", "fp16"),
    ("_hgemm", "fp16"),
    ("h884", "fp16"),
    ("h1688", "fp16"),
    ("h16816", "fp16"),
    ("f16", "fp16"),
    // Of three sizes with that number NVIDIA has two for FP16, whose names say so.
    ("tensorop_s1688", "tf32"),
    ("_dgemm", "fp64"),
    ("d884", "fp64"),
    ("f64", "fp64"),
    ("_imma_", "int8"),
    ("i8816", "int8"),
    ("i16832", "int8"),
    ("int8", "int8"),
    ("sgemm", "fp32"),
    ("gcgemm", "fp32"),
    ("scudnn", "fp32"),
    ("_simt_", "fp32"),
    ("_ffma_", "fp32"),
    ("_engine<float", "fp32"),
];

/// What a kernel's name says of the matrices that it multiplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixKernel {
    /// Unit that the kernel multiplies with.
    pub unit: MatrixUnit,
    /// Type of the numbers that it multiplies: `bf16`, `tf32` and so on; `None` where the name does
    /// not say.
    pub element_type: Option<&'static str>,
}

impl MatrixKernel {
    /// Of a kernel of that name; `None` of one that multiplies no matrices. The first family that
    /// knows the name decides.
    pub fn of(name: &str) -> Option<Self> {
        let name = Name::of(name);
        let family = FAMILIES.iter().find(|family| family.matches(&name))?;
        let unit = family.multiplies_with?;
        let element_type = name.element_type();
        Some(Self { unit, element_type })
    }

    /// Whether a kernel of that name multiplies matrices on CUDA cores and could, in a shorter type
    /// of number, do so on tensor cores. Programs in double precision are left out: what they need
    /// of it is not known.
    pub fn avoids_tensor_cores(name: &str) -> bool {
        Self::of(name).is_some_and(|kernel| kernel.unit == MatrixUnit::CudaCore && kernel.element_type != Some("fp64"))
    }
}

/// A kernel's name in small letters.
struct Name {
    /// The function's own name, without namespaces, template arguments and parameters.
    own: String,
    /// The whole name.
    whole: String,
}

impl Name {
    fn of(name: &str) -> Self {
        Self {
            own: short(name).to_ascii_lowercase(),
            whole: name.to_ascii_lowercase(),
        }
    }

    fn element_type(&self) -> Option<&'static str> {
        if let Some(code) = self.own.strip_prefix("nvjet_") {
            return nvjet_type(code);
        }
        if let Some((_, code)) = self.own.split_once("cijk_") {
            return tensile_type(code);
        }
        let found = TYPES.iter().find(|(word, _)| self.whole.contains(word));
        found.map(|(_, name)| *name)
    }
}

/// The type of A and B of `tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN` or `sm100_tst_64x32_...`: the
/// letters are those of A and B, what is summed in, and C.
fn nvjet_type(code: &str) -> Option<&'static str> {
    let is_device = |part: &&str| part.starts_with("sm") && part.ends_with(|letter: char| letter.is_ascii_digit());
    let letters = code.split('_').find(|part| !is_device(part))?;
    match letters.as_bytes() {
        [b'q', b'q', ..] => Some("fp8"),
        [b't', ..] => Some("bf16"),
        [b'h', ..] => Some("fp16"),
        _ => None,
    }
}

/// The type of A of `Ailk_Bljk_BBS_BH_...`: behind the indices stand the types of A, C and the sum
/// in letters.
fn tensile_type(code: &str) -> Option<&'static str> {
    let mut parts = code.split('_').skip(2);
    let (types, next) = (parts.next()?, parts.next());
    match types {
        // What counts as float is multiplied in a shorter type.
        "s" if next == Some("mx") => None,
        _ if types.starts_with("f8") || types.starts_with("b8") => Some("fp8"),
        _ if types.starts_with("i8") || types.starts_with("4xi8") => Some("int8"),
        _ => match types.as_bytes().first()? {
            b'b' => Some("bf16"),
            b'h' => Some("fp16"),
            b's' => Some("fp32"),
            b'd' => Some("fp64"),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit_and_type(name: &str) -> Option<(MatrixUnit, Option<&'static str>)> {
        MatrixKernel::of(name).map(|kernel| (kernel.unit, kernel.element_type))
    }

    #[test]
    fn every_family_knows_its_examples_and_none_before_it_does() {
        for (at, family) in FAMILIES.iter().enumerate() {
            assert!(!family.examples.is_empty(), "family {at}");
            for example in family.examples {
                let name = Name::of(example);
                let first = FAMILIES.iter().position(|family| family.matches(&name));
                assert_eq!(first, Some(at), "{example}");
            }
        }
    }

    #[test]
    fn kernels_are_told_by_their_names() {
        use MatrixUnit::{CudaCore, TensorCore, Unknown};
        for (name, expected) in [
            ("maxwell_sgemm_128x64_tn", Some((CudaCore, Some("fp32")))),
            ("ampere_gcgemm_64x64_nt", Some((CudaCore, Some("fp32")))),
            ("volta_dgemm_64x64_nn", Some((CudaCore, Some("fp64")))),
            (
                "cutlass_80_simt_sgemm_128x128_8x4_nt_align1",
                Some((CudaCore, Some("fp32"))),
            ),
            ("void magma_sgemmEx_kernel<float>", Some((CudaCore, Some("fp32")))),
            (
                "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
                Some((CudaCore, Some("fp32"))),
            ),
            (
                "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn",
                Some((TensorCore, Some("bf16"))),
            ),
            (
                "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32",
                Some((TensorCore, Some("tf32"))),
            ),
            (
                "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4>(cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4::Params)",
                Some((TensorCore, Some("tf32"))),
            ),
            (
                "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT",
                Some((TensorCore, Some("fp16"))),
            ),
            (
                "nvjet_sm100_tst_64x32_64x16_2x1_2cta_h_bz_TNT",
                Some((TensorCore, Some("bf16"))),
            ),
            (
                "void flash_fwd_kernel<Flash_fwd_kernel_traits<64>>",
                Some((TensorCore, None)),
            ),
            ("ampere_fp16_s16816gemm_fp16_256x128", Some((TensorCore, Some("fp16")))),
            (
                "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1_AFC1",
                Some((TensorCore, Some("bf16"))),
            ),
            (
                "Cijk_Ailk_Bljk_F8BS_BH_Bias_HAS_SAB_SAV_UserArgs_MT64x64x512_MI16x16x1",
                Some((TensorCore, Some("fp8"))),
            ),
            (
                "Cijk_Ailk_Bljk_SB_MT16x16x16_SE_AF0EM1_AMAS2_ASEM1_BL0_DTL0_EPS0_FL0_GRVW2_GSU1_ISA000_K1_KLS_TT2_2",
                Some((CudaCore, Some("fp32"))),
            ),
            ("triton_tem_fused_mm_3", Some((Unknown, None))),
            ("gemm_fusion_dot_12_0", Some((Unknown, None))),
            ("void at::native::vectorized_elementwise_kernel<4>", None),
            ("void at::native::bf16_cast_kernel", None),
            ("SubTensorOpWithScalar1d", None),
            ("triton_poi_fused_addmm_relu_1", None),
            ("loop_convert_fusion_3", None),
            (
                "void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*, int const*, int*)",
                None,
            ),
            (
                "void gemv2T_kernel_val<int, double, double, double, double, 128, 16, 4, 4, false>",
                None,
            ),
            ("void splitKreduce_kernel<32, 16, int, float, bf16>", None),
            ("void TensorRT::batchedGemmKernel<float>(float*)", Some((Unknown, None))),
        ] {
            assert_eq!(unit_and_type(name), expected, "{name}");
        }
    }

    #[test]
    fn double_precision_avoids_nothing() {
        assert!(MatrixKernel::avoids_tensor_cores("volta_sgemm_128x64_nn"));
        assert!(!MatrixKernel::avoids_tensor_cores("volta_dgemm_64x64_nn"));
        assert!(!MatrixKernel::avoids_tensor_cores("triton_tem_fused_mm_3"));
    }
}
