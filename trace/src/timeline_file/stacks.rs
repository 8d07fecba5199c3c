//! Samples by stack, as the file holds them: lists of samples, of their frames one behind the
//! other, and of their labels.

use hdf5::Group;

use super::read::{Failure, Reader};
use super::write::{list, strings};
use super::{NONE_U32, NONE_U64};
use flopwatch_model::{SampleKind, StackFrame, StackLabel, StackProfile, StackSample};

pub(super) fn write(group: &Group, profile: &StackProfile) -> hdf5::Result<()> {
    let StackProfile {
        kinds, frames, samples, ..
    } = profile;
    strings(group, "kind", kinds.iter().map(|kind| kind.name.as_str()))?;
    strings(group, "unit", kinds.iter().map(|kind| kind.unit.as_str()))?;
    list(group, "default_kind", &[profile.default_kind.unwrap_or(NONE_U32)])?;
    list(group, "taken_utc_ns", &[profile.taken_utc_ns.unwrap_or(NONE_U64)])?;
    strings(group, "text", profile.texts.iter().map(String::as_str))?;
    let frame = |field: fn(&StackFrame) -> u32| frames.iter().map(field).collect::<Vec<u32>>();
    list(group, "function", &frame(|frame| frame.function))?;
    list(group, "file", &frame(|frame| frame.file))?;
    list(
        group,
        "line",
        &frames.iter().map(|frame| frame.line).collect::<Vec<i64>>(),
    )?;
    let count = |all: usize| u32::try_from(all).unwrap_or(u32::MAX);
    let lengths = |of: fn(&StackSample) -> usize| samples.iter().map(|sample| count(of(sample))).collect::<Vec<u32>>();
    list(group, "stack_length", &lengths(|sample| sample.stack.len()))?;
    list(group, "labels", &lengths(|sample| sample.labels.len()))?;
    let stacks = samples.iter().flat_map(|sample| &sample.stack).copied();
    list(group, "stack", &stacks.collect::<Vec<u32>>())?;
    let values = samples.iter().flat_map(|sample| &sample.values).copied();
    list(group, "value", &values.collect::<Vec<i64>>())?;
    let labels = || samples.iter().flat_map(|sample| &sample.labels);
    list(
        group,
        "label_key",
        &labels().map(|label| label.key).collect::<Vec<u32>>(),
    )?;
    list(
        group,
        "label_text",
        &labels().map(|label| label.text).collect::<Vec<u32>>(),
    )?;
    list(
        group,
        "label_number",
        &labels().map(|label| label.number).collect::<Vec<i64>>(),
    )
}

impl Reader<'_> {
    pub(super) fn stacks(&mut self, group: &Group) -> Result<StackProfile, Failure> {
        let wrong = |what: &str| Failure::Inconsistent(format!("stacks: {what}"));
        let names = self.strings(group, "kind")?;
        let units = self.strings(group, "unit")?;
        let one = Some(1);
        let default_kind: Vec<u32> = self.numbers(group, "default_kind", one)?;
        let taken: Vec<u64> = self.numbers(group, "taken_utc_ns", one)?;
        let texts = self.strings(group, "text")?;
        let functions: Vec<u32> = self.numbers(group, "function", None)?;
        let files: Vec<u32> = self.numbers(group, "file", Some(functions.len()))?;
        let lines: Vec<i64> = self.numbers(group, "line", Some(functions.len()))?;
        let lengths: Vec<u32> = self.numbers(group, "stack_length", None)?;
        self.within_limit(lengths.len(), "samples")?;
        let labels: Vec<u32> = self.numbers(group, "labels", Some(lengths.len()))?;
        let stack: Vec<u32> = self.numbers(group, "stack", None)?;
        self.within_limit(stack.len(), "frames of stacks")?;
        let values: Vec<i64> = self.numbers(group, "value", Some(lengths.len().saturating_mul(names.len())))?;
        let keys: Vec<u32> = self.numbers(group, "label_key", None)?;
        let label_texts: Vec<u32> = self.numbers(group, "label_text", Some(keys.len()))?;
        let numbers: Vec<i64> = self.numbers(group, "label_number", Some(keys.len()))?;
        if units.len() != names.len() || names.is_empty() {
            return Err(wrong("not a unit per kind"));
        }
        let label_list = keys.into_iter().zip(label_texts).zip(numbers);
        let label_list: Vec<StackLabel> = label_list
            .map(|((key, text), number)| StackLabel { key, text, number })
            .collect();
        let (mut stack, mut label_list, mut values) =
            (stack.as_slice(), label_list.as_slice(), values.chunks(names.len()));
        let mut samples = Vec::with_capacity(lengths.len());
        for (frames, labels) in lengths.iter().zip(&labels) {
            samples.push(StackSample {
                stack: cut(&mut stack, *frames).ok_or_else(|| wrong("stacks longer than their list"))?,
                labels: cut(&mut label_list, *labels).ok_or_else(|| wrong("labels longer than their list"))?,
                values: values.next().unwrap_or_default().to_vec(),
            });
        }
        let kinds = names
            .into_iter()
            .zip(units)
            .map(|(name, unit)| SampleKind { name, unit });
        let frames = functions.into_iter().zip(files).zip(lines);
        let profile = StackProfile {
            kinds: kinds.collect(),
            default_kind: default_kind.first().copied().filter(|kind| *kind != NONE_U32),
            taken_utc_ns: taken.first().copied().filter(|ns| *ns != NONE_U64),
            texts,
            frames: frames
                .map(|((function, file), line)| StackFrame { function, file, line })
                .collect(),
            samples,
        };
        if stack.is_empty() && label_list.is_empty() && profile.is_consistent() {
            Ok(profile)
        } else {
            Err(wrong("numbers that refer to nothing"))
        }
    }
}

/// The first `count` of `list`, which are taken from it.
fn cut<T: Clone>(list: &mut &[T], count: u32) -> Option<Vec<T>> {
    let (first, behind) = list.split_at_checked(usize::try_from(count).ok()?)?;
    *list = behind;
    Some(first.to_vec())
}
