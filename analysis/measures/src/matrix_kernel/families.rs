//! Names of kernels of libraries, and what they multiply matrices with.

use super::MatrixUnit::{CudaCore, TensorCore, Unknown};
use super::{MatrixUnit, Name};
use NamePattern::{Anywhere, Begins, Own};

/// A word of a name, in small letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamePattern {
    /// The function's own name begins with it.
    Begins(&'static str),
    /// The function's own name holds it. What namespaces and template arguments say is not the
    /// kernel's.
    Own(&'static str),
    /// The name holds it anywhere: libraries of templates say everything in their arguments.
    Anywhere(&'static str),
}

impl NamePattern {
    fn is_in(self, name: &Name) -> bool {
        match self {
            Self::Begins(word) => name.own.starts_with(word),
            Self::Own(word) => name.own.contains(word),
            Self::Anywhere(word) => name.whole.contains(word),
        }
    }
}

/// Kernels that are told alike.
#[derive(Debug)]
pub(super) struct Family {
    /// What they multiply matrices with; `None` of those that multiply none.
    pub(super) multiplies_with: Option<MatrixUnit>,
    /// Of each list the name holds a word.
    words: &'static [&'static [NamePattern]],
    /// Names that it knows, as captures and libraries have them.
    #[cfg_attr(not(test), expect(dead_code, reason = "read by people and held by a test"))]
    pub(super) examples: &'static [&'static str],
}

impl Family {
    pub(super) fn matches(&self, name: &Name) -> bool {
        self.words.iter().all(|words| words.iter().any(|word| word.is_in(name)))
    }
}

