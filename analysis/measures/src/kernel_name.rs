//! Short names of kernels: a function's own name, without its return type, namespaces, template
//! arguments and parameters.

use flopwatch_model::{Events, NameDetail};

/// The short name of a demangled one: `gemm` of `void lib::gemm<float, 4>(float*)`. A name that is
/// no function's stays as it is.
///
/// It is what Nsight Systems calls `shortName`, made for sources that do not say it.
pub fn short(name: &str) -> &str {
    let mut depth = 0_u32;
    let (mut start, mut end) = (0, None);
    let mut parameters = false;
    let mut last = ' ';
    for (at, letter) in name.char_indices() {
        match letter {
            '<' | '(' | '[' | '{' => {
                if depth == 0 && end.is_none() && at > start {
                    (end, parameters) = (Some(at), letter == '(');
                }
                depth += 1;
            }
            // The arrow of a trailing return type closes nothing.
            '>' if last == '-' => {}
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 && parameters => break,
            ' ' if depth == 0 => (start, end) = (at + 1, None),
            ':' if depth == 0 && last == ':' => (start, end, parameters) = (at + 1, None, false),
            _ => {}
        }
        last = letter;
    }
    match name.get(start..end.unwrap_or(name.len())) {
        Some(short) if !short.is_empty() => short,
        _ => name,
    }
}

/// The short name of the name with index `number` among the names of `events`: what the source
/// says, otherwise [`short`].
pub fn short_of(events: &Events, number: usize) -> &str {
    let short_name = events.name_details.get(&NameDetail::Short);
    let short_name = short_name
        .and_then(|list| list.get(number))
        .filter(|name| !name.is_empty());
    let derived = || events.names.get(number).map_or("", |name| short(name));
    short_name.map_or_else(derived, String::as_str)
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn a_short_name_is_the_functions_own() {
        for (name, expected) in [
            ("void gemm<float>(float*)", "gemm"),
            ("gemm", "gemm"),
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, at::detail::Array<char*, 1> >(int, float)",
                "vectorized_elementwise_kernel",
            ),
            (
                "void (anonymous namespace)::softmax_warp_forward<float, 8, true>(float*, int)",
                "softmax_warp_forward",
            ),
            ("std::enable_if<true, void>::type cub::scan<int>(int*)", "scan"),
            (
                "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                "ncclDevKernel_AllReduce_Sum_f16_RING_LL",
            ),
            ("kernel(float*) [clone .kd]", "kernel"),
            ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
            ("[memset]", "[memset]"),
            ("", ""),
            ("a<b::c>::d", "d"),
            ("x::", "x::"),
        ] {
            assert_eq!(short(name), expected, "{name}");
        }
    }
}
