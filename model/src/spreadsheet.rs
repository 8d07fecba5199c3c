//! Texts of foreign captures as cells of a spreadsheet.

use std::borrow::Cow;

/// First characters by which spreadsheets take a cell for a formula, as OWASP lists them.
const FORMULA: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\0'];

/// A text as a cell of CSV that no spreadsheet takes for a formula: where it could be one, a single
/// quote stands before it. A program under a profiler chooses the names of its ranges; a number is
/// no text and needs none of this.
pub fn inert(text: &str) -> Cow<'_, str> {
    if text.starts_with(FORMULA) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_could_be_a_formula_has_a_quote_before_it() {
        for text in [
            "=HYPERLINK(\"http://a\")",
            "+1+cmd|' /C calc'!A0",
            "-2+3",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "\0=1",
        ] {
            assert_eq!(inert(text), format!("'{text}"));
        }
    }

    #[test]
    fn any_other_text_stays_as_it_is() {
        for text in ["", "aten::mm", "a=b", "'=1", "void gemm<float>(float*)", "\u{ff1d}1"] {
            assert!(matches!(inert(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }
}
