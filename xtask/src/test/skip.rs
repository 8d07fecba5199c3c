//! Why a test did not run, and which reasons CI takes.

use anyhow::Result;
use flopwatch_toolchain::progress::say;
use flopwatch_toolchain::project;
use std::fmt;

/// What a test lacked: the word in brackets of `skipped (gpu): reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An NVIDIA GPU, or a machine without one.
    Gpu,
    /// The captures of other people, `../shared/corpus`.
    Corpus,
    /// Anything else: `skipped: reason`, and words that nobody knows.
    Other,
}

impl Kind {
    /// The kind that a line tells of, if it tells of a skip.
    pub(crate) fn told(line: &str) -> Option<Self> {
        let (word, _) = line.strip_prefix("skipped")?.split_once(": ")?;
        match word {
            "" => Some(Self::Other),
            " (gpu)" => Some(Self::Gpu),
            " (corpus)" => Some(Self::Corpus),
            _ => (word.starts_with(" (") && word.ends_with(')')).then_some(Self::Other),
        }
    }
}

/// One reason of one test not to run, or not to run to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skip {
    pub(crate) kind: Kind,
    /// The test's name in its program; empty where it told from another thread.
    pub(crate) test: String,
    /// The line that the test printed.
    pub(crate) line: String,
}

impl fmt::Display for Skip {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.test, self.line)
    }
}

/// Where tests run, as far as skips depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Machine {
    /// `CI=true`: the machine has everything that the recipe installs.
    ci: bool,
    /// `../shared/corpus` is there.
    corpus: bool,
}

impl Machine {
    /// Looks at this machine.
    pub(crate) fn here() -> Result<Self> {
        Ok(Self {
            ci: std::env::var("CI").is_ok_and(|value| is_set(&value)),
            corpus: project::corpus()?.is_some(),
        })
    }

    /// Whether tests must not lack that here.
    fn refuses(self, kind: Kind) -> bool {
        self.ci
            && match kind {
                Kind::Gpu => false,
                Kind::Corpus => self.corpus,
                Kind::Other => true,
            }
    }

    /// Whether CI is refused something; says what.
    pub(crate) fn refuses_any(self, skips: &[Skip]) -> bool {
        let refused: Vec<&Skip> = skips.iter().filter(|skip| self.refuses(skip.kind)).collect();
        for skip in &refused {
            say(format_args!("CI takes no skip like this: {skip}"));
        }
        !refused.is_empty()
    }
}

fn is_set(value: &str) -> bool {
    !matches!(value, "" | "0" | "false")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_brackets_is_the_kind_and_an_unknown_one_excuses_nothing() {
        for (line, kind) in [
            ("skipped: no nsys", Some(Kind::Other)),
            ("skipped (gpu): there is a driver", Some(Kind::Gpu)),
            ("skipped (corpus): a.nsys-rep is not there", Some(Kind::Corpus)),
            ("skipped (weather): rain", Some(Kind::Other)),
            ("skipped 3 of 4 rows: too long", None),
            ("skippedness: none", None),
            ("not skipped: no", None),
        ] {
            assert_eq!(Kind::told(line), kind, "{line}");
        }
    }

    #[test]
    fn ci_takes_skips_for_a_gpu_and_for_a_corpus_that_is_absent_and_no_other() {
        let place = |ci, corpus| Machine { ci, corpus };
        for (place, taken) in [
            (place(true, true), [true, false, false]),
            (place(true, false), [true, true, false]),
            (place(false, true), [true, true, true]),
            (place(false, false), [true, true, true]),
        ] {
            let found = [Kind::Gpu, Kind::Corpus, Kind::Other].map(|kind| !place.refuses(kind));
            assert_eq!(found, taken, "{place:?}");
        }
        let skip = |kind| Skip {
            kind,
            test: "a".to_owned(),
            line: "skipped".to_owned(),
        };
        let here = place(true, false);
        assert!(!here.refuses_any(&[skip(Kind::Gpu), skip(Kind::Corpus)]));
        assert!(here.refuses_any(&[skip(Kind::Gpu), skip(Kind::Other)]));
    }

    #[test]
    fn ci_is_what_says_so() {
        for (value, set) in [("true", true), ("1", true), ("", false), ("false", false), ("0", false)] {
            assert_eq!(is_set(value), set, "{value:?}");
        }
    }
}
