//! Samples of the CPU by the stack of calls that each was taken in.

use std::collections::HashMap;

use flopwatch_model::{Category, ColumnId, Timeline, index};

use super::FlameGrouping;
use super::frame::FrameKind;
use super::tree::{FlameTree, Side};
use crate::interval::Interval;

/// The name of the frame of samples without a stack.
pub(super) const NO_STACK: &str = "(no stack)";

impl FlameTree {
    /// Adds the samples within `window`, each as one ns of its stack's innermost frame.
    pub(super) fn add_samples(&mut self, timeline: &Timeline, by: FlameGrouping, window: Interval, side: Side) {
        let Some(samples) = timeline.capture.events.get(&Category::CpuSample) else {
            return;
        };
        let numbers = samples.column(ColumnId::CallStack);
        let mut groups: Vec<Option<u32>> = vec![None; timeline.capture.rows.len()];
        let mut frames: Vec<Option<u32>> = vec![None; timeline.capture.call_stacks.frames.len()];
        // The node of each stack in each group.
        let mut nodes: HashMap<(u32, u32), u32> = HashMap::new();
        for (at, (start, row)) in samples.start_ns.iter().zip(&samples.row).enumerate() {
            let time = Interval::new(*start, start.saturating_add(1));
            if time.intersect(window).is_empty() {
                continue;
            }
            let known = groups.get(row.index()).copied().flatten();
            let group = known.unwrap_or_else(|| {
                let of_row = timeline.row(*row);
                let group = of_row.map_or(Self::ROOT, |row| self.group_of_cpu(row, by));
                if let Some(slot) = groups.get_mut(row.index()) {
                    *slot = Some(group);
                }
                group
            });
            let number = numbers.and_then(|numbers| numbers.get(at)).unwrap_or(0);
            let number = u32::try_from(number).unwrap_or(0);
            let node = *nodes
                .entry((group, number))
                .or_insert_with(|| self.node_of_stack(timeline, group, number, &mut frames));
            self.spend(node, side, time, 1);
        }
    }

    /// The node of the stack `number` inside `group`.
    fn node_of_stack(&mut self, timeline: &Timeline, group: u32, number: u32, frames: &mut [Option<u32>]) -> u32 {
        let stacks = &timeline.capture.call_stacks;
        let mut outermost_first: Vec<u32> = stacks.frames_of(number).collect();
        outermost_first.reverse();
        if outermost_first.is_empty() {
            let none = self.frame(FrameKind::Rest, NO_STACK);
            return self.child(group, none);
        }
        outermost_first.into_iter().fold(group, |around, frame_number| {
            let known = frames.get(index(frame_number)).copied().flatten();
            let frame = known.unwrap_or_else(|| {
                let frame = self.frame(FrameKind::Function, &stacks.name(frame_number));
                if let Some(slot) = frames.get_mut(index(frame_number)) {
                    *slot = Some(frame);
                }
                frame
            });
            self.child(around, frame)
        })
    }
}
