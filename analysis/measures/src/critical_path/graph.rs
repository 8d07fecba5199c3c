//! The graph, and the longest path through it.

use flopwatch_model::{Category, RowId, index};

use super::PathPart;
use crate::interval::Interval;

/// An event of the graph. Its nodes are its begin and its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) category: Category,
    pub(super) at: u32,
    pub(super) row: RowId,
    /// Its time within the window; of GPU work never empty.
    pub(super) time: Interval,
    /// Orders nodes of one time: the thread, and the node's place in it. GPU work has none.
    pub(super) thread: u32,
    pub(super) begin_place: u32,
    pub(super) end_place: u32,
    pub(super) is_gpu: bool,
}

/// Begin (even) or end (odd) of an item.
pub(super) type Node = u32;

pub(super) fn begin(item: u32) -> Node {
    item * 2
}

pub(super) fn end(item: u32) -> Node {
    item * 2 + 1
}

/// What waits for what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) from: Node,
    pub(super) to: Node,
    /// What it costs; `None` costs nothing.
    pub(super) part: Option<PathPart>,
    /// Less than the time between its nodes, where another edge has the rest.
    pub(super) less_ns: u64,
    /// The item that it belongs to.
    pub(super) subject: Option<u32>,
    /// The timeline's row, where it belongs to no item.
    pub(super) row: RowId,
}

/// An edge of the path that costs time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) part: PathPart,
    pub(super) time: Interval,
    pub(super) event: Option<(Category, u32)>,
    pub(super) row: RowId,
}

#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) items: Vec<Item>,
    pub(super) edges: Vec<Edge>,
}

const NO_EDGE: u32 = u32::MAX;

impl Graph {
    pub(super) fn add(&mut self, item: Item) -> u32 {
        self.items.push(item);
        u32::try_from(self.items.len() - 1).unwrap_or(u32::MAX)
    }

    fn item(&self, node: Node) -> Option<&Item> {
        self.items.get(index(node / 2))
    }

    pub(super) fn time(&self, node: Node) -> u64 {
        let time = self.item(node).map(|item| item.time).unwrap_or_default();
        if node.is_multiple_of(2) { time.start } else { time.end }
    }

    /// All nodes in an order in which every edge goes forward: by time, then ends of GPU work,
    /// nodes of threads in their order, and begins of GPU work.
    pub(super) fn order(&self) -> Vec<Node> {
        let count = u32::try_from(self.items.len() * 2).unwrap_or(u32::MAX);
        let mut order: Vec<Node> = (0..count).collect();
        order.sort_by_cached_key(|node| {
            let is_begin = node.is_multiple_of(2);
            let item = self.item(*node);
            let (class, thread, position) = item.map_or((0, 0, 0), |item| {
                let class = match (item.is_gpu, is_begin) {
                    (true, false) => 0_u8,
                    (false, _) => 1,
                    (true, true) => 2,
                };
                (
                    class,
                    item.thread,
                    if is_begin { item.begin_place } else { item.end_place },
                )
            });
            (self.time(*node), class, thread, position)
        });
        order
    }

    /// The edges of the longest path that cost time, in order. Edges that do not go forward in
    /// `order` come of clocks that differ, and are left out. `gpu_alone` leaves out what is not
    /// from GPU work to GPU work: what is left says how long the GPU takes without the processor.
    pub(super) fn longest(&self, order: &[Node], gpu_alone: bool) -> Vec<Step> {
        let mut positions = vec![0_u32; order.len()];
        for (position, node) in (0_u32..).zip(order) {
            if let Some(slot) = positions.get_mut(index(*node)) {
                *slot = position;
            }
        }
        let position = |node: Node| positions.get(index(node)).copied().unwrap_or(0);
        let on_gpu = |node: Node| self.item(node).is_some_and(|item| item.is_gpu);
        let mut edges: Vec<u32> = (0_u32..)
            .zip(&self.edges)
            .filter(|(_, edge)| position(edge.from) < position(edge.to))
            .filter(|(_, edge)| !gpu_alone || (on_gpu(edge.from) && on_gpu(edge.to)))
            .map(|(at, _)| at)
            .collect();
        let edge = |at: u32| self.edges.get(index(at));
        edges.sort_by_key(|at| edge(*at).map_or(0, |edge| position(edge.to)));
        let mut lengths = vec![0_u64; order.len()];
        let mut best = vec![NO_EDGE; order.len()];
        for at in edges {
            let Some(found) = edge(at) else { continue };
            let length = lengths.get(index(found.from)).copied().unwrap_or(0) + self.weight(found);
            let to = index(found.to);
            let (Some(longest), Some(by)) = (lengths.get_mut(to), best.get_mut(to)) else {
                continue;
            };
            if *by == NO_EDGE || length > *longest {
                (*longest, *by) = (length, at);
            }
        }
        let last = order
            .iter()
            .copied()
            .rev()
            .max_by_key(|node| lengths.get(index(*node)).copied().unwrap_or(0));
        let mut steps = Vec::new();
        let mut node = last;
        while let Some(found) = node.and_then(|node| edge(best.get(index(node)).copied().unwrap_or(NO_EDGE))) {
            steps.extend(self.step(found));
            node = Some(found.from);
        }
        steps.reverse();
        steps
    }

    fn weight(&self, edge: &Edge) -> u64 {
        if edge.part.is_none() {
            return 0;
        }
        let between = self.time(edge.to).saturating_sub(self.time(edge.from));
        between.saturating_sub(edge.less_ns)
    }

    fn step(&self, edge: &Edge) -> Option<Step> {
        let part = edge.part?;
        let subject = edge.subject.and_then(|item| self.items.get(index(item)));
        let start = self.time(edge.from);
        Some(Step {
            part,
            time: Interval::new(start, start + self.weight(edge)),
            event: subject.map(|item| (item.category, item.at)),
            row: subject.map_or(edge.row, |item| item.row),
        })
    }
}
