//! Lists as sentences have them.

/// Names in a sentence: `cuda_kernel`, `cuda_kernel and nvtx_range`,
/// `cuda_kernel, nvtx_range and os_runtime`.
pub fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    joined(names, "and")
}

/// Names of which one is to be taken: `Auto`, `Auto or Nsys`, `Auto, Nsys or Metrics`.
pub fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    joined(names, "or")
}

fn joined<'a>(names: impl Iterator<Item = &'a str>, conjunction: &str) -> String {
    let names: Vec<_> = names.collect();
    match names.split_last() {
        None => "nothing".to_owned(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} {conjunction} {last}", rest.join(", ")),
    }
}
