//! Figures in sentences, as pages show them.

use flopwatch_model::approximate;
pub(crate) use flopwatch_report::page::figure::count;
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

/// A text as it begins a sentence.
pub(super) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// As many letters of a kernel's name as a sentence bears.
pub(super) fn short(name: &str) -> String {
    const MAX_NAME_CHARACTERS: usize = 60;
    let name = flopwatch_measures::kernel_name::short(name);
    match name.char_indices().nth(MAX_NAME_CHARACTERS) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or(name)),
        None => name.to_owned(),
    }
}
