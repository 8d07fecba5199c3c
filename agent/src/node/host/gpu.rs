//! What else uses a container's GPUs, and what the driver lets it read: from procfs and from what
//! NVML said last.

use std::collections::BTreeSet;
use std::fmt;

use flopwatch_attach::process::{ProcessId, Procfs};
use flopwatch_nvml::{GpuState, Resolver};

use crate::profilers::gpu_facts::{DeviceFacts, GpuFacts, MpsServer};

/// Parameter of the driver: counters are for administrators alone.
const ADMIN_ONLY: &str = "RmProfilingAdminOnly";
/// Name of the Multi-Process Service's server and of its control daemon, as the kernel cuts both.
const MPS: &str = "nvidia-cuda-mps";
/// Programs that DCGM's engine runs in.
const DCGM: [&str; 2] = ["nv-hostengine", "dcgm-exporter"];
/// Processes of these names, of the node's services, whose memory is looked at; a node has one or
/// two.
const LOOKED_AT: usize = 8;

/// The services of a node's GPUs: what runs in no pod, and in pods of namespaces that whoever
/// installs the agent named. Others may call themselves what they like.
#[derive(Clone)]
pub(super) struct Services {
    namespaces: BTreeSet<String>,
    /// Finds the pod of a process.
    resolver: Resolver,
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services")
            .field("namespaces", &self.namespaces)
            .finish_non_exhaustive()
    }
}

impl Services {
    /// Services that run in no pod, or in pods of these namespaces.
    pub(super) fn new(namespaces: impl IntoIterator<Item = String>, resolver: Resolver) -> Self {
        Self {
            namespaces: namespaces.into_iter().collect(),
            resolver,
        }
    }

    /// Whether a process is of one.
    fn include(&self, procfs: &Procfs, pid: i32) -> bool {
        if procfs.container(pid).is_none() {
            return true;
        }
        let Ok(of_node) = u32::try_from(pid) else { return false };
        let container = (self.resolver)(of_node);
        container.is_some_and(|container| self.namespaces.contains(&container.namespace))
    }
}

/// Looks at the GPUs of a container that has these processes. `states` are all of the node. What
/// the kubelet gave the container, and what NVML says of the driver, is for others to ask.
pub(super) fn inspect(procfs: &Procfs, processes: &[ProcessId], states: &[GpuState], services: &Services) -> GpuFacts {
    let first = processes.first();
    GpuFacts {
        driver: None,
        counters_restricted: procfs.driver_parameter(ADMIN_ONLY).is_some_and(|only| only != 0),
        // One that cannot be looked at is taken for an ordinary one.
        administrator: first.is_some_and(|process| procfs.is_administrator(*process).unwrap_or(false)),
        counter_holders: counter_holders(procfs, services),
        mps_servers: mps_servers(
            states,
            |pid| procfs.name(pid).is_some_and(|name| name == MPS),
            |pid| services.include(procfs, pid),
        ),
        devices: devices(processes, states),
        assigned: Vec::new(),
    }
}

/// The GPUs and partitions that these processes are on.
fn devices(processes: &[ProcessId], states: &[GpuState]) -> Vec<DeviceFacts> {
    let own: BTreeSet<u32> = processes
        .iter()
        .filter_map(|process| u32::try_from(process.pid).ok())
        .collect();
    let on_them = states
        .iter()
        .filter(|state| state.processes.iter().any(|pid| own.contains(pid)));
    let devices = on_them.map(|state| DeviceFacts {
        uuid: state.device.uuid.clone(),
        memory_free: state.memory_free,
        partition: state.parent.is_some(),
        others: state.processes.iter().any(|pid| !own.contains(pid)),
    });
    devices.collect()
}

/// The GPUs and partitions on which a server of the Multi-Process Service is.
fn mps_servers(states: &[GpuState], is_mps: impl Fn(i32) -> bool, is_service: impl Fn(i32) -> bool) -> Vec<MpsServer> {
    let of_state = |state: &GpuState| {
        let pids = state.processes.iter().filter_map(|pid| i32::try_from(*pid).ok());
        let servers: Vec<i32> = pids.filter(|pid| is_mps(*pid)).collect();
        (!servers.is_empty()).then(|| MpsServer {
            uuid: state.device.uuid.clone(),
            of_node: servers.into_iter().any(&is_service),
        })
    };
    states.iter().filter_map(of_state).collect()
}

