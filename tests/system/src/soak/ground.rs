//! What a lane's workloads are: the sample workload, real PyTorch and JAX, or kernels of a
//! simulated GPU.

use anyhow::{Context as _, Result};
use fastrand::Rng;
use flopwatch_api::preparation::{PREPARE_LABEL, PREPARED_ANNOTATION, PREPARED_FOR_ANNOTATION};
use flopwatch_api::profiler::ProfilerType;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::frameworks::frameworks;
use crate::pods::{labelled, with_ncu_double, workload};
use crate::simulated_gpu::steady;
use crate::soak::draw::drawn;

/// What a lane's workloads are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Ground {
    /// The sample workload.
    Sample,
    /// Steps of PyTorch and JAX, with the service of JAX.
    Frameworks,
    /// Launches of kernels on a simulated GPU.
    SimulatedGpu,
}

impl Ground {
    /// Each with its share of a hundred cycles.
    const ALL: [(Self, u32); 3] = [(Self::Sample, 60), (Self::Frameworks, 25), (Self::SimulatedGpu, 15)];

    /// Draws one, of those whose sessions name one of `only`, where there are some.
    pub(super) fn drawn(random: &mut Rng, only: &[ProfilerType]) -> Self {
        let named = Self::ALL
            .into_iter()
            .filter(|(ground, _)| !ground.named(only).is_empty());
        let named: Vec<_> = named.collect();
        drawn(random, &named).unwrap_or(Self::Sample)
    }

    /// How many of that many lanes each of these grounds has, one at least: a third are of PyTorch
    /// and JAX, whose pods take a gigabyte each, a sixth of the simulated GPU. The first ground has
    /// what is left.
    pub(super) fn lanes(grounds: &[Self], all: usize) -> Vec<usize> {
        let Some((_, others)) = grounds.split_first() else {
            return Vec::new();
        };
        let others = others.iter().map(|ground| match ground {
            Self::Sample => 1,
            Self::Frameworks => (all / 3).max(1),
            Self::SimulatedGpu => (all / 6).max(1),
        });
        let others: Vec<usize> = others.collect();
        let left = all.saturating_sub(others.iter().sum());
        [left].into_iter().chain(others).collect()
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
            Self::SimulatedGpu => &[(ProfilerType::Cuda, 100)],
        }
    }

    /// Those of its profilers that are of `only`, all where there is none.
    fn named(self, only: &[ProfilerType]) -> Vec<(ProfilerType, u32)> {
        let profilers = self.profilers().iter().copied();
        profilers
            .filter(|(profiler, _)| only.is_empty() || only.contains(profiler))
            .collect()
    }

    /// Draws the profiler of one of its sessions, of `only` where there are some.
    pub(super) fn profiler(self, random: &mut Rng, only: &[ProfilerType]) -> ProfilerType {
        drawn(random, &self.named(only)).unwrap_or(ProfilerType::Nsys)
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
            Self::SimulatedGpu => "soak-simulated-gpu",
        }
    }

    /// Begin of the names of its lanes.
    pub(super) const fn lane(self) -> &'static str {
        match self {
            Self::Sample => "sample",
            Self::Frameworks => "frameworks",
            Self::SimulatedGpu => "simulated-gpu",
        }
    }

    /// Whether its prepared workloads are started by the launcher, with a session of Nsight Systems
    /// beside them.
    pub(super) const fn has_launcher(self) -> bool {
        !matches!(self, Self::SimulatedGpu)
    }

    /// Whether what its workloads count are ranges, which a flight recorder counts too.
    pub(super) const fn counts_ranges(self) -> bool {
        !matches!(self, Self::SimulatedGpu)
    }

    /// The annotation of a pod that was prepared for all that its sessions need.
    pub(super) const fn prepared_annotation(self) -> &'static str {
        if self.has_launcher() {
            PREPARED_ANNOTATION
        } else {
            PREPARED_FOR_ANNOTATION
        }
    }

    /// A workload that ends with `code` when it is told to end.
    pub(super) fn pod(self, name: &str, prepared: bool, code: i32) -> Result<Value> {
        match self {
            Self::Sample => {
                let code = code.to_string();
                let arguments = ["--range-micros", "2000", "--fail-code", &code];
                let pod = with_ncu_double(workload(name, prepared, &arguments));
                Ok(if prepared { labelled(pod, "nsys.recorder") } else { pod })
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
                arguments.push(json!(code.to_string()));
                Ok(pod)
            }
            Self::SimulatedGpu => Ok(steady(name, prepared.then_some("cuda"), code)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ground_has_a_lane_and_all_lanes_have_one() {
        let grounds = Ground::ALL.map(|(ground, _)| ground);
        for some in [&grounds[..], &grounds[1..], &grounds[..2], &grounds[2..]] {
            for all in some.len()..20 {
                let lanes = Ground::lanes(some, all);
                let sum: usize = lanes.iter().sum();
                assert_eq!((lanes.len(), sum), (some.len(), all), "{some:?}");
                assert!(lanes.iter().all(|one| *one > 0), "{some:?} of {all}: {lanes:?}");
            }
        }
        assert_eq!(Ground::lanes(&grounds, 6), [3, 2, 1]);
    }

    #[test]
    fn a_ground_is_drawn_for_the_profilers_that_are_asked_for() {
        let mut random = Rng::with_seed(1);
        for profiler in ProfilerType::ALL {
            let ground = Ground::drawn(&mut random, &[profiler]);
            assert_eq!(ground.profiler(&mut random, &[profiler]), profiler);
        }
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
