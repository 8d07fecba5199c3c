//! Values of attributes.

use super::cursor::Cursor;
use crate::hlo::budget::Budget;
use crate::hlo::{Convolution, ReadError, WindowDimension};

/// What is in braces; itself where there are none.
pub(super) fn inside(value: &str) -> &str {
    let inner = value.strip_prefix('{').and_then(|value| value.strip_suffix('}'));
    inner.unwrap_or(value)
}

/// The numbers of `{1,0}` or of `3`. What is none is left out.
pub(super) fn numbers(value: &str, budget: &mut Budget) -> Result<Vec<u64>, ReadError> {
    let mut found = Vec::new();
    for number in inside(value).split(',').filter_map(|part| part.trim().parse().ok()) {
        budget.one::<u64>()?;
        found.push(number);
    }
    Ok(found)
}

/// The number of `3`; 0 of what is none.
pub(super) fn number(value: &str) -> u64 {
    value.trim().parse().unwrap_or(0)
}

/// The names of `%f` or of `{%f, %g}`.
pub(super) fn names<'a>(value: &'a str, budget: &mut Budget) -> Result<Vec<&'a str>, ReadError> {
    let mut found = Vec::new();
    for name in inside(value).split(',') {
        let name = name.trim();
        let name = name.strip_prefix('%').unwrap_or(name);
        if !name.is_empty() {
            budget.one::<&str>()?;
            found.push(name);
        }
    }
    Ok(found)
}

/// A text in quotes, with its escapes undone; itself where it has none.
pub(super) fn text(value: &str, budget: &mut Budget) -> Result<String, ReadError> {
    budget.take(value.len())?;
    let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    Ok(quoted.map_or_else(|| value.to_owned(), unescaped))
}

/// Escapes are those of C, with up to three octal digits for a byte.
fn unescaped(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut bytes = Vec::new();
    let mut rest = text.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(digit @ b'0'..=b'7') => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    if let Some(digit) = rest.next_if(|byte| matches!(byte, b'0'..=b'7')) {
                        value = value * 8 + u32::from(digit - b'0');
                    }
                }
                bytes.push(u8::try_from(value).unwrap_or(b'?'));
            }
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `{size=3x3 stride=2x2 pad=0_1x0_1 lhs_dilate=1x1 rhs_dilate=1x1}`; what is left out is 1, or no
/// padding.
pub(super) fn window(value: &str, budget: &mut Budget) -> Result<Vec<WindowDimension>, ReadError> {
    let mut found: Vec<WindowDimension> = Vec::new();
    let mut pairs = Cursor::new(inside(value));
    while let Some((key, value)) = pairs.pair() {
        for (at, part) in value.split('x').enumerate() {
            if found.len() <= at {
                budget.one::<WindowDimension>()?;
                found.push(WindowDimension {
                    size: 1,
                    stride: 1,
                    padding_low: 0,
                    window_dilation: 1,
                    base_dilation: 1,
                });
            }
            let Some(dimension) = found.get_mut(at) else { continue };
            match key {
                "size" => dimension.size = number(part),
                "stride" => dimension.stride = number(part),
                "pad" => {
                    let low = part.split('_').next().unwrap_or_default();
                    dimension.padding_low = low.parse().unwrap_or(0);
                }
                "lhs_dilate" => dimension.base_dilation = number(part),
                "rhs_dilate" => dimension.window_dilation = number(part),
                _ => {}
            }
        }
    }
    Ok(found)
}

/// `b01f_01io->b01f`: what each dimension of the input, the kernel and the output is.
pub(super) fn convolution(value: &str, budget: &mut Budget) -> Result<Option<Box<Convolution>>, ReadError> {
    let parts = value
        .split_once("->")
        .and_then(|(from, output)| Some((from.split_once('_')?, output)));
    let Some(((input, kernel), output)) = parts else {
        return Ok(None);
    };
    budget.one::<Convolution>()?;
    budget.take(value.len().saturating_mul(size_of::<u64>()))?;
    Ok(Some(Box::new(Convolution {
        input_batch: dimension_of(input, 'b'),
        input_feature: dimension_of(input, 'f'),
        input_spatial: spatial(input),
        kernel_spatial: spatial(kernel),
        output_feature: dimension_of(output, 'f'),
        output_spatial: spatial(output),
    })))
}

fn dimension_of(labels: &str, wanted: char) -> u64 {
    let at = labels.chars().position(|label| label == wanted);
    at.and_then(|at| u64::try_from(at).ok()).unwrap_or(0)
}

/// Places of `0`, `1` and so on.
fn spatial(labels: &str) -> Vec<u64> {
    let mut digits: Vec<(char, u64)> = (0..).zip(labels.chars()).map(|(at, label)| (label, at)).collect();
    digits.retain(|(label, _)| label.is_ascii_digit());
    digits.sort_unstable();
    digits.into_iter().map(|(_, at)| at).collect()
}