/// Services of the node that hold the counters: those of DCGM that have loaded its module for them.
fn counter_holders(procfs: &Procfs, services: &Services) -> BTreeSet<&'static str> {
    let named = procfs.pids().unwrap_or_default().into_iter().filter_map(|pid| {
        let name = procfs.name(pid)?;
        DCGM.into_iter().find(|known| *known == name).map(|name| (pid, name))
    });
    let holds = |pid| {
        let mapped = procfs.identify(pid).and_then(|process| procfs.mapped(process));
        mapped.is_ok_and(|mapped| mapped.dcgm_profiling)
    };
    named
        // Before they are counted: however many others there are by these names, they hide none.
        .filter(|(pid, _)| services.include(procfs, *pid))
        .take(LOOKED_AT)
        .filter(|(pid, _)| holds(*pid))
        .map(|(_, name)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use flopwatch_nvml::{ContainerIdentity, DeviceIdentity};

    const MODULE: &str = "/usr/lib/libdcgmmoduleprofiling.so.4";

    fn state(uuid: &str, processes: &[u32]) -> GpuState {
        GpuState {
            device: DeviceIdentity {
                index: 0,
                uuid: uuid.to_owned(),
                model: "G".to_owned(),
            },
            parent: None,
            memory_free: Some(7),
            processes: processes.to_vec(),
        }
    }

    fn process(pid: i32) -> ProcessId {
        ProcessId { pid, start_time: 1 }
    }

    /// Services of a node whose pods are in the namespace `team`, but for those of these processes.
    fn services(of_operator: &'static [u32]) -> Services {
        let resolver = move |pid: u32| {
            let namespace = if of_operator.contains(&pid) {
                "gpu-operator"
            } else {
                "team"
            };
            Some(ContainerIdentity {
                namespace: namespace.to_owned(),
                pod: "p".to_owned(),
                container: "main".to_owned(),
            })
        };
        Services::new(["gpu-operator".to_owned()], Arc::new(resolver))
    }

    #[test]
    fn a_container_has_the_gpus_that_its_processes_are_on() {
        let states = [
            state("GPU-1", &[10]),
            state("GPU-2", &[20, 99]),
            state("MIG-3", &[11, 20]),
        ];
        let of = |processes: &[i32]| {
            let processes: Vec<_> = processes.iter().copied().map(process).collect();
            devices(&processes, &states)
        };
        let uuids = |processes: &[i32]| {
            let devices = of(processes).into_iter().map(|device| device.uuid);
            devices.collect::<Vec<_>>()
        };
        assert_eq!(uuids(&[10, 11]), ["GPU-1", "MIG-3"]);
        assert_eq!(uuids(&[20]), ["GPU-2", "MIG-3"]);
        assert!(of(&[20]).iter().all(|device| device.others), "others are on both");
        assert!(uuids(&[5]).is_empty());
    }

    #[test]
    fn a_server_of_mps_is_where_its_process_is_and_told_apart_from_a_pods() {
        let states = [state("GPU-1", &[10, 98]), state("GPU-2", &[20]), state("GPU-3", &[99])];
        let found = mps_servers(&states, |pid| pid > 90, |pid| pid == 99);
        let found: Vec<_> = found
            .iter()
            .map(|server| (server.uuid.as_str(), server.of_node))
            .collect();
        assert_eq!(found, [("GPU-1", false), ("GPU-3", true)]);
    }

    /// A folder that looks like the procfs of a node. `in_pod`: whether that process is in one.
    fn node(processes: &[(i32, &str, &str)], in_pod: impl Fn(i32) -> bool) -> (tempfile::TempDir, Procfs) {
        let folder = tempfile::tempdir().unwrap();
        for (pid, name, library) in processes {
            let of = folder.path().join(pid.to_string());
            std::fs::create_dir_all(&of).unwrap();
            std::fs::write(of.join("comm"), format!("{name}\n")).unwrap();
            let stat = format!(
                "{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5{}\n",
                " 0".repeat(30)
            );
            std::fs::write(of.join("stat"), stat).unwrap();
            let maps = format!("7f0000000000-7f0000001000 r-xp 00000000 08:01 42 {library}\n");
            std::fs::write(of.join("maps"), maps).unwrap();
            let cgroup = if in_pod(*pid) {
                let pod = "pod0a1b2c3d-1111-2222-3333-444455556666";
                format!("0::/kubepods/burstable/{pod}/{pid:064x}\n")
            } else {
                "0::/system.slice/dcgm.service\n".to_owned()
            };
            std::fs::write(of.join("cgroup"), cgroup).unwrap();
        }
        let procfs = Procfs::new(folder.path());
        (folder, procfs)
    }

    #[test]
    fn dcgm_holds_the_counters_once_it_has_loaded_its_module_for_them() {
        let rows = [
            (
                vec![(7, "nv-hostengine", MODULE), (8, "python", "/usr/lib/libc.so.6")],
                vec!["nv-hostengine"],
            ),
            (vec![(7, "nv-hostengine", "/usr/lib/libdcgm.so.4")], vec![]),
            (vec![(7, "dcgm-exporter", MODULE)], vec!["dcgm-exporter"]),
            (vec![(7, "python", MODULE)], vec![]),
        ];
        for (processes, holders) in rows {
            let (_folder, procfs) = node(&processes, |_| false);
            let found = counter_holders(&procfs, &services(&[]));
            assert_eq!(found, BTreeSet::from_iter(holders), "{processes:?}");
        }
    }

    #[test]
    fn a_pods_process_by_dcgms_name_holds_no_counters_and_hides_none_that_does() {
        let mut processes: Vec<_> = (10..40).map(|pid| (pid, "nv-hostengine", MODULE)).collect();
        let (_folder, procfs) = node(&processes, |_| true);
        assert_eq!(counter_holders(&procfs, &services(&[])), BTreeSet::new());
        let found = counter_holders(&procfs, &services(&[39]));
        assert_eq!(
            found,
            BTreeSet::from(["nv-hostengine"]),
            "of a namespace that was named"
        );
        processes.push((7, "dcgm-exporter", MODULE));
        let (_folder, procfs) = node(&processes, |pid| pid != 7);
        let found = counter_holders(&procfs, &services(&[]));
        assert_eq!(found, BTreeSet::from(["dcgm-exporter"]), "the node's own");
    }

    #[test]
    fn what_the_driver_says_of_counters_is_a_fact() {
        let (folder, procfs) = node(&[(7, "python", "/usr/lib/libc.so.6")], |_| true);
        let looked = || inspect(&procfs, &[process(7)], &[state("GPU-1", &[7])], &services(&[]));
        assert!(!looked().counters_restricted);
        std::fs::create_dir_all(folder.path().join("driver/nvidia")).unwrap();
        std::fs::write(folder.path().join("driver/nvidia/params"), "RmProfilingAdminOnly: 1\n").unwrap();
        let facts = looked();
        assert!(facts.counters_restricted && !facts.administrator, "{facts:?}");
        let [device] = facts.devices.as_slice() else {
            panic!("{facts:?}");
        };
        assert!(!device.partition && !device.others, "{device:?}");
    }
}
