//! How containers are entered: with which program, bounded by what, and through which volumes.

use std::path::{Path, PathBuf};

use flopwatch_api::preparation::{RUN_DIR, TOOLS_DIR};
use flopwatch_attach::bounded::Gate;
use flopwatch_attach::graft::Target;
use flopwatch_attach::own_cgroup::{Limits, OwnCgroup};
use flopwatch_attach::process::{ProcessId, Procfs};
use flopwatch_attach::reexec::Reexec;
use flopwatch_attach::volumes::KubeletVolumes;
use tracing::warn;

use crate::node::Options;

/// Folder of our cgroups in each hierarchy.
pub(super) const CGROUP: &str = "flopwatch";
/// Name of the launcher beside this program.
const LAUNCHER: &str = "flopwatch-launcher";

/// What every entry into a container has in common.
#[derive(Clone, Debug)]
pub struct Entering {
    /// The host's processes.
    pub procfs: Procfs,
    /// How helper processes are started.
    pub reexec: Reexec,
    /// The host's cgroups.
    pub cgroup_root: PathBuf,
    /// The agent's own launcher, a static program.
    pub launcher: PathBuf,
    /// What the profiler may take in one container.
    pub limits: Limits,
    /// Where the node's kubelet keeps volumes; unknown when this agent runs in no pod of it, and
    /// then nothing is entered.
    pub kubelet: KubeletVolumes,
    /// Work on containers' files that may not come back, by container.
    pub gate: Gate,
}

impl Entering {
    /// As the options say.
    pub fn new(options: &Options, procfs: Procfs, reexec: Reexec) -> Self {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let kubelet = KubeletVolumes::of_own(&mounts, &options.tools_dir);
        if kubelet.is_none() {
            warn!(
                tools = %options.tools_dir.display(),
                "the tools are in no volume of a pod: where the kubelet keeps volumes is not known, and no container is entered"
            );
        }
        Self {
            procfs,
            reexec,
            cgroup_root: options.cgroup_root.clone(),
            launcher: options.launcher.clone().unwrap_or_else(beside_this_program),
            limits: Limits {
                memory_bytes: options.profiler_memory_bytes,
                processes: options.profiler_processes,
                cpu_millis: options.profiler_cpu_millis,
            },
            kubelet: kubelet.unwrap_or(KubeletVolumes::unknown()),
            gate: Gate::default(),
        }
    }

    /// The way into a container through one of its processes.
    pub fn target(&self, container_id: &str, process: ProcessId) -> Target {
        Target {
            reexec: self.reexec.clone(),
            procfs: self.procfs.clone(),
            process,
            launcher: self.launcher.clone(),
            run_dir: RUN_DIR.into(),
            tools_dir: TOOLS_DIR.into(),
            volumes: Some(self.kubelet.clone()),
            cgroup: Some(OwnCgroup {
                root: self.cgroup_root.clone(),
                name: cgroup_of(container_id),
                limits: self.limits,
            }),
        }
    }
}

/// The cgroup of a container's session: outside the container's, so that its memory limit stays the
/// workload's.
fn cgroup_of(container_id: &str) -> String {
    let short: String = container_id.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    format!("{CGROUP}/{short}")
}

fn beside_this_program() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.parent().unwrap_or(Path::new("/usr/local/bin")).join(LAUNCHER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_is_named_after_its_container() {
        assert_eq!(cgroup_of("0123456789abcdef0123/../x"), "flopwatch/0123456789abcdef");
    }
}
