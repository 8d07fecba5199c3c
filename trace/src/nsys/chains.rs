//! Stacks of calls by the ids of their strings, each kept once while samples are read.

use hashbrown::HashMap;

use flopwatch_model::{CallStack, CallStacks, count, index};

/// A function of a stack, and what it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Frame {
    /// Id of its name; `None` where it was not found, and its name is an address.
    pub(super) symbol: Option<u64>,
    /// Id of the name of the program or library.
    pub(super) module: u64,
}

/// The frames of one sample, the innermost first.
#[derive(Debug, Default)]
pub(super) struct Chain {
    frames: Vec<Frame>,
    left_out: u64,
}

impl Chain {
    /// Begins the next sample's.
    pub(super) fn clear(&mut self) {
        self.frames.clear();
        self.left_out = 0;
    }

    /// Adds the caller of the frame before; those behind the innermost
    /// [`MAX_FRAMES`](CallStacks::MAX_FRAMES) are left out.
    pub(super) fn push(&mut self, frame: Frame) {
        if self.frames.len() < CallStacks::MAX_FRAMES {
            self.frames.push(frame);
        } else {
            self.left_out += 1;
        }
    }

    /// Says that so many more frames are not there.
    pub(super) fn leave_out(&mut self, frames: u64) {
        self.left_out = self.left_out.saturating_add(frames);
    }
}

/// Stacks, each behind that of its caller. Number 0 is none, and number 1 the first.
#[derive(Debug, Default)]
pub(super) struct Chains {
    frames: Vec<Frame>,
    stacks: Vec<CallStack>,
    frame_numbers: HashMap<Frame, u32>,
    stack_numbers: HashMap<CallStack, u32>,
    left_out: u64,
}

impl Chains {
    /// How many stacks there are, callers' included.
    pub(super) fn len(&self) -> u64 {
        count(self.stacks.len())
    }

    /// The number of the stack of `chain`.
    pub(super) fn number(&mut self, chain: &Chain) -> u32 {
        self.left_out = self.left_out.saturating_add(chain.left_out);
        let mut number = 0;
        for frame in chain.frames.iter().rev() {
            let frame = self.frame(*frame);
            number = self.stack(CallStack { caller: number, frame });
        }
        number
    }

    /// Takes the stacks of `other` in: its numbers, by what they were.
    pub(super) fn merge(&mut self, other: &Self) -> Vec<u32> {
        self.left_out = self.left_out.saturating_add(other.left_out);
        let frames: Vec<u32> = other.frames.iter().map(|frame| self.frame(*frame)).collect();
        let new = |numbers: &[u32], old: u32| numbers.get(index(old)).copied().unwrap_or(0);
        let mut numbers = vec![0];
        for stack in &other.stacks {
            let stack = CallStack {
                caller: new(&numbers, stack.caller),
                frame: new(&frames, stack.frame),
            };
            numbers.push(self.stack(stack));
        }
        numbers
    }

    fn frame(&mut self, frame: Frame) -> u32 {
        let next = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        *self.frame_numbers.entry(frame).or_insert_with(|| {
            self.frames.push(frame);
            next
        })
    }

    fn stack(&mut self, stack: CallStack) -> u32 {
        let next = u32::try_from(self.stacks.len()).unwrap_or(u32::MAX).saturating_add(1);
        *self.stack_numbers.entry(stack).or_insert_with(|| {
            self.stacks.push(stack);
            next
        })
    }

    /// Frames that were left out, the frames that are there, and the stacks.
    pub(super) fn into_parts(self) -> (u64, Vec<Frame>, Vec<CallStack>) {
        (self.left_out, self.frames, self.stacks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(symbols: &[u64]) -> Chain {
        let mut chain = Chain::default();
        for symbol in symbols {
            let symbol = Some(*symbol);
            chain.push(Frame { symbol, module: 7 });
        }
        chain
    }

    fn numbers(chains: &mut Chains, of: &[&[u64]]) -> Vec<u32> {
        of.iter().map(|symbols| chains.number(&chain(symbols))).collect()
    }

    #[test]
    fn a_stack_has_one_number_and_shares_its_callers() {
        let mut chains = Chains::default();
        let of: [&[u64]; 5] = [&[3, 2, 1], &[4, 2, 1], &[3, 2, 1], &[], &[2, 1]];
        assert_eq!(numbers(&mut chains, &of), [3, 4, 3, 0, 2]);
        assert_eq!(chains.len(), 4);
    }

    #[test]
    fn parts_that_are_merged_are_as_if_one_had_read_all() {
        let (first, second): ([&[u64]; 2], [&[u64]; 2]) = ([&[2, 1], &[3, 1]], [&[4, 3, 1], &[9]]);
        let mut whole = Chains::default();
        let expected = [numbers(&mut whole, &first), numbers(&mut whole, &second)];
        let mut all = Chains::default();
        let found = [first, second].map(|of| {
            let mut part = Chains::default();
            let own = numbers(&mut part, &of);
            let new = all.merge(&part);
            own.into_iter().map(|number| new[index(number)]).collect::<Vec<_>>()
        });
        assert_eq!(found, expected);
        assert_eq!(all.into_parts(), whole.into_parts());
    }

    #[test]
    fn a_stack_of_a_million_frames_is_its_innermost_ones() {
        let symbols: Vec<u64> = (0..1_000_000).collect();
        let mut chains = Chains::default();
        let number = chains.number(&chain(&symbols));
        assert_eq!(index(number), CallStacks::MAX_FRAMES);
        let (left_out, frames, stacks) = chains.into_parts();
        assert_eq!(left_out, 1_000_000 - count(CallStacks::MAX_FRAMES));
        let innermost = stacks.last().and_then(|stack| frames.get(index(stack.frame)));
        assert_eq!(innermost.and_then(|frame| frame.symbol), Some(0));
    }
}
