//! Text of foreign captures as it may be shown: a profiled program chooses the names of its ranges.

/// A character that may reach a terminal or a page: control characters, and those that turn the
/// direction of the text after them, become U+FFFD.
pub(crate) fn printable(c: char) -> char {
    let turns = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    if c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') {
        '\u{fffd}'
    } else {
        c
    }
}

/// `text` of printable characters, at most `longest` of them; the middle of a longer one is left
/// out.
pub(crate) fn shortened(text: &str, longest: usize) -> String {
    let length = text.chars().count();
    if length <= longest {
        return text.chars().map(printable).collect();
    }
    let half = longest.saturating_sub(1) / 2;
    let tail = text.chars().skip(length.saturating_sub(half));
    let head = text.chars().take(half);
    head.chain(std::iter::once('…')).chain(tail).map(printable).collect()
}
