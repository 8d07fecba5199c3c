//! Reduces a flame tree to what people can look at: frames that are too short, too deep or too many
//! are summed into one, so that the total time stays.

use std::cmp::Reverse;

use flopwatch_model::index;

use super::frame::{Frame, FrameKind};
use super::tree::{FlameTree, Side};
use crate::interval::Interval;

/// Names of the frames that stand for others, which were summed.
pub(crate) const SMALL_KERNELS: &str = "(small kernels)";
const SHORT: &str = "(shorter frames)";
const DEEPER: &str = "(deeper frames)";

/// Limits of a flame graph; frames beyond them are summed into one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Minimum time of a frame in one stack over the whole capture, in ns; shorter frames are
    /// summed.
    pub min_ns: u64,
    /// Maximum number of frames around a frame; deeper frames are summed.
    pub max_depth: u32,
    /// Whether GPU operations shorter than `min_ns` are summed like other frames.
    pub group_small_kernels: bool,
    /// Maximum number of frames; where there are more, the shortest are summed.
    pub limit: usize,
}

impl Cut {
    /// No limits: every frame stays.
    pub const NOTHING: Self = Self {
        min_ns: 0,
        max_depth: u32::MAX,
        group_small_kernels: false,
        limit: usize::MAX,
    };
}

/// One row of a flame graph: a frame in one stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlameRow {
    /// Number of frames around the row, 0 for the row of all time.
    pub depth: u32,
    /// Index of the row's frame in [`Flame::frames`].
    pub frame: u32,
    /// Time in ns with that of the frames inside, per side; in a flame graph of samples their
    /// number.
    pub total_ns: [u64; 2],
    /// Time in ns without that of the frames inside, per side.
    pub own_ns: [u64; 2],
    /// Number of runs, per side; in a flame graph of GPU time only those of GPU operations.
    pub count: [u64; 2],
    /// Number of runs with those of the frames inside, per side.
    pub total_count: [u64; 2],
    /// The first run and its side; `None` of a row that stands for others.
    pub first: Option<(Side, Interval)>,
}

/// A flame graph within the limits of a [`Cut`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flame {
    /// The frames to which [`FlameRow::frame`] refers.
    pub frames: Vec<Frame>,
    /// The rows, each after the row around it, siblings by time with the longest first. The first
    /// row is all time.
    pub rows: Vec<FlameRow>,
    /// Number of frames in stacks that were summed into others.
    pub summed: u64,
    /// Minimum time in ns of a frame in a stack that stayed by itself: [`Cut::min_ns`], or more
    /// where [`Cut::limit`] asked for it.
    pub shortest_ns: u64,
}

impl Flame {
    /// The frame of a row; `None` where the row is of another flame graph.
    pub fn frame(&self, row: &FlameRow) -> Option<&Frame> {
        self.frames.get(index(row.frame))
    }

    /// Time in ns of the whole flame graph, per side.
    pub fn total_ns(&self) -> [u64; 2] {
        self.rows.first().map_or([0; 2], |all| all.total_ns)
    }

    /// Calls `each` for every row with time of its own, and its stack as indices in
    /// [`Flame::rows`]: the rows around it from the outermost one on, without the row of all time,
    /// then the row itself.
    pub fn stacks<E>(&self, mut each: impl FnMut(&[usize], &FlameRow) -> Result<(), E>) -> Result<(), E> {
        let mut stack = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            stack.truncate(index(row.depth).saturating_sub(1));
            if row.depth > 0 {
                stack.push(at);
            }
            if row.own_ns != [0; 2] {
                each(&stack, row)?;
            }
        }
        Ok(())
    }
}

const fn plus([before, after]: [u64; 2], [more_before, more_after]: [u64; 2]) -> [u64; 2] {
    [before.saturating_add(more_before), after.saturating_add(more_after)]
}

/// Sums over a node and all nodes inside it.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    ns: [u64; 2],
    count: [u64; 2],
    /// Nodes.
    nodes: u64,
}

impl Sum {
    const fn plus(self, other: Self) -> Self {
        Self {
            ns: plus(self.ns, other.ns),
            count: plus(self.count, other.count),
            nodes: self.nodes.saturating_add(other.nodes),
        }
    }

    /// Time in ns of the side for which it is longer.
    fn longest(self) -> u64 {
        let [before, after] = self.ns;
        before.max(after)
    }
}

struct Cutter<'a> {
    tree: &'a FlameTree,
    cut: Cut,
    sums: Vec<Sum>,
    /// Index in `children` at which the children of each node begin; one entry more than there are
    /// nodes.
    begins: Vec<u32>,
    children: Vec<u32>,
    /// Index in `flame.frames` of each of the tree's frames.
    numbers: Vec<Option<u32>>,
    rest: Vec<(&'static str, u32)>,
    flame: Flame,
}

impl FlameTree {
    /// The flame graph of the tree within the limits of `cut`.
    pub fn cut(&self, cut: &Cut) -> Flame {
        let mut cutter = Cutter::new(self, *cut);
        cutter.limit();
        cutter.flame.shortest_ns = cutter.cut.min_ns;
        cutter.emit(Self::ROOT, 0);
        cutter.flame
    }
}

