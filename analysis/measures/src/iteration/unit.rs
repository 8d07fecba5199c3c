//! What an iteration is called in sentences.

use super::ranges::{ITERATION_WORDS, PART_WORDS};
use super::{IterationSource, Iterations};

/// What an iteration is called, by what it was found from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IterationUnit {
    /// In the singular: `step`, `block`, `period of kernels`.
    pub one: &'static str,
    /// In the plural.
    pub many: &'static str,
}

impl IterationUnit {
    /// Where nothing says more.
    pub const ITERATION: Self = Self {
        one: "iteration",
        many: "iterations",
    };

    /// Of iterations that were found from `source`, in which `name` repeats.
    pub fn by(source: Option<IterationSource>, name: &str) -> Self {
        match source {
            Some(IterationSource::Step | IterationSource::DeviceStep) => named("step", "steps"),
            Some(IterationSource::KernelPeriod) => named("period of kernels", "periods of kernels"),
            Some(IterationSource::Range | IterationSource::RangeToNext) => by_name(name),
            None => Self::ITERATION,
        }
    }

    /// The name for so many of them.
    pub const fn of(self, count: u64) -> &'static str {
        if count == 1 { self.one } else { self.many }
    }
}

/// Units by the words of [`PART_WORDS`] and [`ITERATION_WORDS`].
const NAMES: [(&str, IterationUnit); 8] = [
    ("block", named("block", "blocks")),
    ("layer", named("layer", "layers")),
    ("module", named("module", "modules")),
    ("stage", named("stage", "stages")),
    ("step", named("step", "steps")),
    ("iter", IterationUnit::ITERATION),
    ("batch", named("batch", "batches")),
    ("sample", named("sample", "samples")),
];

const fn named(one: &'static str, many: &'static str) -> IterationUnit {
    IterationUnit { one, many }
}

impl Iterations {
    /// What one of them is called: by the profiler's steps, by a word in the range's name, or by
    /// the period of kernels that it is.
    pub fn unit(&self) -> IterationUnit {
        IterationUnit::by(self.source, &self.name)
    }
}

/// Words of parts of a model come before those of iterations, as they do where it is doubtful what
/// repeats.
fn by_name(name: &str) -> IterationUnit {
    let lower = name.to_ascii_lowercase();
    let words = PART_WORDS.iter().chain(&ITERATION_WORDS);
    let word = words.copied().find(|word| lower.contains(word));
    let known = NAMES.iter().find(|(known, _)| Some(*known) == word);
    known.map_or(IterationUnit::ITERATION, |(_, unit)| *unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iteration_is_called_what_its_range_calls_it() {
        for (name, one) in [
            ("TransformerBlock #", "block"),
            ("layer #", "layer"),
            ("train_step #", "step"),
            ("Batch #", "batch"),
            ("iter #", "iteration"),
            ("forward", "iteration"),
        ] {
            let iterations = Iterations {
                source: Some(IterationSource::Range),
                name: name.to_owned(),
                ..Iterations::default()
            };
            assert_eq!(iterations.unit().one, one, "{name}");
        }
    }

    #[test]
    fn each_word_has_a_unit() {
        for word in PART_WORDS.iter().chain(&ITERATION_WORDS) {
            assert!(NAMES.iter().any(|(known, _)| known == word), "{word}");
        }
    }
}
