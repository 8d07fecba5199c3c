//! Samples by stack without a time of their own: what profiles in the format of pprof hold.

use super::index;

/// What was sampled, by the stack that it belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackProfile {
    /// What each sample has a value of, e.g. `space` in `bytes`.
    pub kinds: Vec<SampleKind>,
    /// The kind that is meant where none is named; `None` where the source does not say.
    pub default_kind: Option<u32>,
    /// When it was taken, in ns since the Unix epoch, where the source says it.
    pub taken_utc_ns: Option<u64>,
    /// The texts that frames and labels refer to; the first is empty and stands for none.
    pub texts: Vec<String>,
    /// The frames that stacks refer to.
    pub frames: Vec<StackFrame>,
    /// What was sampled, each by its stack.
    pub samples: Vec<StackSample>,
}

/// What samples have a value of.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampleKind {
    /// Its name, e.g. `space`, `allocations`, `cpu`.
    pub name: String,
    /// Unit of the values, e.g. `bytes`, `count`, `nanoseconds`.
    pub unit: String,
}

/// A function and where it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackFrame {
    /// Its name, among [`StackProfile::texts`].
    pub function: u32,
    /// The source file, among the texts; 0 where the source does not say.
    pub file: u32,
    /// The line in it; 0 where the source does not say.
    pub line: i64,
}

/// A sample: a value of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackSample {
    /// Frames, the innermost first; a frame is an index into [`StackProfile::frames`].
    pub stack: Vec<u32>,
    /// As many values as there are kinds.
    pub values: Vec<i64>,
    /// What is said of it beside.
    pub labels: Vec<StackLabel>,
}

/// What is said of a sample, e.g. `device` = `cuda:0`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackLabel {
    /// Name of the label, among [`StackProfile::texts`].
    pub key: u32,
    /// Value of the label, among the texts; 0 where it is a number.
    pub text: u32,
    /// Value of the label, where it is a number.
    pub number: i64,
}

impl StackProfile {
    /// The text of that number; empty where there is none.
    pub fn text(&self, at: u32) -> &str {
        self.texts.get(index(at)).map_or("", String::as_str)
    }

    /// The text of the label `key` of a sample; `None` where it has none.
    pub fn label(&self, sample: &StackSample, key: &str) -> Option<&str> {
        let label = sample.labels.iter().find(|label| self.text(label.key) == key)?;
        Some(self.text(label.text)).filter(|text| !text.is_empty())
    }

    /// Whether every number in it refers to something, and every sample has a value of each kind.
    pub fn is_consistent(&self) -> bool {
        let is_text = |at: u32| index(at) < self.texts.len();
        let is_whole = |sample: &StackSample| {
            sample.values.len() == self.kinds.len()
                && sample.stack.iter().all(|frame| index(*frame) < self.frames.len())
                && sample
                    .labels
                    .iter()
                    .all(|label| is_text(label.key) && is_text(label.text))
        };
        self.frames
            .iter()
            .all(|frame| is_text(frame.function) && is_text(frame.file))
            && self.default_kind.is_none_or(|kind| index(kind) < self.kinds.len())
            && self.samples.iter().all(is_whole)
    }
}
