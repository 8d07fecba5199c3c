//! Which session a cycle asks for, what strikes it, and when: a function of the seed and the
//! cycle's number.

use std::time::Duration;

use fastrand::Rng;
use flopwatch_api::profiler::ProfilerType;

use crate::soak::fault::Fault;
use crate::soak::ground::Ground;

/// Time that PyTorch's processes may take, beyond a window, to be free for the next: what they were
/// told before it (8 s), until they ask again (5 s), and the machine.
const KINETO_BUSY_TIMEOUT: Duration = Duration::from_secs(15);

/// What one cycle does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Number of the cycle, from 0.
    pub cycle: u64,
    /// The workload that it profiles.
    pub ground: Ground,
    /// The profiler that its session names.
    pub profiler: ProfilerType,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Draw {
    /// Each with its share, for sessions of these profilers alone where there are some.
    AtRandom(Vec<ProfilerType>),
    /// Every fault and every profiler once, and so on.
    InTurn,
}

impl Draw {
    /// The only profilers of its sessions; none where they have all.
    pub(super) fn only(&self) -> &[ProfilerType] {
        match self {
            Self::AtRandom(only) => only,
            Self::InTurn => &[],
        }
    }
}

impl Plan {
    /// The cycles in which every fault and every profiler has had its turn.
    pub const TURNS: [(Ground, ProfilerType, Fault); 19] = [
        (Ground::Frameworks, ProfilerType::Kineto, Fault::None),
        (Ground::SimulatedGpu, ProfilerType::Cuda, Fault::None),
        (Ground::SimulatedGpu, ProfilerType::Cuda, Fault::Keep),
        (Ground::Sample, ProfilerType::Nsys, Fault::None),
        (Ground::Sample, ProfilerType::Auto, Fault::Keep),
        (Ground::Sample, ProfilerType::Nsys, Fault::Discard),
        (Ground::Frameworks, ProfilerType::Jax, Fault::None),
        (Ground::Sample, ProfilerType::Nsys, Fault::SessionDeleted),
        (Ground::Sample, ProfilerType::Metrics, Fault::None),
        (Ground::Sample, ProfilerType::Ncu, Fault::None),
        (Ground::Sample, ProfilerType::Recorder, Fault::None),
        (Ground::Sample, ProfilerType::Nsys, Fault::ToolKilled),
        (Ground::Frameworks, ProfilerType::Kineto, Fault::EndpointTaken),
        (Ground::Sample, ProfilerType::Nsys, Fault::SessionKilled),
        (Ground::Sample, ProfilerType::Nsys, Fault::TargetEnded),
        (Ground::Sample, ProfilerType::Nsys, Fault::TargetDeleted),
        (Ground::Sample, ProfilerType::Nsys, Fault::AgentKilled),
        (Ground::Sample, ProfilerType::Nsys, Fault::ControllerKilled),
        (Ground::Sample, ProfilerType::Nsys, Fault::ApiServerAway),
    ];

    /// The plan of a cycle.
    pub fn of(seed: u64, cycle: u64, draw: &Draw) -> Self {
        // Neighbouring seeds of this generator give related first numbers; the multiplication parts
        // them.
        let mut random = Rng::with_seed(seed ^ cycle.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (ground, profiler, fault) = match draw {
            Draw::AtRandom(only) => {
                let ground = Ground::drawn(&mut random, only);
                let profiler = ground.profiler(&mut random, only);
                (ground, profiler, Fault::drawn(&mut random, profiler))
            }
            Draw::InTurn => {
                let place = usize::try_from(cycle).unwrap_or_default() % Self::TURNS.len();
                let turn = Self::TURNS.get(place).copied();
                turn.unwrap_or((Ground::Sample, ProfilerType::Nsys, Fault::None))
            }
        };
        let seconds = match (profiler, fault) {
            // Its window has its whole length, whoever stops it.
            (ProfilerType::Kineto, Fault::Keep | Fault::Discard) => 2,
            // Long enough to be struck in it; the recorder's is over at once.
            (_, Fault::Keep | Fault::Discard) => 60,
            _ => 1,
        };
        // The name is taken in the first moments of a capture or not at all.
        let latest = if fault == Fault::EndpointTaken { 1000 } else { 4000 };
        Self {
            cycle,
            ground,
            profiler,
            fault,
            delay: Duration::from_millis(random.u64(..latest)),
            seconds,
            pause: Duration::from_millis(random.u64(2000..15_000)),
        }
    }

    /// How long after its session was created the workload may still be at work for it, though the
    /// session has ended: PyTorch records on until the window's end, and nobody can stop it.
    pub(super) fn busy(&self) -> Duration {
        if self.profiler == ProfilerType::Kineto {
            KINETO_BUSY_TIMEOUT + Duration::from_secs(u64::from(self.seconds))
        } else {
            Duration::ZERO
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn at_random(seed: u64, cycle: u64) -> Plan {
        Plan::of(seed, cycle, &Draw::AtRandom(Vec::new()))
    }

    #[test]
    fn a_seed_repeats_and_another_differs() {
        for cycle in 0..1000 {
            assert_eq!(at_random(7, cycle), at_random(7, cycle));
        }
        assert_ne!(at_random(7, 1), at_random(8, 1));
    }

    #[test]
    fn a_thousand_cycles_have_every_profiler_on_pods_that_can_do_it_under_what_can_strike_it() {
        let mut seen = BTreeSet::new();
        for cycle in 0..1000 {
            let plan = at_random(7, cycle);
            assert!(
                plan.ground.has(plan.profiler) && plan.fault.strikes(plan.profiler),
                "{plan:?}"
            );
            seen.insert((plan.ground, plan.profiler));
        }
        assert_eq!(seen.len(), 10, "{seen:?}");
    }

    #[test]
    fn a_run_of_some_profilers_has_no_session_of_another() {
        let only = Draw::AtRandom(vec![ProfilerType::Cuda, ProfilerType::Metrics]);
        let plans: Vec<_> = (0..100).map(|cycle| Plan::of(7, cycle, &only)).collect();
        let profilers: BTreeSet<_> = plans.iter().map(|plan| plan.profiler).collect();
        assert_eq!(profilers, BTreeSet::from([ProfilerType::Cuda, ProfilerType::Metrics]));
        assert!(plans.iter().all(|plan| plan.ground.has(plan.profiler)));
    }

    #[test]
    fn the_turns_have_every_fault_and_every_profiler_and_no_session_that_cannot_be() {
        let turns = u64::try_from(Plan::TURNS.len()).unwrap();
        let plans: Vec<_> = (turns..2 * turns)
            .map(|cycle| Plan::of(7, cycle, &Draw::InTurn))
            .collect();
        let faults: BTreeSet<_> = plans.iter().map(|plan| plan.fault).collect();
        let profilers: BTreeSet<_> = plans.iter().map(|plan| plan.profiler).collect();
        assert_eq!((faults.len(), profilers.len()), (Fault::ALL.len(), 8));
        for plan in plans {
            assert!(
                plan.ground.has(plan.profiler) && plan.fault.strikes(plan.profiler),
                "{plan:?}"
            );
        }
    }

    #[test]
    fn pytorch_is_left_alone_until_its_window_is_over() {
        let of_kineto = (0..1000).map(|cycle| at_random(7, cycle));
        for plan in of_kineto {
            assert_eq!(
                plan.busy() > Duration::from_secs(8 + u64::from(plan.seconds)),
                plan.profiler == ProfilerType::Kineto,
                "{plan:?}"
            );
        }
    }
}
