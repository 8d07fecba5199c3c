//! The framework that the captured program uses, by which actions are worded.

use flopwatch_model::{Category, ColumnId, Events, Timeline};
use rayon::prelude::*;

/// A framework whose own means an action can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framework {
    /// PyTorch.
    PyTorch,
    /// JAX, or another program that XLA compiled.
    Jax,
    /// None that is known: a program of CUDA or HIP calls.
    Neither,
}

/// What names of operators, ranges and kernels of PyTorch begin with or hold.
const PYTORCH_BEGINNINGS: &[&str] = &["aten::", "c10d::", "autograd::", "torch"];
const PYTORCH_WORDS: &[&str] = &["at::native::", "at_cuda_detail::", "c10::"];

/// What names of ranges and kernels of programs that XLA compiled begin with or hold.
const XLA_BEGINNINGS: &[&str] = &["XlaModule", "TSL:", "Thunk:#", "jit_", "wrapped_"];
const XLA_WORDS: &[&str] = &["#hlo_op=", "_fusion"];

/// Categories whose names are looked at.
const NAMED: &[Category] = &[
    Category::CpuOp,
    Category::NvtxRange,
    Category::Annotation,
    Category::CudaKernel,
];

impl Framework {
    /// Of the program in `timeline`: by the profiler that is the framework's own, else by names.
    pub(super) fn of(timeline: &Timeline) -> Self {
        let capture = &timeline.capture;
        match capture.source.tool.as_str() {
            "PyTorch Kineto" => return Self::PyTorch,
            "XLA profiler" | "XLA" => return Self::Jax,
            _ => {}
        }
        let lists = || NAMED.iter().filter_map(|category| capture.events.get(category));
        let is_named = |beginnings: &[&str], words: &[&str]| {
            let fits = |name: &String| {
                beginnings.iter().any(|beginning| name.starts_with(beginning))
                    || words.iter().any(|word| name.contains(word))
            };
            lists().any(|events| events.names.par_iter().with_min_len(1024).any(fits))
        };
        let has_operations = |events: &Events| events.column(ColumnId::HloOp).is_some();
        if is_named(PYTORCH_BEGINNINGS, PYTORCH_WORDS) {
            Self::PyTorch
        } else if lists().any(has_operations) || is_named(XLA_BEGINNINGS, XLA_WORDS) {
            Self::Jax
        } else {
            Self::Neither
        }
    }

    /// The one of three texts that is for this framework.
    pub(crate) const fn pick(self, pytorch: &'static str, jax: &'static str, neither: &'static str) -> &'static str {
        match self {
            Self::PyTorch => pytorch,
            Self::Jax => jax,
            Self::Neither => neither,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::scene::Scene;

    fn of_kernel(name: &str) -> Framework {
        let mut scene = Scene::new();
        scene.launch((0, 5), name, (10, 5));
        Framework::of(&scene.build())
    }

    #[test]
    fn a_framework_is_told_by_the_names_of_its_kernels() {
        let pytorch = "void at::native::vectorized_elementwise_kernel<4>(int)";
        assert_eq!(of_kernel(pytorch), Framework::PyTorch);
        assert_eq!(of_kernel("loop_add_fusion_3"), Framework::Jax);
        assert_eq!(of_kernel("saxpy(int, float, float*, float*)"), Framework::Neither);
    }

    #[test]
    fn the_profiler_of_a_framework_tells_it_without_names() {
        for (tool, expected) in [
            ("PyTorch Kineto", Framework::PyTorch),
            ("XLA profiler", Framework::Jax),
            ("NVIDIA Nsight Systems", Framework::Neither),
        ] {
            let mut timeline = Timeline::default();
            tool.clone_into(&mut timeline.capture.source.tool);
            assert_eq!(Framework::of(&timeline), expected, "{tool}");
        }
    }
}
