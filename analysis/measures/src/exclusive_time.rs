//! What each nanosecond of a GPU went to: computation, communication that no computation hides,
//! copies that nothing hides, or nothing.

use schemars::JsonSchema;
use serde::Serialize;

use crate::interval::{Interval, Intervals};
use crate::kernel_class::WorkClass;
use crate::work::GpuWork;

/// The parts of a window. They add up to it exactly:
/// `compute + exposed communication + exposed memory + idle = window`.
///
/// Time that is shared counts for computation first, then for communication, as in TraceLens
/// (`gpu_event_analyser.py`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExclusiveTime {
    /// Length of the window in ns.
    pub window_ns: u64,
    /// Time in ns in which a kernel computed.
    pub compute_ns: u64,
    /// Time in ns in which communication ran and nothing computed.
    pub exposed_communication_ns: u64,
    /// Time in ns in which a copy or memset ran and nothing computed or communicated.
    pub exposed_memory_ns: u64,
    /// Time in ns in which nothing ran.
    pub idle_ns: u64,
}

impl ExclusiveTime {
    /// Of the parts of `busy` within `window`.
    pub fn of(busy: &BusyByClass, window: Interval) -> Self {
        let BusyByClass {
            compute,
            communication,
            memory,
        } = busy.clip(window);
        let hidden_by = compute.union(&communication);
        Self {
            window_ns: window.len(),
            compute_ns: compute.len_ns(),
            exposed_communication_ns: communication.subtract(&compute).len_ns(),
            exposed_memory_ns: memory.subtract(&hidden_by).len_ns(),
            idle_ns: hidden_by.union(&memory).gaps(window).len_ns(),
        }
    }

    /// Time in ns in which anything ran.
    pub const fn busy_ns(&self) -> u64 {
        self.window_ns.saturating_sub(self.idle_ns)
    }

    /// The sum of two windows' parts, each part by itself.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            window_ns: self.window_ns.saturating_add(other.window_ns),
            compute_ns: self.compute_ns.saturating_add(other.compute_ns),
            exposed_communication_ns: self
                .exposed_communication_ns
                .saturating_add(other.exposed_communication_ns),
            exposed_memory_ns: self.exposed_memory_ns.saturating_add(other.exposed_memory_ns),
            idle_ns: self.idle_ns.saturating_add(other.idle_ns),
        }
    }
}

/// When work of each class ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BusyByClass {
    /// Kernels that compute.
    pub compute: Intervals,
    /// Kernels and copies that communicate.
    pub communication: Intervals,
    /// Copies and memsets.
    pub memory: Intervals,
}

impl BusyByClass {
    /// Of `work`.
    pub fn of(work: &GpuWork) -> Self {
        Self {
            compute: work.busy_with(WorkClass::Compute),
            communication: work.busy_with(WorkClass::Communication),
            memory: work.busy_with(WorkClass::Memory),
        }
    }

    /// What of it lies within `window`.
    #[must_use]
    pub fn clip(&self, window: Interval) -> Self {
        Self {
            compute: self.compute.clip(window),
            communication: self.communication.clip(window),
            memory: self.memory.clip(window),
        }
    }

    /// When anything ran.
    pub fn any(&self) -> Intervals {
        self.compute.union(&self.communication).union(&self.memory)
    }

    /// When work of `class` ran.
    pub const fn class(&self, class: WorkClass) -> &Intervals {
        match class {
            WorkClass::Compute => &self.compute,
            WorkClass::Communication => &self.communication,
            WorkClass::Memory => &self.memory,
        }
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::mixed::{timeline, work};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_are_those_of_each_nanosecond_and_add_up_to_the_window(
            pieces in work(), start in 0_u64..150, length in 0_u64..100,
        ) {
            let window = Interval::new(start, start + length);
            let found = ExclusiveTime::of(&BusyByClass::of(&GpuWork::of(&timeline(&pieces))), window);
            let mut counted = [0_u64; 4];
            for at in start..start + length {
                let runs = |kind| pieces.iter().any(|(start, length, _, of)| *of == kind && (*start..start + length).contains(&at));
                counted[(0..3).find(|kind| runs(*kind)).unwrap_or(3)] += 1;
            }
            prop_assert_eq!(
                [found.compute_ns, found.exposed_communication_ns, found.exposed_memory_ns, found.idle_ns],
                counted
            );
            prop_assert_eq!(counted.iter().sum::<u64>(), found.window_ns);
        }
    }
}
