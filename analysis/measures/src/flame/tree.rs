//! Merged stacks.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use flopwatch_model::index;

use super::frame::{Frame, FrameKind};
use crate::interval::Interval;

/// Which of two captures: a difference holds both in one tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The first, or only, one.
    Before,
    /// The second one.
    After,
}

impl Side {
    /// Which of two values.
    pub const fn of<T: Copy>(self, [before, after]: [T; 2]) -> T {
        match self {
            Self::Before => before,
            Self::After => after,
        }
    }

    const fn of_mut<T>(self, [before, after]: &mut [T; 2]) -> &mut T {
        match self {
            Self::Before => before,
            Self::After => after,
        }
    }
}

/// A stack that occurred: the frame, and the stack without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) parent: u32,
    pub(super) frame: u32,
    /// Time in ns in which it was the innermost frame, per side.
    pub(super) own_ns: [u64; 2],
    /// How often it ran, per side.
    pub(super) count: [u64; 2],
    /// When it first ran, and on which side.
    pub(super) first: Option<(Side, Interval)>,
}

/// Stacks with their time, equal ones merged.
#[derive(Debug, Clone)]
pub struct FlameTree {
    frames: Vec<Frame>,
    known: HashMap<Frame, u32>,
    /// A node comes behind its parent; the first is all.
    nodes: Vec<Node>,
    children: HashMap<u64, u32, BuildHasherDefault<Spread>>,
}

impl Default for FlameTree {
    fn default() -> Self {
        let root = Node {
            parent: Self::ROOT,
            frame: 0,
            own_ns: [0; 2],
            count: [0; 2],
            first: None,
        };
        let mut tree = Self {
            frames: Vec::new(),
            known: HashMap::new(),
            nodes: vec![root],
            children: HashMap::default(),
        };
        tree.frame(FrameKind::All, "all");
        tree
    }
}

impl FlameTree {
    /// The node of all time.
    pub(super) const ROOT: u32 = 0;

    /// The number of a frame.
    pub(super) fn frame(&mut self, kind: FrameKind, name: &str) -> u32 {
        let frame = Frame {
            kind,
            name: name.to_owned(),
        };
        let next = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        *self.known.entry(frame).or_insert_with_key(|frame| {
            self.frames.push(frame.clone());
            next
        })
    }

    /// The frame of that number.
    pub(super) fn frame_at(&self, frame: u32) -> Option<&Frame> {
        self.frames.get(index(frame))
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node of `frame` inside `parent`.
    pub(super) fn child(&mut self, parent: u32, frame: u32) -> u32 {
        let next = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let key = u64::from(parent) << 32 | u64::from(frame);
        *self.children.entry(key).or_insert_with(|| {
            self.nodes.push(Node {
                parent,
                frame,
                own_ns: [0; 2],
                count: [0; 2],
                first: None,
            });
            next
        })
    }

    /// Adds to a node the time of its own and how often it ran.
    pub(super) fn spend(&mut self, node: u32, side: Side, time: Interval, count: u64) {
        if let Some(node) = self.nodes.get_mut(index(node)) {
            let own = side.of_mut(&mut node.own_ns);
            *own = own.saturating_add(time.len());
        }
        if count > 0 {
            self.occurs(node, side, time, count);
        }
    }

    /// Says that a node ran.
    pub(super) fn occurs(&mut self, node: u32, side: Side, time: Interval, count: u64) {
        if let Some(node) = self.nodes.get_mut(index(node)) {
            *side.of_mut(&mut node.count) += count;
            node.first.get_or_insert((side, time));
        }
    }
}

/// A hash of numbers that this program gives out: no one can choose them so that they collide.
#[derive(Debug, Clone, Copy, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 << 8 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let spread = (value ^ value >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ spread >> 32;
    }
}
