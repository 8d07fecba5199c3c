//! Figures in sentences, as pages show them.

use flopwatch_model::approximate;
use flopwatch_report::page::{Unit, figure};

/// A length of time: `4.49 ms`.
pub(super) fn time(ns: u64) -> String {
    figure::number(approximate(ns.into()), Unit::Ns)
}

/// A number of bytes: `95.80 MB`.
pub(super) fn bytes(bytes: u64) -> String {
    figure::number(approximate(bytes.into()), Unit::Bytes)
}

/// A share of a whole: `12.3 %`.
pub(super) fn share(part: u64, whole: u64) -> String {
    let whole = approximate(whole.max(1).into());
    figure::number(approximate(part.into()) / whole, Unit::Ratio)
}

/// `1 copy`, `2 copies`.
pub(crate) fn count(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A title as it stands within a sentence: `the GPU is idle`, but `GPUs wait`, `CUDA graphs`.
pub(super) fn within_sentence(title: &str) -> String {
    let mut letters = title.chars();
    let (first, second) = (letters.next(), letters.next());
    let is_word = !second.is_some_and(char::is_uppercase);
    let head = first.filter(|_| is_word).map(|first| first.to_lowercase().to_string());
    match (first, head) {
        (Some(first), Some(head)) => head + title.get(first.len_utf8()..).unwrap_or_default(),
        _ => title.to_owned(),
    }
}

#[cfg(test)]
#[test]
fn acronyms_stay_in_capitals() {
    for (title, within) in [
        ("The GPU is idle", "the GPU is idle"),
        ("GPUs wait", "GPUs wait"),
        ("CUDA graphs", "CUDA graphs"),
        ("A hot kernel", "a hot kernel"),
    ] {
        assert_eq!(within_sentence(title), within);
    }
}

/// As many letters of a kernel's name as a sentence bears.
pub(super) fn short(name: &str) -> String {
    const MOST: usize = 60;
    let name = flopwatch_measures::kernel_name::short(name);
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or(name)),
        None => name.to_owned(),
    }
}
