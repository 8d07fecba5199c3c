//! Cgroups of the kernel's own.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::machine::{POD, id, wait};

/// Cgroups of the kernel's own, with the names that a kubelet gives them.
pub(crate) struct RealCgroups {
    pods: Vec<PathBuf>,
    containers: u32,
}

impl RealCgroups {
    pub(crate) fn make(containers: u32) -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: making cgroups needs root");
            return None;
        }
        let roots = ["", "cpuacct", "cpu,cpuacct", "memory"].map(|name| Path::new("/sys/fs/cgroup").join(name));
        let counts = |root: &PathBuf| {
            ["cgroup.controllers", "cpuacct.usage", "memory.usage_in_bytes"]
                .iter()
                .any(|file| root.join(file).exists())
        };
        let name = format!("flopwatch-test-{}", std::process::id());
        let pods: Vec<_> = roots
            .iter()
            .filter(|root| counts(root))
            .map(|root| root.join(&name))
            .collect();
        let made = Self { pods, containers };
        for number in 0..containers {
            for folder in made.folders(number) {
                if let Err(error) = std::fs::create_dir_all(&folder) {
                    println!("skipped: {} cannot be made: {error}", folder.display());
                    return None;
                }
            }
        }
        Some(made)
    }

    fn folders(&self, container: u32) -> impl Iterator<Item = PathBuf> {
        self.pods
            .iter()
            .map(move |pod| pod.join(format!("pod{POD}/{}", id(container))))
    }

    pub(crate) fn enter(&self, container: u32, process: u32) {
        for folder in self.folders(container) {
            std::fs::write(folder.join("cgroup.procs"), process.to_string()).unwrap();
        }
    }
}

impl Drop for RealCgroups {
    fn drop(&mut self) {
        for number in 0..self.containers {
            for folder in self.folders(number) {
                // A process that was killed leaves its cgroup a moment later.
                let end = Instant::now() + Duration::from_secs(5);
                while std::fs::remove_dir(&folder).is_err() && folder.exists() && Instant::now() < end {
                    wait(Duration::from_millis(20));
                }
            }
        }
        for pod in &self.pods {
            std::fs::remove_dir(pod.join(format!("pod{POD}"))).ok();
            std::fs::remove_dir(pod).ok();
        }
    }
}
