//! Matrix multiplications that do not use tensor cores.

use std::cmp::Reverse;

use flopwatch_measures::matrix_kernel::MatrixKernel;
use flopwatch_model::Category;
use flopwatch_report::page::{Cell, Unit};

use crate::advice::wording::{share, short, time};
use crate::advice::{Area, Confidence, Evidence, Facts, FindingDraft, Rule, Threshold, Verdict};

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

/// The first compute capability with bfloat16 and TF32 (CUDA C++ Programming Guide, tensor core
/// data types).
const AMPERE: (u32, u32) = (8, 0);

/// Fires where kernels of matrix multiplication or convolution work in full precision on a GPU that
/// has tensor cores.
pub(super) static RULE: Rule = Rule {
    id: "tensor-cores",
    title: "Tensor cores are not used",
    area: Area::Kernels,
    needs: &[&[Category::CudaKernel]],
    of_gpu_work: true,
    thresholds: &[SHARE, CAPABILITY],
    evaluate,
    #[cfg(test)]
    captures: [
        || scene("ampere_sgemm_128x64_nn", (8, 0)),
        || scene("cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4", (8, 0)),
    ],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let Some(kernels) = facts.events(Category::CudaKernel) else {
        return Verdict::Quiet;
    };
    let picked: Vec<bool> = kernels
        .names
        .iter()
        .map(|name| MatrixKernel::avoids_tensor_cores(name))
        .collect();
    if !picked.contains(&true) {
        return Verdict::Quiet;
    }
    let capabilities = facts
        .timeline
        .capture
        .devices
        .iter()
        .filter_map(|device| device.compute_capability);
    let capabilities: Vec<(u32, u32)> = capabilities.collect();
    let (Some((major, _)), Some(least)) = (capabilities.iter().max(), capabilities.iter().min()) else {
        return Verdict::abstain("the source does not say the GPU's compute capability");
    };
    if u64::from(*major) < CAPABILITY.value {
        return Verdict::Quiet;
    }
    let mut totals = vec![0_u64; kernels.names.len()];
    for (name, length) in kernels.name.iter().zip(&kernels.duration_ns) {
        if let Some(total) = totals.get_mut(name.index()) {
            *total += length;
        }
    }
    let chosen = totals.iter().zip(&kernels.names).zip(&picked);
    let mut chosen: Vec<(u64, &String)> = chosen
        .filter(|(_, picked)| **picked)
        .map(|((total, name), _)| (*total, name))
        .collect();
    chosen.sort_by_key(|(total, _)| Reverse(*total));
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
    let found = FindingDraft::new(format!(
        "Matrix multiplications in full precision take {} ({} of the window) on a GPU of compute capability {major}, which has tensor cores.",
        time(total),
        share(total, window)
    ))
    .worth(total.min(window) / 2, "these kernels take half as long on tensor cores, which is careful: where they fit, a gain below 5x is low")
    .confidence(Confidence::Medium)
    .at(rows);
    let advised = if *least < AMPERE {
        found.do_this(facts.framework.pick(
            "Train in mixed precision: torch.autocast with float16 and torch.amp.GradScaler. A GPU before compute capability 8.0 has no other short type for training.",
            "Train in mixed precision: float16 with a scaled loss. A GPU before compute capability 8.0 has no other short type for training.",
            "Multiply in float16 and add up in float32 (cublasGemmEx). A GPU before compute capability 8.0 has no other short type of this range.",
        ))
    } else {
        found
            .do_this(facts.framework.pick(
                "Train in mixed precision: torch.autocast with bfloat16.",
                "Train in mixed precision: bfloat16 parameters and activations.",
                "Multiply in bfloat16 or float16 and add up in float32 (cublasGemmEx).",
            ))
            .do_this(facts.framework.pick(
                "Where float32 must stay, allow TF32: torch.set_float32_matmul_precision(\"high\").",
                "Where float32 must stay, allow TF32: jax.default_matmul_precision(\"tensorfloat32\").",
                "Where float32 must stay, allow TF32: cublasSetMathMode with CUBLAS_TF32_TENSOR_OP_MATH.",
            ))
    };
    advised
        .do_this("Make dimensions multiples of 16, better of 128.")
        .into()
}

#[cfg(test)]
fn scene(kernel: &str, capability: (u32, u32)) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.device(capability, 108);
    scene.kernel(kernel, (0, 50));
    scene.kernel("add", (50, 50));
    scene.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actions(timeline: &flopwatch_model::Timeline) -> String {
        evaluate(&Facts::of(timeline, 5)).found().actions.join(" ")
    }

    #[test]
    fn no_type_is_advised_that_the_gpu_has_not() {
        for capability in [(7, 0), (7, 5)] {
            let advised = actions(&scene("volta_sgemm_128x64_nn", capability));
            assert!(advised.contains("Multiply in float16"), "{advised}");
            assert!(!advised.contains("bfloat16") && !advised.contains("TF32"), "{advised}");
        }
        let advised = actions(&scene("ampere_sgemm_128x64_nn", (8, 0)));
        assert!(advised.contains("bfloat16") && advised.contains("TF32"), "{advised}");
    }

    #[test]
    fn a_program_of_pytorch_is_told_what_pytorch_has() {
        let mut timeline = scene("volta_sgemm_128x64_nn", (7, 0));
        "PyTorch Kineto".clone_into(&mut timeline.capture.source.tool);
        let advised = actions(&timeline);
        assert!(advised.contains("float16 and torch.amp.GradScaler"), "{advised}");
    }

    #[test]
    fn the_oldest_of_several_gpus_decides_what_is_advised() {
        let mut timeline = scene("volta_sgemm_128x64_nn", (8, 0));
        timeline.capture.devices.push(flopwatch_model::Device {
            compute_capability: Some((7, 0)),
            ..flopwatch_model::Device::default()
        });
        assert!(!actions(&timeline).contains("bfloat16"));
    }

    #[test]
    fn products_of_the_library_xmma_by_ffma_are_on_cuda_cores() {
        let name = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas";
        assert!(!actions(&scene(name, (9, 0))).is_empty());
    }
}
