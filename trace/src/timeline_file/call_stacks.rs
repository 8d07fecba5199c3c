//! Stacks of calls of samples, as the file holds them: a list of texts, of frames and of stacks.

use hdf5::Group;

use super::read::{Failure, Reader};
use super::write::{collect, list, strings};
use flopwatch_model::{CallFrame, CallStack, CallStacks, Capture, Category, ColumnId};

pub(super) fn write(group: &Group, all: &CallStacks) -> hdf5::Result<()> {
    let CallStacks { texts, frames, stacks } = all;
    strings(group, "text", texts.iter().map(String::as_str))?;
    list(group, "function", &collect(frames, |frame| frame.function))?;
    list(group, "module", &collect(frames, |frame| frame.module))?;
    list(group, "caller", &collect(stacks, |stack| stack.caller))?;
    list(group, "frame", &collect(stacks, |stack| stack.frame))
}

/// Whether samples refer to stacks that are there, where both were read.
pub(super) fn check(capture: &Capture) -> Result<(), Failure> {
    let samples = capture.events.get(&Category::CpuSample);
    let Some(numbers) = samples.and_then(|samples| samples.column(ColumnId::CallStack)) else {
        return Ok(());
    };
    let max = u64::try_from(capture.call_stacks.stacks.len()).unwrap_or(u64::MAX);
    let mut all = (0..numbers.len()).filter_map(|at| numbers.get(at));
    if all.any(|number| number > max) {
        return Err(wrong("a sample refers to a stack that is not there"));
    }
    Ok(())
}

fn wrong(what: &str) -> Failure {
    Failure::Inconsistent(format!("call_stacks: {what}"))
}

impl Reader<'_> {
    pub(super) fn call_stacks(&mut self, group: &Group) -> Result<CallStacks, Failure> {
        let texts = self.strings(group, "text")?;
        let functions: Vec<u32> = self.numbers(group, "function", None)?;
        self.within_limit(functions.len(), "frames of stacks")?;
        let modules: Vec<u32> = self.numbers(group, "module", Some(functions.len()))?;
        let callers: Vec<u32> = self.numbers(group, "caller", None)?;
        self.within_limit(callers.len(), "stacks of calls")?;
        let frames: Vec<u32> = self.numbers(group, "frame", Some(callers.len()))?;
        let functions = functions.into_iter().zip(modules);
        let callers = callers.into_iter().zip(frames);
        let stacks = CallStacks {
            texts,
            frames: functions
                .map(|(function, module)| CallFrame { function, module })
                .collect(),
            stacks: callers.map(|(caller, frame)| CallStack { caller, frame }).collect(),
        };
        if stacks.texts.first().is_some_and(|first| !first.is_empty()) {
            return Err(wrong("the first text is not empty"));
        }
        if !stacks.is_consistent() {
            return Err(wrong("numbers that refer to nothing, or a stack that is too deep"));
        }
        Ok(stacks)
    }
}
