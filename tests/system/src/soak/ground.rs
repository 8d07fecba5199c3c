//! What a lane's workloads are: the sample workload, or real PyTorch and JAX.

use anyhow::{Context as _, Result};
use fastrand::Rng;
use flopwatch_api::preparation::PREPARE_LABEL;
use flopwatch_api::profiler::ProfilerType;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::frameworks::frameworks;
use crate::pods::{with_ncu_double, workload};

/// Seconds between two steps of PyTorch and JAX: all of these pods share the machine.
const PAUSE: &str = "0.02";

/// What a lane's workloads are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Ground {
    /// The sample workload.
    Sample,
    /// Steps of PyTorch and JAX, with the service of JAX.
    Frameworks,
}

impl Ground {
    /// Each with its share of a hundred cycles.
    const ALL: [(Self, u32); 2] = [(Self::Sample, 75), (Self::Frameworks, 25)];

    /// Draws one.
    pub(super) fn drawn(random: &mut Rng) -> Self {
        let [(first, share), (second, _)] = Self::ALL;
        if random.u32(..100) < share { first } else { second }
    }

    /// How many of that many lanes it has: a third of them are of PyTorch and JAX, whose pods take
    /// a gigabyte each, and one at least.
    pub(super) const fn lanes(self, all: usize) -> usize {
        let of_frameworks = if all < 6 { 1 } else { all / 3 };
        match self {
            Self::Frameworks => of_frameworks,
            Self::Sample => all.saturating_sub(of_frameworks),
        }
    }

    /// The profilers that its sessions name, each with its share of a hundred.
    const fn profilers(self) -> &'static [(ProfilerType, u32)] {
        match self {
            // A session with Nsight Compute makes a copy of the workload, which a double of that
            // program starts.
            Self::Sample => &[
                (ProfilerType::Nsys, 50),
                (ProfilerType::Auto, 20),
                (ProfilerType::Metrics, 15),
                (ProfilerType::Recorder, 10),
                (ProfilerType::Ncu, 5),
            ],
            Self::Frameworks => &[
                (ProfilerType::Kineto, 40),
                (ProfilerType::Jax, 30),
                (ProfilerType::Nsys, 15),
                (ProfilerType::Metrics, 15),
            ],
        }
    }

    /// Draws the profiler of one of its sessions.
    pub(super) fn profiler(self, random: &mut Rng) -> ProfilerType {
        let mut place = random.u32(..100);
        for (profiler, share) in self.profilers() {
            if place < *share {
                return *profiler;
            }
            place -= share;
        }
        ProfilerType::Nsys
    }

    /// Whether a session of its workloads may name that profiler.
    #[cfg(test)]
    pub(super) fn has(self, profiler: ProfilerType) -> bool {
        self.profilers().iter().any(|(one, _)| *one == profiler)
    }

    /// What a session with that profiler must hold, where it is not what it must hold by itself.
    /// What Nsight Systems sees of PyTorch without a GPU are its system calls.
    pub(super) fn require(self, profiler: ProfilerType) -> Option<Value> {
        let calls = self == Self::Frameworks && profiler == ProfilerType::Nsys;
        calls.then(|| json!(["os_runtime"]))
    }

    /// Name of the namespaces of its lanes.
    pub(super) const fn namespace(self) -> &'static str {
        match self {
            Self::Sample => "soak",
            Self::Frameworks => "soak-frameworks",
        }
    }

    /// Begin of the names of its lanes.
    pub(super) const fn lane(self) -> &'static str {
        match self {
            Self::Sample => "sample",
            Self::Frameworks => "frameworks",
        }
    }

    /// A workload that ends with `code` when it is told to end.
    pub(super) fn pod(self, name: &str, prepared: bool, code: i32) -> Result<Value> {
        let code = code.to_string();
        match self {
            Self::Sample => {
                let arguments = ["--range-micros", "2000", "--fail-code", &code];
                let mut pod = with_ncu_double(workload(name, prepared, &arguments));
                if prepared {
                    pod["metadata"]["labels"][PREPARE_LABEL] = json!("nsys.recorder");
                }
                Ok(pod)
            }
            Self::Frameworks => {
                let mut pod = frameworks(name, "nsys.kineto.jax", 1)?;
                if !prepared {
                    let labels = pod["metadata"]["labels"].as_object_mut().context("no labels")?;
                    labels.remove(PREPARE_LABEL);
                }
                let arguments = pod["spec"]["containers"][0]["args"]
                    .as_array_mut()
                    .context("no arguments")?;
                arguments.extend([json!(code), json!(PAUSE)]);
                Ok(pod)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ground_has_a_lane_and_all_lanes_have_one() {
        for all in 2..20 {
            let (sample, frameworks) = (Ground::Sample.lanes(all), Ground::Frameworks.lanes(all));
            assert!(sample > 0 && frameworks > 0 && sample + frameworks == all, "{all}");
        }
        assert_eq!((Ground::Sample.lanes(6), Ground::Frameworks.lanes(6)), (4, 2));
    }

    #[test]
    fn shares_make_a_hundred() {
        let of_grounds: u32 = Ground::ALL.iter().map(|(_, share)| share).sum();
        assert_eq!(of_grounds, 100);
        for (ground, _) in Ground::ALL {
            let of_profilers: u32 = ground.profilers().iter().map(|(_, share)| share).sum();
            assert_eq!(of_profilers, 100, "{ground:?}");
        }
    }
}
