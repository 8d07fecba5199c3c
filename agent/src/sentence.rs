//! Lists as sentences have them.

/// Names in a sentence: `cuda_kernel`, `cuda_kernel and nvtx_range`, `cuda_kernel, nvtx_range and os_runtime`.
pub(crate) fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    match names.split_last() {
        None => "nothing".to_owned(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}
