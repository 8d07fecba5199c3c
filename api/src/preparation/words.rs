//! The words of the label by which a pod asks to be prepared.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::preparation::PREPARE_LABEL;
pub use crate::profiler::table::PreparationWord;

impl FromStr for PreparationWord {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let known = Self::ALL.into_iter().find(|known| known.as_str() == word);
        known.ok_or_else(|| UnknownWord(word.to_owned()))
    }
}

/// A word that names nothing that pods are prepared for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("label {label} names {0:?}; there are {words}, one or several joined by dots", label = PREPARE_LABEL, words = known())]
pub struct UnknownWord(pub String);

fn known() -> String {
    PreparationWord::ALL.map(PreparationWord::as_str).join(", ")
}

/// What a pod or a container is prepared for: words joined by dots, such as `nsys.kineto`, because values of labels allow
/// no commas. The words may come in any order, and are written in one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreparedFor(BTreeSet<PreparationWord>);

impl PreparedFor {
    /// Whether the word is one of them.
    pub fn contains(&self, word: PreparationWord) -> bool {
        self.0.contains(&word)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The words in their order.
    pub fn words(&self) -> impl Iterator<Item = PreparationWord> {
        self.0.iter().copied()
    }

    /// These and one more.
    #[must_use]
    pub fn with(mut self, word: PreparationWord) -> Self {
        self.0.insert(word);
        self
    }
}

impl FromIterator<PreparationWord> for PreparedFor {
    fn from_iter<I: IntoIterator<Item = PreparationWord>>(words: I) -> Self {
        Self(words.into_iter().collect())
    }
}

impl FromStr for PreparedFor {
    type Err = UnknownWord;

    /// An empty value names nothing and is refused, as an empty word is.
    fn from_str(value: &str) -> Result<Self, UnknownWord> {
        value.split('.').map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for PreparedFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, word) in self.words().enumerate() {
            let dot = if index == 0 { "" } else { "." };
            write!(f, "{dot}{}", word.as_str())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_in_any_order_and_are_written_in_one() {
        for (value, written) in [
            ("nsys", "nsys"),
            ("jax.kineto.nsys", "nsys.kineto.jax"),
            ("kineto.kineto", "kineto"),
        ] {
            let words: PreparedFor = value.parse().unwrap();
            assert_eq!(words.to_string(), written);
        }
        let one: PreparedFor = "kineto".parse().unwrap();
        assert!(one.contains(PreparationWord::Kineto) && !one.contains(PreparationWord::Nsys));
        assert_eq!(one.with(PreparationWord::Nsys).to_string(), "nsys.kineto");
        assert!(PreparedFor::default().is_empty());
    }

    #[test]
    fn an_unknown_word_is_refused_and_the_known_ones_are_named() {
        for (value, unknown) in [
            ("", ""),
            ("nsys.", ""),
            ("nsys,kineto", "nsys,kineto"),
            ("Nsys", "Nsys"),
        ] {
            let error = value.parse::<PreparedFor>().unwrap_err();
            assert_eq!(error, UnknownWord(unknown.to_owned()), "{value:?}");
            let message = error.to_string();
            assert!(
                message.contains("there are nsys, ncu, kineto, jax, recorder"),
                "{message}"
            );
        }
    }
}
