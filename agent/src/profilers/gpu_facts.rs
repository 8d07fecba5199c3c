//! What a probe finds of a container's GPUs and of what else uses them, and what that closes.

mod attribution;

use std::collections::BTreeSet;

use flopwatch_api::capability::Capability;
use flopwatch_api::capture::CaptureGpu;
use flopwatch_api::profiler::ProfilerType;
use flopwatch_api::reason::CaptureReason;

use super::facts::closed;

/// Beginnings of the UUIDs of GPUs and of their partitions. A device plugin may name them
/// otherwise.
const UUIDS: [&str; 2] = ["GPU-", "MIG-"];

/// What was found of a container's GPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuFacts {
    /// The newest CUDA that the node's driver serves, such as 13000 for 13.0; none where NVML does
    /// not say.
    pub driver: Option<u32>,
    /// Whether the driver gives counters to administrators alone (`RmProfilingAdminOnly`); false
    /// where it does not say.
    pub counters_restricted: bool,
    /// Whether the container's first process is an administrator of the node (CAP_SYS_ADMIN).
    pub administrator: bool,
    /// Services of the node that hold the GPUs' counters.
    pub counter_holders: BTreeSet<&'static str>,
    /// GPUs and partitions of the node on which a server of the Multi-Process Service runs.
    pub mps_servers: Vec<MpsServer>,
    /// GPUs and partitions on which its processes are.
    pub devices: Vec<DeviceFacts>,
    /// Ids of those that the kubelet gave it, as their device plugin names them; empty where it
    /// cannot be asked.
    pub assigned: Vec<String>,
}

/// A GPU or partition on which a server of the Multi-Process Service runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MpsServer {
    /// `GPU-...`, or `MIG-...` for a partition.
    pub uuid: String,
    /// Whether it is a service of the node. Another one may be any program by that name.
    pub of_node: bool,
}

/// What was found of one GPU or MIG partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceFacts {
    /// `GPU-...`, or `MIG-...` for a partition.
    pub uuid: String,
    /// Bytes of its memory that nobody has; none where the driver does not tell.
    pub memory_free: Option<u64>,
    /// Whether it is a MIG partition.
    pub partition: bool,
    /// Whether processes of others are on it.
    pub others: bool,
}

/// What is in a profiler's way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// Why, for programs.
    pub reason: CaptureReason,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub remedy: &'static str,
}

impl Obstacle {
    /// A profiler that it closes.
    pub fn close(&self, profiler: ProfilerType) -> Capability {
        closed(profiler, self.reason, &self.found, self.remedy)
    }
}

impl GpuFacts {
    /// The GPUs and partitions that the container has, by the kubelet's word and by what NVML
    /// shows. Its own environment, which is its to write, says nothing of it.
    pub(crate) fn gpus(&self) -> Vec<CaptureGpu> {
        attribution::gpus(&self.assigned, &self.devices)
    }

    /// Whether a server of the Multi-Process Service is on one of the container's GPUs; on any of
    /// the node, where these are not known, if it is a service of the node: no pod closes the
    /// counters of its neighbors.
    fn has_mps_server(&self) -> bool {
        let gpus = self.gpus();
        let has_uuid = |gpu: &CaptureGpu| UUIDS.iter().any(|uuid| gpu.uuid.starts_with(uuid));
        let known = !gpus.is_empty() && gpus.iter().all(has_uuid);
        self.mps_servers.iter().any(|server| {
            let is_own = gpus.iter().any(|gpu| gpu.uuid == server.uuid);
            is_own || !known && server.of_node
        })
    }

