//! The stack of a thread as time goes on.

use super::frame::FrameKind;
use super::tree::{FlameTree, Side};
use crate::interval::Interval;

/// Most frames that are told apart in one stack. What begins above them counts as one frame,
/// [`TOO_DEEP`].
pub(super) const MAX_FRAMES: usize = 512;

/// The name of what is above [`MAX_FRAMES`].
const TOO_DEEP: &str = "(stack too deep)";

/// Something that ran on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) time: Interval,
    pub(super) frame: u32,
}

/// A frame that has not ended.
#[derive(Debug, Clone, Copy)]
struct OpenFrame {
    time: Interval,
    frame: u32,
    node: u32,
    /// Whether it was counted.
    is_counted: bool,
}

/// The open frames of a thread, the outermost first.
///
/// Frames need not nest: where one ends before another that began inside it, the other goes on
/// without it, so that every nanosecond belongs to exactly one stack.
#[derive(Debug)]
pub(super) struct Stack<'t> {
    pub(super) tree: &'t mut FlameTree,
    root: u32,
    open: Vec<OpenFrame>,
    /// How many of them have their node.
    resolved: usize,
    /// Whether the ends do not rise from the outermost to the innermost, so that the innermost ends
    /// first.
    nests: bool,
    now: u64,
    /// Which side of the tree has the time that passes; `None` where it is not counted.
    side: Option<Side>,
}

impl<'t> Stack<'t> {
    pub(super) const fn new(tree: &'t mut FlameTree, root: u32, side: Option<Side>) -> Self {
        Self {
            tree,
            root,
            open: Vec::new(),
            resolved: 0,
            nests: true,
            now: 0,
            side,
        }
    }

    /// A frame begins; none begins before an earlier one.
    pub(super) fn begin(&mut self, span: Span) {
        self.until(span.time.start);
        if span.time.is_empty() {
            return;
        }
        if self.open.len() > MAX_FRAMES {
            if let Some(last) = self.open.last_mut() {
                last.time.end = last.time.end.max(span.time.end);
            }
        } else {
            let frame = if self.open.len() == MAX_FRAMES {
                self.tree.frame(FrameKind::Rest, TOO_DEEP)
            } else {
                span.frame
            };
            self.open.push(OpenFrame {
                time: span.time,
                frame,
                node: 0,
                is_counted: false,
            });
        }
        if let [.., outer, inner] = self.open.as_slice() {
            self.nests &= inner.time.end <= outer.time.end;
        }
    }

    /// The node of the stack at `time`, below `root`.
    pub(super) fn at(&mut self, time: u64, root: u32) -> u32 {
        self.until(time);
        if root != self.root {
            self.root = root;
            self.resolved = 0;
        }
        self.resolve()
    }

    /// All frames end.
    pub(super) fn finish(mut self) {
        self.until(u64::MAX);
    }

    fn until(&mut self, time: u64) {
        while let Some((at, end)) = self.first_to_end().filter(|(_, end)| *end <= time) {
            self.pass(end);
            self.open.remove(at);
            self.resolved = self.resolved.min(at);
            if !self.nests {
                self.nests = self.open.is_sorted_by(|outer, inner| inner.time.end <= outer.time.end);
            }
        }
        self.pass(time);
    }

    fn first_to_end(&self) -> Option<(usize, u64)> {
        if self.nests {
            let last = self.open.last()?;
            return Some((self.open.len() - 1, last.time.end));
        }
        let ends = self.open.iter().map(|open| open.time.end).enumerate();
        ends.min_by_key(|(_, end)| *end)
    }

    /// Time passes up to `to`, and belongs to the stack as it is.
    fn pass(&mut self, to: u64) {
        if let Some(side) = self.side
            && to > self.now
            && !self.open.is_empty()
        {
            let node = self.resolve();
            self.tree.spend(node, side, Interval::new(self.now, to), 0);
        }
        self.now = self.now.max(to);
    }

    /// The node of the innermost frame.
    fn resolve(&mut self) -> u32 {
        let known = self.resolved.checked_sub(1).and_then(|last| self.open.get(last));
        let mut node = known.map_or(self.root, |last| last.node);
        for open in self.open.iter_mut().skip(self.resolved) {
            node = self.tree.child(node, open.frame);
            open.node = node;
            if let Some(side) = self.side
                && !open.is_counted
            {
                open.is_counted = true;
                self.tree.occurs(node, side, open.time, 1);
            }
        }
        self.resolved = self.open.len();
        node
    }
}
