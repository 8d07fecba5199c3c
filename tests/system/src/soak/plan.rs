//! Which fault strikes which cycle, and when: a function of the seed and the cycle's number.

use std::time::Duration;

use fastrand::Rng;
use serde::{Deserialize, Serialize};

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
    /// The profiler's session beside the workload is killed.
    SessionKilled,
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
    /// Each with its share of a thousand cycles.
    pub const ALL: [(Self, u32); 11] = [
        (Self::None, 320),
        (Self::Keep, 120),
        (Self::Discard, 220),
        (Self::SessionDeleted, 120),
        (Self::ToolKilled, 80),
        (Self::SessionKilled, 30),
        (Self::TargetEnded, 25),
        (Self::TargetDeleted, 25),
        (Self::AgentKilled, 30),
        (Self::ControllerKilled, 15),
        (Self::ApiServerAway, 15),
    ];

    /// The fault at a place among the thousand.
    fn at(mut place: u32) -> Self {
        for (candidate, share) in Self::ALL {
            if place < share {
                return candidate;
            }
            place -= share;
        }
        Self::None
    }

    /// Whether it takes something away from all workloads at once.
    pub const fn is_shared(self) -> bool {
        matches!(self, Self::AgentKilled | Self::ControllerKilled | Self::ApiServerAway)
    }

    /// Whether the workload cannot be profiled again afterwards, and is replaced.
    pub const fn takes_target(self) -> bool {
        matches!(self, Self::SessionKilled | Self::TargetEnded | Self::TargetDeleted)
    }

    /// Reasons with which the capture may end; none where it may be gone.
    pub const fn reasons(self) -> &'static [&'static str] {
        match self {
            Self::None | Self::ControllerKilled | Self::ApiServerAway => &["Succeeded"],
            // A stop may come before a capture was made, or before the window, or leave it too short to hold a range.
            Self::Keep => &["Succeeded", "Failed", "Discarded", "RequiredEventsMissing"],
            Self::Discard => &["Succeeded", "Discarded"],
            Self::SessionDeleted => &["Gone"],
            // The helpers that enter the container are the agent's tools too.
            Self::ToolKilled => &[
                "Succeeded",
                "AttachFailed",
                "CollectionFailed",
                "ImportFailed",
                "TransformFailed",
            ],
            Self::SessionKilled => &["Succeeded", "SessionGone", "CollectionFailed", "AttachFailed"],
            Self::TargetEnded | Self::TargetDeleted => &[
                "Succeeded",
                "TargetNotRunning",
                "ContainerRestarted",
                "CollectionFailed",
                "AttachFailed",
                "NoTargets",
            ],
            Self::AgentKilled => &["Succeeded", "AgentRestarted"],
        }
    }
}

/// What one cycle does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Its number, from 0.
    pub cycle: u64,
    /// What strikes it.
    pub fault: Fault,
    /// When, from the session's creation.
    pub delay: Duration,
    /// Length of the window in seconds.
    pub seconds: u32,
    /// How long a shared part stands still, where it is not killed.
    pub pause: Duration,
}

/// How the faults of a run are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Draw {
    /// Each with its share.
    AtRandom,
    /// Every fault once, and so on.
    InTurn,
}

impl Plan {
    /// The plan of a cycle.
    pub fn of(seed: u64, cycle: u64, draw: Draw) -> Self {
        // Neighbouring seeds of this generator give related first numbers; the multiplication parts them.
        let mut random = Rng::with_seed(seed ^ cycle.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let fault = match draw {
            Draw::AtRandom => Fault::at(random.u32(..1000)),
            Draw::InTurn => {
                let mut turn = Fault::ALL.iter().cycle();
                let place = usize::try_from(cycle).unwrap_or_default();
                turn.nth(place % Fault::ALL.len())
                    .map_or(Fault::None, |(fault, _)| *fault)
            }
        };
        let seconds = match fault {
            // Long enough to be struck in it.
            Fault::Keep | Fault::Discard => 60,
            _ => 1,
        };
        Self {
            cycle,
            fault,
            delay: Duration::from_millis(random.u64(..4000)),
            seconds,
            pause: Duration::from_millis(random.u64(2000..15_000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn the_shares_make_a_thousand() {
        assert_eq!(Fault::ALL.iter().map(|(_, share)| share).sum::<u32>(), 1000);
    }

    #[test]
    fn a_seed_repeats_and_every_fault_occurs() {
        let mut seen: BTreeMap<Fault, u32> = BTreeMap::new();
        for cycle in 0..1000 {
            let plan = Plan::of(7, cycle, Draw::AtRandom);
            assert_eq!(plan, Plan::of(7, cycle, Draw::AtRandom));
            *seen.entry(plan.fault).or_default() += 1;
        }
        assert_eq!(seen.len(), Fault::ALL.len(), "{seen:?}");
        for (fault, share) in Fault::ALL {
            assert!(
                seen[&fault] * 3 > share && seen[&fault] < share * 3,
                "{fault:?}: {seen:?}"
            );
        }
        let in_turn: BTreeSet<Fault> = (100..111).map(|cycle| Plan::of(7, cycle, Draw::InTurn).fault).collect();
        assert_eq!(in_turn.len(), Fault::ALL.len());
        assert_ne!(
            Plan::of(7, 1, Draw::AtRandom),
            Plan {
                cycle: 1,
                ..Plan::of(8, 1, Draw::AtRandom)
            }
        );
    }
}