/// Every family. Of several that know a name the first decides, so that exceptions stand before
/// their rule: first what only has a word in common with a product of matrices, then what says CUDA
/// cores outright, then tensor cores, then names of old libraries for CUDA cores, and last products
/// of which the name says no more.
///
/// A product with a vector is none here: memory bounds it, and tensor cores do not help.
pub(super) const FAMILIES: &[Family] = &[
    // Templates of Inductor, whatever is fused behind the product.
    Family {
        multiplies_with: Some(Unknown),
        words: &[&[Begins("triton_tem_")]],
        examples: &["triton_tem_fused_mm_3", "triton_tem_fused_addmm_transpose_5"],
    },
    // Inductor names its other kernels by the operators whose results they use.
    Family {
        multiplies_with: None,
        words: &[&[
            Begins("triton_poi_"),
            Begins("triton_red_"),
            Begins("triton_per_"),
            Begins("triton_for_"),
        ]],
        examples: &[
            "triton_poi_fused_convolution_relu_2",
            "triton_red_fused_native_layer_norm_addmm_4",
        ],
    },
    // cuBLAS, cuBLASLt and rocBLAS with a vector, or with a factor that is hardly more.
    Family {
        multiplies_with: None,
        words: &[&[Own("gemv"), Anywhere("gemvx::"), Begins("gemmk1_"), Begins("gemmsn_")]],
        examples: &[
            "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, false>",
            "std::enable_if<!T7, void>::type internal::gemvx::kernel<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, (bool)0>",
            "void gemmk1_kernel<int, float, (int)256, (int)5, (bool)1, cublasGemvTensorStridedBatched<const float>>",
            "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 4, 4, true, cublasGemvTensorStridedBatched<float const> >",
        ],
    },
    // The sum of what the parts of a product that was split along k left.
    Family {
        multiplies_with: None,
        words: &[&[Begins("splitkreduce"), Anywhere("reducesplitk"), Own("reduce_wgrad")]],
        examples: &[
            "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, true, false, false>(float*)",
            "void cutlass_cudnn_train::Kernel<cutlass_cudnn_train::reduction::kernel::ReduceSplitK<cutlass_cudnn_train::MatrixShape<4, 128> > >",
            "void cudnn::cnn::reduce_wgrad_nchw_helper<float, float>(void*, void const*, float, int, int)",
        ],
    },
    // What is done before and behind a product.
    Family {
        multiplies_with: None,
        words: &[&[
            Own("im2col"),
            Own("im2d2col"),
            Own("col2im"),
            Own("nchwtonhwc"),
            Own("nhwctonchw"),
            Own("transpose"),
            Own("elementwise"),
            Own("softmax"),
            Own("offsetskernel"),
            Own("repack"),
            Begins("winogradforward"),
            Begins("winogradwgrad"),
            Begins("generatewinogradtiles"),
        ]],
        examples: &[
            "void cudnn::cnn::im2col4d_kernel<float, long>(float*)",
            "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)0>(float*)",
            "cask_cudnn::computeWgradBOffsetsKernel(cask_cudnn::ComputeWgradBOffsetsParams)",
            "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(float*)",
            "void cudnn::winograd::generateWinogradTilesKernel<0, float, float>(float*)",
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)",
            "batched_transpose_32x32_dword",
        ],
    },
    // The same of attention.
    Family {
        multiplies_with: None,
        words: &[&[
            Own("splitkv_combine"),
            Own("dot_do_o"),
            Own("convert_dq"),
            Own("attention_v2_reduce"),
            Anywhere("flashattnfwdcombine"),
            Anywhere("flashattnbwdpreprocess"),
            Anywhere("flashattnbwdpostprocess"),
        ]],
        examples: &[
            "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<(int)128, (int)64>>",
            "void flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<64> >(Flash_bwd_params)",
            "void vllm::paged_attention_v2_reduce_kernel<__nv_bfloat16, 128, 128, 512>(__nv_bfloat16*)",
        ],
    },
    // MIOpen's operations of tensors with a number or with another tensor.
    Family {
        multiplies_with: None,
        words: &[&[Own("subtensorop"), Begins("optensor"), Begins("op2dtensor")]],
        examples: &[
            "SubTensorOpWithScalar1d",
            "SubTensorOpWithCastTensor1d",
            "OpTensorFwdBias",
        ],
    },
    // What hipBLASLt and rocBLAS do beside a product: its name has no indices of A and B.
    Family {
        multiplies_with: None,
        words: &[&[
            Begins("cijk_s"),
            Begins("cijk_b"),
            Begins("cijk_h"),
            Begins("cijk_d"),
            Begins("cijk_c"),
            Begins("cijk_z"),
            Begins("cijk_i"),
            Begins("cijk_f"),
        ]],
        examples: &["Cijk_SB_BiasS_HAS_ScaleAlphaVec_PostGSU8_VW2", "Cijk_BBS_BH_PostGSU2"],
    },
    // The instruction that the name says, also of kernels of the library xmma, whose others use
    // tensor cores.
    Family {
        multiplies_with: Some(CudaCore),
        words: &[&[Own("_ffma_"), Own("_dfma_")]],
        examples: &[
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
            "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nhwc_tilesize64x64x8_stage3_warpsize1x4x1_g1_ffma_aligna4_alignc4_execute_kernel__5x_cudnn",
        ],
    },
    // CUTLASS 2.
    Family {
        multiplies_with: Some(CudaCore),
        words: &[&[Anywhere("_simt_"), Anywhere("opclasssimt"), Anywhere("mmasimt")]],
        examples: &[
            "void cutlass::Kernel<cutlass_80_simt_sgemm_128x128_8x4_nt_align1>(cutlass_80_simt_sgemm_128x128_8x4_nt_align1::Params)",
        ],
    },
    Family {
        multiplies_with: Some(CudaCore),
        words: &[&[Begins("fmha_cutlass")], &[Own("_sm50")]],
        examples: &[
            "fmha_cutlassF_f16_aligned_64x64_rf_sm50(PyTorchMemEffAttention::AttentionKernel<cutlass::half_t>::Params)",
        ],
    },
    // cuBLAS 12 and later; all of them.
    Family {
        multiplies_with: Some(TensorCore),
        words: &[&[Begins("nvjet_")]],
        examples: &[
            "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN",
            "nvjet_sm120_tst_mma_64x64x128_3_32x32x128_tmaAB_alignCD4_bz_TNNN",
        ],
    },
    // CUTLASS 2 and what is made of it; CUTLASS 3 where its library names the kernel.
    Family {
        multiplies_with: Some(TensorCore),
        words: &[&[
            Anywhere("_tensorop_"),
            Anywhere("opclasstensorop"),
            Anywhere("opclasswmmatensorop"),
            Anywhere("mmatensorop"),
        ]],
        examples: &[
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>(T1::Params)",
            "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>(T1::Params)",
            "void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_128x128_16x4_nhwc_unity_stride_align4>",
            "cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_bf16_bf16_128x128x64_2x1x1_0_tnn_align8_warpspecialized",
        ],
    },
    // cuBLAS, cuDNN and TensorRT of the library xmma: the shape of an instruction, groups of warps,
    // or a type that CUDA cores do not multiply.
    Family {
        multiplies_with: Some(TensorCore),
        words: &[
            &[Own("xmma_")],
            &[
                Own("_tensor"),
                Own("warpgroupsize"),
                Own("_hmma_"),
                Own("_imma_"),
                Own("tf32f32"),
                Own("bf16bf16"),
                Own("e4m3"),
            ],
        ],
        examples: &[
            "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize96x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel",
            "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4_warpsize2x2x1_g1_tensor16x8x8_execute_kernel_cudnn_infer",
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
        ],
    },
    // cuBLAS and cuDNN before, with the shape of the instruction as digits.
    Family {
        multiplies_with: Some(TensorCore),
        words: &[&[
            Own("h884"),
            Own("s884"),
            Own("d884"),
            Own("h1688"),
            Own("s1688"),
            Own("h16816"),
            Own("s16816"),
            Own("i8816"),
            Own("i16832"),
            Own("i16864"),
        ]],
        examples: &[
            "volta_fp16_s884cudnn_fp16_256x128_ldg8_relu_f2f_exp_small_nhwc2nchw_tn_v1",
            "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn",
            "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn",
            "trt_ampere_h16816gemm_128x64_ldg8_nn_v1",
        ],
    },
    // CUTLASS 3: the main loop of a generation that has them.
    Family {
        multiplies_with: Some(TensorCore),
        words: &[&[
            Anywhere("mainloopsm90"),
            Anywhere("mainloopsm100"),
            Anywhere("mainloopsm120"),
            Anywhere("gmmawarpspecialized"),
            Anywhere("ummawarpspecialized"),
        ]],
        examples: &[
            "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int>, cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<4> > > >",
            "_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalIN4cute5tupleIJiiiiEEENS1_10collective13CollectiveMmaINS1_34MainloopSm90TmaGmmaWarpSpecialized",
        ],
    },
    // Any library that names the instruction, as cuDNN's kernels that are generated.
    Family {
        multiplies_with: Some(TensorCore),
        words: &[&[
            Own("hmma"),
            Own("wgmma"),
            Own("tcgen05"),
            Own("_imma_"),
            Own("native_sdpa"),
        ]],
        examples: &[
            "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x64x64_4x1x1_kernel0_0",
            "volta_hmma_implicit_gemm_fprop_fp32_nhwc_fp16_128x128x32",
        ],
    },
    // Attention: FlashAttention 2 and 3, TensorRT-LLM, Composable Kernel and AITER.
    Family {
        multiplies_with: Some(TensorCore),
        words: &[&[
            Begins("flash_fwd"),
            Begins("flash_bwd_dq_dk_dv"),
            Anywhere("flashattnfwdsm"),
            Anywhere("flashattnbwdsm"),
            Begins("fmha_v2_"),
            Begins("fmhasm"),
            Anywhere("fmhafwdkernel"),
            Anywhere("fmhabwddqdkdvkernel"),
            Anywhere("aiter::fmha_"),
        ]],
        examples: &[
            "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<(int)128, (int)64, (int)128, (int)4, cutlass::bfloat16_t>>",
            "void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64> >(Flash_bwd_params)",
            "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2> > > >",
            "fmha_v2_flash_attention_bf16_64_128_S_qkv_128_causal_sm90_kernel_nl_tiled",
            "void ck_tile::kentry<256, 2, ck_tile::FmhaFwdKernel<ck_tile::BlockFmhaPipelineQRKSVSAsync<int> > >",
            "aiter::fmha_fwd_hd128_bf16_causal_group",
        ],
    },
    // PyTorch's attention of CUTLASS: half precision from Volta on, single from Ampere on.
    Family {
        multiplies_with: Some(TensorCore),
        words: &[&[Begins("fmha_cutlass")], &[Own("_f16_"), Own("_bf16_"), Own("_sm80")]],
        examples: &[
            "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(AttentionKernel<bfloat16_t, Sm80, 1, 64, 64, 64, 1, 1>::Params)",
        ],
    },
    Family {
        multiplies_with: Some(CudaCore),
        words: &[&[Begins("fmha_cutlass")]],
        examples: &["fmha_cutlassF_f32_aligned_64x64_rf_sm75(PyTorchMemEffAttention::AttentionKernel<float>::Params)"],
    },
    // DeepGEMM, TensorRT-LLM's, vLLM's and AITER's: types that tensor cores alone multiply. Marlin
    // multiplies in half precision.
    Family {
        multiplies_with: Some(TensorCore),
        words: &[
            &[Own("gemm"), Own("matmul"), Begins("bmm_")],
            &[
                Own("fp8"),
                Own("e4m3"),
                Own("e2m1"),
                Own("fp4"),
                Begins("f4gemm"),
                Begins("bf16gemm"),
            ],
        ],
        examples: &[
            "void deep_gemm::fp8_gemm_kernel<4096u, 7168u, 128u, 128u, 128u>(__nv_bfloat16*, float*)",
            "_w8a8_block_fp8_matmul",
            "bmm_Bfloat16_E2m1E2m1_Fp32_bA16_bB16_bC16_t128x8x512u2",
            "aiter::bf16gemm_fp32bf16_tn_96x64_splitk_clean",
        ],
    },
    Family {
        multiplies_with: Some(TensorCore),
        words: &[&[Begins("marlin")]],
        examples: &["void marlin::Marlin<__nv_bfloat16, 256, 1, 8, 8, 4>(int4 const*, int4 const*, int4*)"],
    },
    // Tensile, whose kernels rocBLAS and hipBLASLt run: the matrix instruction. What of a thread
    // computes a tile needs none.
    Family {
        multiplies_with: Some(TensorCore),
        words: &[&[Own("cijk_")], &[Own("_mi16x"), Own("_mi32x"), Own("_mi4x")]],
        examples: &[
            "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1_AFC1",
            "Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1_SN_1LDSB0_APM1_ABV0_ACED0_AF0EM1",
            "Cijk_Ailk_Bljk_HSS_MT96x96x32_MI16x16x1",
        ],
    },
    Family {
        multiplies_with: Some(CudaCore),
        words: &[&[Own("cijk_")], &[Own("_mt")], &[Own("_tt")]],
        examples: &[
            "Cijk_Ailk_Bljk_SB_MT16x16x16_SE_AF0EM1_AMAS2_ASEM1_BL0_GSU1_ISA000_K1_KLS_LPA0_LPB0_TT2_2_USFGRO0",
        ],
    },
    Family {
        multiplies_with: Some(Unknown),
        words: &[&[Own("cijk_")]],
        examples: &["Custom_Cijk_Ailk_Bljk_F8NH_HHS_BH_Bias_AS_SAB_SAV_shortname0_gfx942"],
    },
    // Composable Kernel and MIOpen's products of gathered tiles: with and without matrix
    // instructions.
    Family {
        multiplies_with: Some(TensorCore),
        words: &[
            &[Own("gemm"), Own("conv")],
            &[Own("_xdl"), Own("_wmma"), Own("_mfma"), Own("_gtcx")],
        ],
        examples: &[
            "void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm_xdl_cshuffle_v3<int>, true>(int)",
            "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex0_bt256x256x32_wt32x32x8_ws1x1_wr2x2_ta1x8x4x1_1x4x1x64_tb1x8x4x1_1x4x1x64",
        ],
    },
    Family {
        multiplies_with: Some(CudaCore),
        words: &[&[Own("gemm"), Own("conv")], &[Own("_dl_")]],
        examples: &["void ck::kernel_gemm_dl_v1r3<ck::GridwiseGemmDl_km_kn_mn_v1r3<int> >(float const*)"],
    },
    // cuBLAS, cuDNN and MAGMA in the precisions of CUDA cores.
    Family {
        multiplies_with: Some(CudaCore),
        words: &[&[
            Begins("sgemm"),
            Begins("dgemm"),
            Begins("cgemm"),
            Begins("zgemm"),
            Begins("hgemm"),
            Own("_sgemm"),
            Own("_dgemm"),
            Own("_cgemm"),
            Own("_zgemm"),
            Own("_hgemm"),
            Own("_gcgemm"),
            Own("scudnn"),
            Begins("dgrad_engine"),
            Begins("wgrad_alg0_engine"),
            Begins("wgrad_alg1_engine"),
        ]],
        examples: &[
            "ampere_sgemm_128x64_nn",
            "volta_sgemm_64x32_sliced1x4_nn",
            "void sgemm_largek_lds64<true, true, 6, 3, 4, 5, 2, 66>(float*)",
            "ampere_gcgemm_64x64_nt",
            "volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
            "void explicit_convolve_sgemm<float, int, 1024, 5, 5, 3, 3, 3, 0, false>(int)",
            "void cudnn::cnn::wgrad_alg0_engine<float, 128, 5, 5, 3, 3, 3, false, 512>(int)",
            "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int)",
        ],
    },
    // A product of which the name says no more.
    Family {
        multiplies_with: Some(Unknown),
        words: &[&[
            Own("gemm"),
            Own("matmul"),
            Own("_mm_"),
            Own("_bmm"),
            Begins("bmm_"),
            Own("_dot_"),
            Own("convolve"),
            Own("convolution"),
            Own("_conv_"),
            Own("conv2d"),
            Own("conv3d"),
            Own("asmconv"),
            Own("miopenconv"),
            Own("fprop"),
            Own("dgrad"),
            Own("wgrad"),
            Own("winograd"),
            Own("fmha"),
            Own("attention"),
            Own("attn_fwd"),
            Own("attn_bwd"),
            Own("fused_moe_kernel"),
            Anywhere("cutlass::gemm::"),
            Anywhere("cutlass::conv::"),
        ]],
        examples: &[
            "gemm_fusion_dot_12_0",
            "void vllm::paged_attention_v1_kernel<__nv_bfloat16, 128, 16>(__nv_bfloat16*)",
            "miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride1",
            "naive_conv_ab_nonpacked_fwd_nchw_half_double_half",
            "fused_moe_kernel",
            "void cutlass::Kernel2<cutlass::gemm::kernel::GemmUniversal<float> >(int)",
        ],
    },
];
