//! The faults of cycles: how often each is drawn, and which sessions it can strike.

use fastrand::Rng;
use flopwatch_api::profiler::ProfilerType;
use serde::{Deserialize, Serialize};

use crate::soak::draw::drawn;

/// What strikes a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Fault {
    /// Nothing: the session takes its course.
    None,
    /// The session is stopped with `stop: Keep`.
    Keep,
    /// The session is stopped with `stop: Discard`.
    Discard,
    /// The session is deleted.
    SessionDeleted,
    /// A tool of the agent that reads the capture is killed.
    ToolKilled,
    /// The session of Nsight Systems beside the workload is killed.
    SessionKilled,
    /// Something else has the name that PyTorch's processes ask at.
    EndpointTaken,
    /// The workload is told to end, as it may at any time.
    TargetEnded,
    /// The target pod is deleted.
    TargetDeleted,
    /// The node's agent is killed.
    AgentKilled,
    /// The session controller is killed.
    ControllerKilled,
    /// The API server stands still.
    ApiServerAway,
}

impl Fault {
    /// Each with its share of a thousand draws; one that cannot strike a session's profiler is
    /// drawn anew.
    pub const ALL: [(Self, u32); 12] = [
        (Self::None, 300),
        (Self::Keep, 120),
        (Self::Discard, 200),
        (Self::SessionDeleted, 110),
        (Self::ToolKilled, 80),
        (Self::SessionKilled, 30),
        (Self::EndpointTaken, 50),
        (Self::TargetEnded, 25),
        (Self::TargetDeleted, 25),
        (Self::AgentKilled, 30),
        (Self::ControllerKilled, 15),
        (Self::ApiServerAway, 15),
    ];

    /// Draws one that can strike a session of that profiler.
    pub(super) fn drawn(random: &mut Rng, profiler: ProfilerType) -> Self {
        let possible = Self::ALL.into_iter().filter(|(fault, _)| fault.strikes(profiler));
        let possible: Vec<_> = possible.collect();
        drawn(random, &possible).unwrap_or(Self::None)
    }

    /// Whether it can strike a session of that profiler. The target of one with Nsight Compute is a
    /// copy of the workload: what strikes the workload does not strike it.
    pub const fn strikes(self, profiler: ProfilerType) -> bool {
        match self {
            Self::SessionKilled => matches!(profiler, ProfilerType::Auto | ProfilerType::Nsys),
            Self::EndpointTaken => matches!(profiler, ProfilerType::Kineto),
            Self::TargetEnded | Self::TargetDeleted => !matches!(profiler, ProfilerType::Ncu),
            _ => true,
        }
    }

    /// Whether it takes something away from all workloads at once.
    pub const fn is_shared(self) -> bool {
        matches!(self, Self::AgentKilled | Self::ControllerKilled | Self::ApiServerAway)
    }

    /// Whether the workload cannot be profiled again afterwards, and is replaced.
    pub const fn takes_target(self) -> bool {
        matches!(self, Self::SessionKilled | Self::TargetEnded | Self::TargetDeleted)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_shares_make_a_thousand() {
        assert_eq!(Fault::ALL.iter().map(|(_, share)| share).sum::<u32>(), 1000);
    }

    #[test]
    fn a_session_is_struck_by_what_can_strike_it_alone_and_by_all_of_that() {
        let (mut random, draws) = (Rng::with_seed(3), 4000);
        for profiler in [ProfilerType::Nsys, ProfilerType::Kineto, ProfilerType::Ncu] {
            let mut seen: BTreeMap<Fault, u32> = BTreeMap::new();
            for _ in 0..draws {
                *seen.entry(Fault::drawn(&mut random, profiler)).or_default() += 1;
            }
            let possible = Fault::ALL.iter().filter(|(fault, _)| fault.strikes(profiler));
            let all: u32 = possible.clone().map(|(_, share)| share).sum();
            for (fault, share) in possible.clone() {
                let (times, expected) = (seen[fault], draws * share / all);
                assert!(
                    times * 3 > expected && times < expected * 3,
                    "{profiler:?}, {fault:?}: {times} of {expected}"
                );
            }
            assert_eq!(seen.len(), possible.count(), "{profiler:?}: {seen:?}");
        }
    }
}
