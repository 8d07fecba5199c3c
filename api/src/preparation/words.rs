//! The words of the label by which a pod asks to be prepared.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::preparation::{PREPARE_LABEL, RECORDER_KERNELS};
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
    let words = PreparationWord::ALL.map(PreparationWord::as_str).join(", ");
    format!("{words}, {RECORDER_KERNELS}")
}

/// What a pod or a container is prepared for: words joined by dots, such as `nsys.kineto`, because values of labels allow
/// no commas. The words may come in any order, and are written in one. [`RECORDER_KERNELS`] is an option of `cuda`, which
/// it implies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreparedFor {
    words: BTreeSet<PreparationWord>,
    records_kernels: bool,
}

impl PreparedFor {
    /// Those of the words in `value` that there are: one of a later version counts as nothing.
    pub fn known(value: &str) -> Self {
        let mut known = Self::default();
        for word in value.split('.') {
            // What it does not know it leaves as it was.
            known.add(word).ok();
        }
        known
    }

    /// Whether the word is one of them.
    pub fn contains(&self, word: PreparationWord) -> bool {
        self.words.contains(&word)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether kernels are recorded all the time.
    pub const fn records_kernels(&self) -> bool {
        self.records_kernels
    }

    /// The words in their order.
    pub fn words(&self) -> impl Iterator<Item = PreparationWord> {
        self.words.iter().copied()
    }

    /// These and one more.
    #[must_use]
    pub fn with(mut self, word: PreparationWord) -> Self {
        self.words.insert(word);
        self
    }

    /// These, with what others ask for of the same words.
    #[must_use]
    pub fn with_options_of(self, asked: &Self) -> Self {
        let records_kernels = asked.records_kernels && self.contains(PreparationWord::Cuda);
        Self {
            records_kernels,
            ..self
        }
    }

    fn add(&mut self, word: &str) -> Result<(), UnknownWord> {
        let is_option = word == RECORDER_KERNELS;
        self.words.insert(if is_option {
            PreparationWord::Cuda
        } else {
            word.parse()?
        });
        self.records_kernels |= is_option;
        Ok(())
    }
}

impl FromIterator<PreparationWord> for PreparedFor {
    fn from_iter<I: IntoIterator<Item = PreparationWord>>(words: I) -> Self {
        Self {
            words: words.into_iter().collect(),
            records_kernels: false,
        }
    }
}

impl FromStr for PreparedFor {
    type Err = UnknownWord;

    /// An empty value names nothing and is refused, as an empty word is.
    fn from_str(value: &str) -> Result<Self, UnknownWord> {
        let mut prepared = Self::default();
        value.split('.').try_for_each(|word| prepared.add(word))?;
        Ok(prepared)
    }
}

impl fmt::Display for PreparedFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let option = self.records_kernels.then_some(RECORDER_KERNELS);
        let words = self.words().map(PreparationWord::as_str).chain(option);
        for (index, word) in words.enumerate() {
            let dot = if index == 0 { "" } else { "." };
            write!(f, "{dot}{word}")?;
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
    fn kernels_are_recorded_by_an_option_of_the_tracer_which_it_implies() {
        for (value, written) in [
            ("cuda", "cuda"),
            ("cuda.recorder-kernels", "cuda.recorder-kernels"),
            ("recorder-kernels.kineto", "kineto.cuda.recorder-kernels"),
        ] {
            let words: PreparedFor = value.parse().unwrap();
            assert_eq!(words.to_string(), written);
            assert_eq!(words.records_kernels(), value.contains("kernels"));
            assert_eq!(PreparedFor::known(&format!("{written}.later")), words);
        }
        let asked: PreparedFor = "recorder-kernels".parse().unwrap();
        let of = |words: &str| words.parse::<PreparedFor>().unwrap().with_options_of(&asked);
        assert!(of("recorder.cuda").records_kernels());
        assert!(!of("recorder").records_kernels(), "the tracer was refused");
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
