//! Stacks of calls that samples were taken in, each kept once.

use std::borrow::Cow;

use super::{Capture, Category, ColumnId, Values, index};

/// The stacks that [`ColumnId::CallStack`] refers to.
///
/// A stack is its innermost frame and the stack of the caller, so that stacks share what they have
/// in common. Number 0 is no stack, and number 1 the first of [`stacks`](Self::stacks).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallStacks {
    /// The texts that frames refer to; the first is empty and stands for none.
    pub texts: Vec<String>,
    /// The frames that stacks refer to.
    pub frames: Vec<CallFrame>,
    /// The stacks, each behind that of its caller.
    pub stacks: Vec<CallStack>,
}

/// A function, and the file of the program that it is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallFrame {
    /// Its name, among [`CallStacks::texts`]; 0 where the source does not know it.
    pub function: u32,
    /// The program or library that it is in, among the texts; 0 where the source does not say.
    pub module: u32,
}

/// A frame, and the stack that it was called in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallStack {
    /// Number of the caller's stack; 0 where none is known.
    pub caller: u32,
    /// The innermost frame, a place in [`CallStacks::frames`].
    pub frame: u32,
}

impl CallStacks {
    /// Most frames of a stack.
    pub const MAX_FRAMES: usize = 1024;

    /// The name of a frame of which nothing is known.
    pub const UNKNOWN: &'static str = "[unknown]";

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// The stack of that number; `None` for 0 and where there is none.
    pub fn stack(&self, number: u32) -> Option<CallStack> {
        self.stacks.get(index(number.checked_sub(1)?)).copied()
    }

    /// The frames of the stack of that number, the innermost first.
    pub fn frames_of(&self, number: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.stack(number);
        let callers = std::iter::successors(first, move |stack| self.stack(stack.caller));
        callers.take(Self::MAX_FRAMES).map(|stack| stack.frame)
    }