    /// How the program shares its GPU through the Multi-Process Service; none where it does not.
    /// `mps_client`: it was started as a client of it.
    pub(crate) fn shared_through_mps(&self, mps_client: bool) -> Option<&'static str> {
        if mps_client {
            return Some("The program is a client of the Multi-Process Service (CUDA_MPS_PIPE_DIRECTORY is set).");
        }
        self.has_mps_server()
            .then_some("A server of the Multi-Process Service runs on its GPU.")
    }

    /// Why the container's own program could not read hardware counters. `mps_client`: it was
    /// started as a client of the Multi-Process Service. What only an administrator can change goes
    /// first, what ends by itself last.
    pub(crate) fn counters_closed(&self, mps_client: bool) -> Option<Obstacle> {
        if self.counters_restricted && !self.administrator {
            return Some(Obstacle {
                reason: CaptureReason::CountersRestricted,
                found: "The driver gives counters to administrators alone (RmProfilingAdminOnly is 1), and the container has no \
                        CAP_SYS_ADMIN."
                    .to_owned(),
                remedy: "Ask the node's administrator to load the driver with NVreg_RestrictProfilingToAdminUsers=0; every \
                         container of the node may read counters then. Nsight Systems' traces and metrics need none.",
            });
        }
        if let Some(found) = self.shared_through_mps(mps_client) {
            return Some(Obstacle {
                reason: CaptureReason::MultiProcessService,
                found: found.to_owned(),
                remedy: "Run the pod on a GPU without the service: counters there are those of all its clients. Nsight \
                         Systems' traces and metrics work with it.",
            });
        }
        if self.counter_holders.is_empty() {
            return None;
        }
        let holders: Vec<_> = self.counter_holders.iter().copied().collect();
        Some(Obstacle {
            reason: CaptureReason::CountersBusy,
            found: format!("{} on the node holds the GPUs' counters.", holders.join(" and ")),
            remedy: "Pause it while the session runs (dcgmi profile --pause, afterwards --resume), or take the DCGM_FI_PROF \
                     metrics out of what it watches.",
        })
    }

    /// Why a profiler that takes `needed` bytes of device memory could make the program run out of
    /// it.
    pub(crate) fn memory_closed(&self, needed: u64) -> Option<Obstacle> {
        let least = self
            .devices
            .iter()
            .filter_map(|device| Some((device.memory_free?, device)));
        let (free, device) = least.min_by_key(|(free, _)| *free)?;
        (free < needed).then(|| Obstacle {
            reason: CaptureReason::GpuMemory,
            found: format!(
                "{} has {} MiB of memory left, and the profiler may take {} MiB.",
                device.uuid,
                free >> 20,
                needed >> 20
            ),
            remedy: "Let the program leave more of it free (a smaller share reserved at its start), or choose Metrics.",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profilers::facts::Facts;

    fn facts(change: impl FnOnce(&mut Facts)) -> Facts {
        let mut facts = Facts::default();
        change(&mut facts);
        facts
    }

    fn server(uuid: &str, of_node: bool) -> MpsServer {
        MpsServer {
            uuid: uuid.to_owned(),
            of_node,
        }
    }

    #[test]
    fn counters_are_open_unless_something_is_found_that_closes_them() {
        let mps = |facts: &mut Facts| {
            let variable = ("CUDA_MPS_PIPE_DIRECTORY".to_owned(), "/tmp/nvidia-mps".to_owned());
            facts.variables.extend([variable]);
        };
        let restricted = |facts: &mut Facts| facts.gpu.counters_restricted = true;
        let dcgm = |facts: &mut Facts| facts.gpu.counter_holders = BTreeSet::from(["nv-hostengine"]);
        let administrator = |facts: &mut Facts| (facts.gpu.counters_restricted, facts.gpu.administrator) = (true, true);
        let rows = [
            (facts(|_| ()), None, ""),
            (facts(administrator), None, ""),
            (
                facts(restricted),
                Some("CountersRestricted"),
                "NVreg_RestrictProfilingToAdminUsers=0",
            ),
            (
                facts(mps),
                Some("MultiProcessService"),
                "client of the Multi-Process Service",
            ),
            (
                facts(|facts| facts.gpu.mps_servers = vec![server("GPU-1", true)]),
                Some("MultiProcessService"),
                "runs on its GPU",
            ),
            (facts(dcgm), Some("CountersBusy"), "nv-hostengine on the node holds"),
            (facts(dcgm), Some("CountersBusy"), "dcgmi profile --pause"),
        ];
        for (facts, reason, says) in rows {
            let closed = facts.counters_closed();
            let found = closed.as_ref().map(|closed| closed.reason.as_str());
            assert_eq!(found, reason, "{facts:?}");
            let said = closed
                .map(|closed| closed.close(ProfilerType::Ncu).remedy)
                .unwrap_or_default();
            assert!(said.contains(says), "{said}");
            assert!(said.len() < 1024, "it fits into a status: {said}");
        }
    }

    #[test]
    fn a_program_by_the_name_of_mps_closes_no_counters_of_gpus_that_it_is_not_on() {
        let closed = |assigned: &[&str], servers: &[MpsServer]| {
            let gpu = GpuFacts {
                assigned: assigned.iter().map(|id| (*id).to_owned()).collect(),
                mps_servers: servers.to_vec(),
                ..GpuFacts::default()
            };
            gpu.counters_closed(false).is_some()
        };
        let (of_node, of_pod) = (server("GPU-1", true), server("GPU-1", false));
        for of_either in [&of_node, &of_pod] {
            assert!(closed(&["GPU-1::3"], std::slice::from_ref(of_either)), "{of_either:?}");
            assert!(!closed(&["GPU-2"], std::slice::from_ref(of_either)), "{of_either:?}");
        }
        // Where its GPUs are not known, or a device plugin names them otherwise, any may be its
        // own.
        for unknown in [&[][..], &["nvidia0"], &["GPU-2", "nvidia0"]] {
            assert!(closed(unknown, std::slice::from_ref(&of_node)), "{unknown:?}");
            assert!(!closed(unknown, std::slice::from_ref(&of_pod)), "{unknown:?}");
        }
    }

    #[test]
    fn what_lasts_is_said_before_what_can_be_paused() {
        let mut facts = facts(|facts| facts.gpu.counter_holders = BTreeSet::from(["dcgm-exporter"]));
        facts.gpu.mps_servers = vec![server("GPU-1", true)];
        assert_eq!(
            facts.counters_closed().unwrap().reason,
            CaptureReason::MultiProcessService
        );
        facts.gpu.counters_restricted = true;
        assert_eq!(
            facts.counters_closed().unwrap().reason,
            CaptureReason::CountersRestricted
        );
    }

    #[test]
    fn the_fullest_gpu_decides_and_one_that_does_not_tell_is_passed_over() {
        let device = |uuid: &str, memory_free| DeviceFacts {
            uuid: uuid.to_owned(),
            memory_free,
            ..DeviceFacts::default()
        };
        let mut gpu = GpuFacts::default();
        assert_eq!(gpu.memory_closed(1), None);
        gpu.devices = vec![
            device("GPU-1", None),
            device("GPU-2", Some(100 << 20)),
            device("MIG-3", Some(50 << 20)),
        ];
        assert_eq!(gpu.memory_closed(50 << 20), None);
        let closed = gpu.memory_closed(60 << 20).unwrap();
        assert_eq!(closed.reason, CaptureReason::GpuMemory);
        assert!(
            closed.found.contains("MIG-3 has 50 MiB") && closed.found.contains("60 MiB"),
            "{closed:?}"
        );
    }
}