impl<'a> Cutter<'a> {
    fn new(tree: &'a FlameTree, cut: Cut) -> Self {
        let nodes = tree.nodes();
        let sum = |node: &super::tree::Node| Sum {
            ns: node.own_ns,
            count: node.count,
            nodes: 1,
        };
        let mut sums: Vec<Sum> = nodes.iter().map(sum).collect();
        let mut begins = vec![0_u32; nodes.len() + 1];
        // Nodes come behind their parents.
        for (at, node) in nodes.iter().enumerate().skip(1).rev() {
            let sum = sums.get(at).copied().unwrap_or_default();
            if let Some(parent) = sums.get_mut(index(node.parent)) {
                *parent = parent.plus(sum);
            }
            if let Some(count) = begins.get_mut(index(node.parent)) {
                *count += 1;
            }
        }
        let mut before = 0;
        for slot in &mut begins {
            before += std::mem::replace(slot, before);
        }
        let mut next = begins.clone();
        let mut children = vec![0; nodes.len().saturating_sub(1)];
        for (at, node) in (0_u32..).zip(nodes).skip(1) {
            let Some(position) = next.get_mut(index(node.parent)) else {
                continue;
            };
            if let Some(slot) = children.get_mut(index(*position)) {
                *slot = at;
            }
            *position += 1;
        }
        Self {
            tree,
            cut,
            sums,
            begins,
            children,
            numbers: Vec::new(),
            rest: Vec::new(),
            flame: Flame::default(),
        }
    }

    fn sum(&self, node: u32) -> Sum {
        self.sums.get(index(node)).copied().unwrap_or_default()
    }

    fn kind(&self, node: u32) -> FrameKind {
        let frame = self.tree.nodes().get(index(node)).map_or(0, |node| node.frame);
        self.tree.frame_at(frame).map_or(FrameKind::Rest, |frame| frame.kind)
    }

    /// Raises the minimum time until at most [`Cut::limit`] frames are left.
    fn limit(&mut self) {
        let nodes = u32::try_from(self.sums.len()).unwrap_or(u32::MAX);
        let mut kept: Vec<u64> = (1..nodes)
            .filter(|node| self.is_kept(*node))
            .map(|node| self.sum(node).longest())
            .collect();
        if kept.len() > self.cut.limit {
            let (_, edge, _) = kept.select_nth_unstable_by_key(self.cut.limit, |ns| Reverse(*ns));
            self.cut.min_ns = edge.saturating_add(1);
            self.cut.group_small_kernels = true;
        }
    }

    fn is_kept(&self, node: u32) -> bool {
        let kind = self.kind(node);
        let is_named = matches!(kind, FrameKind::Rest | FrameKind::Group);
        let ns = self.sum(node).longest();
        ns > 0 && (ns >= self.cut.min_ns || is_named || (kind.is_gpu_work() && !self.cut.group_small_kernels))
    }

    fn emit(&mut self, at: u32, depth: u32) {
        let (tree, sum) = (self.tree, self.sum(at));
        let Some(node) = tree.nodes().get(index(at)) else {
            return;
        };
        let frame = self.number(node.frame);
        self.flame.rows.push(FlameRow {
            depth,
            frame,
            total_ns: sum.ns,
            own_ns: node.own_ns,
            count: node.count,
            total_count: sum.count,
            first: node.first,
        });
        let range = |at: usize| self.begins.get(at).map_or(0, |begin| index(*begin));
        let inside = self.children.get(range(index(at))..range(index(at) + 1));
        let mut inside: Vec<u32> = inside.unwrap_or_default().to_vec();
        inside.retain(|child| self.sum(*child).longest() > 0);
        if depth >= self.cut.max_depth {
            let all = inside
                .iter()
                .fold(Sum::default(), |all, child| all.plus(self.sum(*child)));
            self.emit_rest(DEEPER, all, depth);
            return;
        }
        inside.sort_by_cached_key(|child| {
            let [before, after] = self.sum(*child).ns;
            let frame = tree
                .nodes()
                .get(index(*child))
                .and_then(|node| tree.frame_at(node.frame));
            (Reverse(before.saturating_add(after)), frame)
        });
        let (mut small, mut short) = (Sum::default(), Sum::default());
        for child in inside {
            if self.is_kept(child) {
                self.emit(child, depth + 1);
            } else if self.kind(child).is_gpu_work() {
                small = small.plus(self.sum(child));
            } else {
                short = short.plus(self.sum(child));
            }
        }
        self.emit_rest(SMALL_KERNELS, small, depth);
        self.emit_rest(SHORT, short, depth);
    }

    /// Appends a row, inside the one at `depth`, that stands for summed frames.
    fn emit_rest(&mut self, name: &'static str, sum: Sum, depth: u32) {
        if sum.nodes == 0 {
            return;
        }
        self.flame.summed += sum.nodes;
        let known = self.rest.iter().find(|(known, _)| *known == name);
        let frame = if let Some((_, frame)) = known {
            *frame
        } else {
            let next = u32::try_from(self.flame.frames.len()).unwrap_or(u32::MAX);
            self.flame.frames.push(Frame {
                kind: FrameKind::Rest,
                name: name.to_owned(),
            });
            self.rest.push((name, next));
            next
        };
        self.flame.rows.push(FlameRow {
            depth: depth + 1,
            frame,
            total_ns: sum.ns,
            own_ns: sum.ns,
            count: sum.count,
            total_count: sum.count,
            first: None,
        });
    }

    fn number(&mut self, frame: u32) -> u32 {
        let at = index(frame);
        if self.numbers.len() <= at {
            self.numbers.resize(at + 1, None);
        }
        if let Some(number) = self.numbers.get(at).copied().flatten() {
            return number;
        }
        let next = u32::try_from(self.flame.frames.len()).unwrap_or(u32::MAX);
        self.flame.frames.extend(self.tree.frame_at(frame).cloned());
        if let Some(slot) = self.numbers.get_mut(at) {
            *slot = Some(next);
        }
        next
    }
}
