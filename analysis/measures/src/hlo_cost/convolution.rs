//! Operations of convolutions.

use flopwatch_model::hlo::{Convolution, Instruction, Shape, WindowDimension};

/// Positions of a window that are looked at one by one; beyond them the operations are not known.
const MAX_POSITIONS: u64 = 1 << 22;

/// Operations of a convolution of `input` with `kernel`. Positions where the window lies on
/// padding, or between the elements of a dilated input, are none.
pub(super) fn forward(of: &Instruction, input: Option<&Instruction>, kernel: Option<&Instruction>) -> Option<u64> {
    flops(of, &input?.shape, &kernel?.shape, of.shape.first_array()?)
}

/// Operations of a convolution between shapes, which stand elsewhere in its gradients.
pub(super) fn flops(of: &Instruction, input: &Shape, kernel: &Shape, output: &Shape) -> Option<u64> {
    let numbers: &Convolution = of.convolution.as_deref()?;
    let length = |shape: &Shape, at: u64| shape.dimensions.get(usize::try_from(at).ok()?).copied();
    let features = length(input, numbers.input_feature)? / of.feature_groups.max(1);
    let batch = length(input, numbers.input_batch)? / of.batch_groups.max(1);
    let mut product = features
        .saturating_mul(length(output, numbers.output_feature)?)
        .saturating_mul(batch);
    for (at, window) in of.window.iter().enumerate() {
        let positions = positions(
            window,
            length(input, *numbers.input_spatial.get(at)?)?,
            length(kernel, *numbers.kernel_spatial.get(at)?)?,
            length(output, *numbers.output_spatial.get(at)?)?,
        )?;
        product = product.saturating_mul(positions);
    }
    Some(product.saturating_mul(2))
}

/// Pairs of an element of the kernel and one of the output that meet an element of the input.
fn positions(window: &WindowDimension, input: u64, kernel: u64, output: u64) -> Option<u64> {
    if kernel.saturating_mul(output) > MAX_POSITIONS {
        return None;
    }
    let signed = |value: u64| i64::try_from(value).ok();
    let (stride, dilation) = (signed(window.stride)?, signed(window.window_dilation.max(1))?);
    let (base, input) = (signed(window.base_dilation.max(1))?, signed(input)?);
    let mut count = 0;
    for in_kernel in 0..signed(kernel)? {
        for in_output in 0..signed(output)? {
            let at = in_output
                .saturating_mul(stride)
                .saturating_sub(window.padding_low)
                .saturating_add(in_kernel.saturating_mul(dilation));
            let meets = at >= 0 && at % base == 0 && at / base < input;
            count += u64::from(meets);
        }
    }
    Some(count)
}