    /// The name of the frame at `frame`: of its function, or else of what it is in, in brackets.
    pub fn name(&self, frame: u32) -> Cow<'_, str> {
        let frame = self.frames.get(index(frame)).copied().unwrap_or_default();
        match (self.text(frame.function), self.text(frame.module)) {
            ("", "") => Cow::Borrowed(Self::UNKNOWN),
            // As profilers call the operating system's kernel: `[kernel.kallsyms]`.
            ("", module) if module.starts_with('[') => Cow::Borrowed(module),
            ("", module) => Cow::Owned(format!("[{module}]")),
            (function, _) => Cow::Borrowed(function),
        }
    }

    fn text(&self, at: u32) -> &str {
        self.texts.get(index(at)).map_or("", String::as_str)
    }

    /// Whether every number in it refers to something, callers come first, and no stack is deeper
    /// than [`MAX_FRAMES`](Self::MAX_FRAMES).
    pub fn is_consistent(&self) -> bool {
        let is_text = |at: u32| index(at) < self.texts.len();
        let are_texts = |frame: &CallFrame| is_text(frame.function) && is_text(frame.module);
        let mut depths: Vec<usize> = Vec::with_capacity(self.stacks.len());
        for CallStack { caller, frame } in &self.stacks {
            let around = match caller.checked_sub(1) {
                None => Some(0),
                Some(caller) => depths.get(index(caller)).copied(),
            };
            match around {
                Some(around) if around < Self::MAX_FRAMES && index(*frame) < self.frames.len() => {
                    depths.push(around + 1);
                }
                _ => return false,
            }
        }
        self.frames.iter().all(are_texts)
    }

    /// Adds the stacks of `other` behind its own; gives what their numbers grew by.
    pub(super) fn append(&mut self, other: Self) -> u32 {
        let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let [texts, frames, stacks] = [self.texts.len(), self.frames.len(), self.stacks.len()].map(length);
        self.texts.extend(other.texts);
        self.frames.extend(other.frames.into_iter().map(|frame| CallFrame {
            function: frame.function.saturating_add(texts),
            module: frame.module.saturating_add(texts),
        }));
        self.stacks.extend(other.stacks.into_iter().map(|stack| CallStack {
            caller: moved(stack.caller, stacks),
            frame: stack.frame.saturating_add(frames),
        }));
        stacks
    }

    /// The same stacks, but for those that none of the numbers `used` needs, in an order that does
    /// not depend on theirs, each once; and the new number of each old one.
    fn published(&self, used: &[u32]) -> (Self, Vec<u32>) {
        let mut is_used = vec![false; self.stacks.len() + 1];
        for number in used {
            if let Some(used) = is_used.get_mut(index(*number)) {
                *used = true;
            }
        }
        // Callers come first, so that from the last on each is known to be used before its own is.
        for (at, stack) in self.stacks.iter().enumerate().rev() {
            if is_used.get(at + 1).copied().unwrap_or(false)
                && let Some(caller) = is_used.get_mut(index(stack.caller))
            {
                *caller = true;
            }
        }
        let stacks = (1_u32..).zip(&self.stacks);
        let kept: Vec<(u32, CallStack)> = stacks
            .filter(|(number, _)| is_used.get(index(*number)).copied().unwrap_or(false))
            .map(|(number, stack)| (number, *stack))
            .collect();
        let mut published = Self::default();
        let frames = published.take_frames(self, &kept);
        let numbers = published.take_stacks(&kept, &frames, self.stacks.len());
        (published, numbers)
    }

    /// Takes the frames of the stacks `kept` of `of`; gives the new place of each old one.
    fn take_frames(&mut self, of: &Self, kept: &[(u32, CallStack)]) -> Vec<u32> {
        let texts_of = |at: u32| {
            let frame = of.frames.get(index(at)).copied().unwrap_or_default();
            (of.text(frame.function), of.text(frame.module))
        };
        let mut used: Vec<u32> = kept.iter().map(|(_, stack)| stack.frame).collect();
        used.sort_unstable();
        used.dedup();
        let mut texts: Vec<&str> = used
            .iter()
            .map(|at| texts_of(*at))
            .flat_map(<[&str; 2]>::from)
            .collect();
        texts.push("");
        texts.sort_unstable();
        texts.dedup();
        let number_of = |text: &str| {
            let at = texts.binary_search(&text).unwrap_or(0);
            u32::try_from(at).unwrap_or(u32::MAX)
        };
        let new = |at: u32| {
            let (function, module) = texts_of(at);
            CallFrame {
                function: number_of(function),
                module: number_of(module),
            }
        };
        self.frames = used.iter().map(|at| new(*at)).collect();
        self.frames.sort_unstable();
        self.frames.dedup();
        let mut new_numbers = vec![0; of.frames.len()];
        for at in used {
            let frame = self.frames.binary_search(&new(at)).unwrap_or(0);
            if let Some(slot) = new_numbers.get_mut(index(at)) {
                *slot = u32::try_from(frame).unwrap_or(u32::MAX);
            }
        }
        self.texts = texts.into_iter().map(str::to_owned).collect();
        new_numbers
    }

    /// Takes the stacks `kept`, those with the fewest frames first; gives the new number of each of
    /// the `count` old ones.
    fn take_stacks(&mut self, kept: &[(u32, CallStack)], frames: &[u32], count: usize) -> Vec<u32> {
        let mut depths = vec![0_usize; count + 1];
        let mut levels: Vec<Vec<(u32, CallStack)>> = Vec::new();
        for (number, stack) in kept {
            let depth = depths.get(index(stack.caller)).copied().unwrap_or(0);
            if let Some(own) = depths.get_mut(index(*number)) {
                *own = depth + 1;
            }
            levels.resize_with(levels.len().max(depth + 1), Vec::new);
            if let Some(level) = levels.get_mut(depth) {
                level.push((*number, *stack));
            }
        }
        let mut numbers = vec![0_u32; count + 1];
        for level in levels {
            let renumbered = level.into_iter().map(|(number, stack)| {
                let new = |new_numbers: &[u32], at: u32| new_numbers.get(index(at)).copied().unwrap_or(0);
                let stack = CallStack {
                    caller: new(&numbers, stack.caller),
                    frame: new(frames, stack.frame),
                };
                (stack, number)
            });
            let mut renumbered: Vec<(CallStack, u32)> = renumbered.collect();
            renumbered.sort_unstable();
            let first = self.stacks.len();
            for (stack, number) in renumbered {
                let is_known = self.stacks.len() > first && self.stacks.last() == Some(&stack);
                if !is_known {
                    self.stacks.push(stack);
                }
                if let Some(slot) = numbers.get_mut(index(number)) {
                    *slot = u32::try_from(self.stacks.len()).unwrap_or(u32::MAX);
                }
            }
        }
        numbers
    }
}

/// A number of a stack behind `before` others.
pub(super) fn moved(number: u32, before: u32) -> u32 {
    if number == 0 { 0 } else { number.saturating_add(before) }
}

