//! Operations of functions of libraries that a program calls.

use flopwatch_model::hlo::Instruction;
use serde_json::Value;

use super::convolution;

/// Operations of a call with its first two operands; `None` of a function that is not known.
pub(super) fn flops(of: &Instruction, first: Option<&Instruction>, second: Option<&Instruction>) -> Option<u64> {
    let target = of.custom_call_target.as_str();
    let (first, second) = (&first?.shape, &second?.shape);
    let result = of.shape.first_array()?;
    if let Some(which) = target.strip_prefix("__cudnn$conv") {
        // Of a gradient the dimensions are those of the convolution that it is one of.
        return if which.starts_with("BackwardInput") {
            convolution::flops(of, result, second, first)
        } else if which.starts_with("BackwardFilter") {
            convolution::flops(of, first, result, second)
        } else if which.starts_with("Forward") || which.starts_with("BiasActivationForward") {
            convolution::flops(of, first, second, result)
        } else {
            None
        };
    }
    let is_product = ["__cublas$", "__onednn$matmul", "__triton_gemm"]
        .iter()
        .any(|known| target.starts_with(known));
    if !is_product {
        return None;
    }
    let config: Value = serde_json::from_str(&of.backend_config).ok()?;
    let dimensions = ["/gemm_backend_config/dot_dimension_numbers", "/dot_dimension_numbers"]
        .iter()
        .find_map(|path| config.pointer(path))?;
    let contracting = dimensions.get("lhs_contracting_dimensions")?.as_array()?;
    let mut width = 1_u64;
    for dimension in contracting {
        let at: usize = match dimension {
            Value::String(text) => text.parse().ok()?,
            other => usize::try_from(other.as_u64()?).ok()?,
        };
        width = width.saturating_mul(*first.dimensions.get(at)?);
    }
    Some(result.elements().saturating_mul(width).saturating_mul(2))
}