impl Capture {
    /// Brings [`Capture::call_stacks`] into their published order: what no sample refers to is left
    /// out, equal stacks are one, and a sample that refers to no stack has none.
    pub fn sort_call_stacks(&mut self) {
        let stacks = std::mem::take(&mut self.call_stacks);
        let samples = self.events.get_mut(&Category::CpuSample);
        let Some(Values::U32(values)) = samples.and_then(|samples| samples.column_mut(ColumnId::CallStack)) else {
            return;
        };
        let (published, numbers) = stacks.published(values);
        for value in values {
            *value = numbers.get(index(*value)).copied().unwrap_or(0);
        }
        // None at all is as where nothing was sampled.
        if !published.is_empty() {
            self.call_stacks = published;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, Events};

    fn stacks(texts: &[&str], frames: &[(u32, u32)], stacks: &[(u32, u32)]) -> CallStacks {
        let frames = frames.iter().map(|(function, module)| CallFrame {
            function: *function,
            module: *module,
        });
        let stacks = stacks.iter().map(|(caller, frame)| CallStack {
            caller: *caller,
            frame: *frame,
        });
        CallStacks {
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
            frames: frames.collect(),
            stacks: stacks.collect(),
        }
    }

    /// `main` calls `work` and something of `libc.so`.
    fn known() -> CallStacks {
        let frames = [(1, 2), (3, 2), (0, 4), (0, 0)];
        let texts = ["", "main", "train", "work", "libc.so"];
        stacks(&texts, &frames, &[(0, 0), (1, 1), (1, 2), (0, 3)])
    }

    fn names(stacks: &CallStacks, number: u32) -> Vec<String> {
        let frames = stacks.frames_of(number);
        frames.map(|frame| stacks.name(frame).into_owned()).collect()
    }

    /// A capture with a sample of each of the stacks `of`.
    fn capture(call_stacks: CallStacks, of: &[u64]) -> Capture {
        let mut events = Events::new(Category::CpuSample);
        events.names.push("f".to_owned());
        for stack in of {
            events.push(Event::default(), &[*stack]);
        }
        Capture {
            session_start_utc_ns: Some(0),
            events: [(Category::CpuSample, events)].into(),
            call_stacks,
            ..Capture::default()
        }
    }

    fn sampled(capture: &Capture) -> Vec<Vec<String>> {
        let events = &capture.events[&Category::CpuSample];
        let number = |at| u32::try_from(events.number(ColumnId::CallStack, at).unwrap()).unwrap();
        let numbers = (0..events.len()).map(number);
        numbers.map(|number| names(&capture.call_stacks, number)).collect()
    }

    #[test]
    fn a_stack_is_its_frame_and_those_around_it() {
        let known = known();
        assert!(known.is_consistent());
        assert_eq!(names(&known, 2), ["work", "main"]);
        assert_eq!(names(&known, 3), ["[libc.so]", "main"]);
        assert_eq!(names(&known, 4), ["[unknown]"]);
        let kernel = stacks(&["", "[kernel.kallsyms]"], &[(0, 1)], &[(0, 0)]);
        assert_eq!(names(&kernel, 1), ["[kernel.kallsyms]"]);
        assert_eq!([0, 5, u32::MAX].map(|none| names(&known, none).len()), [0; 3]);
    }

    #[test]
    fn what_refers_to_nothing_or_to_itself_is_not_consistent() {
        for (frame, of) in [
            ((9, 0), vec![]),
            ((0, 9), vec![]),
            ((0, 0), vec![(0, 1)]),
            ((0, 0), vec![(1, 0)]),
            ((0, 0), vec![(2, 0), (0, 0)]),
        ] {
            assert!(!stacks(&[""], &[frame], &of).is_consistent(), "{frame:?} {of:?}");
        }
        let deep = |count: usize| {
            let callers = (0_u32..).take(count).map(|caller| (caller, 0));
            stacks(&[""], &[(0, 0)], &callers.collect::<Vec<_>>()).is_consistent()
        };
        assert!(deep(CallStacks::MAX_FRAMES));
        assert!(!deep(CallStacks::MAX_FRAMES + 1));
    }

    #[test]
    fn stacks_are_published_once_in_an_order_of_their_own_and_without_what_is_not_used() {
        let mut one = capture(known(), &[3, 2, 0, 3]);
        // The same stacks, some of them twice, by other numbers.
        let texts = ["", "libc.so", "work", "main", "train", "other", "main"];
        let frames = [(0, 1), (2, 4), (3, 4), (5, 4), (6, 4)];
        let other = stacks(&texts, &frames, &[(0, 3), (0, 4), (0, 2), (3, 0), (2, 0), (2, 1)]);
        let mut other = capture(other, &[4, 6, 0, 5]);
        let expected = sampled(&one);
        assert_eq!(sampled(&other), expected);
        one.sort_call_stacks();
        other.sort_call_stacks();
        assert_eq!(one, other);
        assert_eq!(sampled(&one), expected);
        assert!(one.call_stacks.is_consistent());
        assert_eq!((one.call_stacks.stacks.len(), one.call_stacks.texts.len()), (3, 5));
    }

    #[test]
    fn a_sample_of_a_stack_that_is_not_there_has_none() {
        let mut forged = capture(known(), &[77]);
        forged.sort_call_stacks();
        assert_eq!(sampled(&forged), [Vec::<String>::new()]);
        assert_eq!(forged.call_stacks, CallStacks::default());
        let mut nothing = Capture {
            call_stacks: known(),
            ..Capture::default()
        };
        nothing.sort_call_stacks();
        assert_eq!(nothing, Capture::default());
    }

    #[test]
    fn captures_that_are_merged_keep_their_stacks() {
        let both = || vec![capture(known(), &[2]), capture(known(), &[3, 0])];
        let mut merged = Capture::merge(both()).unwrap();
        let expected = [&["work", "main"][..], &["[libc.so]", "main"], &[]];
        assert_eq!(sampled(&merged), expected);
        merged.sort_call_stacks();
        assert_eq!(sampled(&merged), expected);
        assert_eq!(merged.call_stacks.stacks.len(), 3);
    }
}
