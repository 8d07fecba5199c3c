//! The cgroup of a tool: beside that of its caller's container, with a bound of its own on memory.
//!
//! A tool that takes more memory than it may is ended by the kernel, and nothing else is. In the
//! container's own cgroup the agent would go with it: since Kubernetes 1.28 kubelets set
//! `memory.oom.group` there on version 2, and the kernel then ends all of the container at once.
//!
//! On version 1 only the hierarchy that counts memory is entered; in all others the tool stays
//! where its caller is. Version 2 has one hierarchy for everything: there the tool gets the device
//! rules of the caller's container and a bound on processes, and the least share of the processors.

use std::path::PathBuf;

use rustix::process::getpid;
use serde::{Deserialize, Serialize};

use super::Sandboxed;
use crate::own_cgroup::{self, CgroupFolder};
use crate::process::Procfs;

/// Processes of ours beside those that the tool may have: the supervising one, and the first one of
/// the sandbox.
const OWN_PROCESSES: u64 = 2;
/// Weight of all tools together against the containers of the node, where processor time is short:
/// the least that there is.
const CPU_WEIGHT: &str = "1";

/// Where tools get cgroups of their own, each named after its user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCgroups {
    /// procfs that shows the host's processes.
    proc_root: PathBuf,
    /// Where the cgroup file systems are mounted, writable.
    root: PathBuf,
    /// The folder of tools' cgroups in each hierarchy.
    name: String,
}

impl ToolCgroups {
    /// In the folder `name` below `root`, which [`own_cgroup::make_parent`] made; it belongs to one
    /// caller at a time, and what an earlier one left is removed.
    pub fn open(proc_root: impl Into<PathBuf>, root: impl Into<PathBuf>, name: &str) -> Self {
        let cgroups = Self {
            proc_root: proc_root.into(),
            root: root.into(),
            name: name.to_owned(),
        };
        cgroups.remove_left();
        cgroups
    }

    /// The path of a tool's cgroup.
    fn of(&self, user: u32) -> String {
        format!("{}/{user}", self.name)
    }

    /// Makes the tool's cgroup, bounds it, and moves the calling process in. Fails where a bound
    /// cannot be set; the caller is where it was then.
    pub(super) fn join(&self, tool: &Sandboxed) -> Result<(), String> {
        let procfs = Procfs::new(&self.proc_root);
        own_cgroup::enter_outermost(&procfs);
        let places = self.make(tool)?;
        if places.iter().any(|place| place.unified) {
            own_cgroup::bound_devices(&places, &procfs, getpid().as_raw_nonzero().get())?;
        }
        for place in &places {
            place.write("cgroup.procs", "0")?;
        }
        Ok(())
    }

    /// Makes the tool's cgroup with its bounds where memory is counted.
    fn make(&self, tool: &Sandboxed) -> Result<Vec<CgroupFolder>, String> {
        let mut places = own_cgroup::places(&self.root, &self.of(tool.user))?;
        places.retain(CgroupFolder::counts_memory);
        if places.is_empty() {
            return Err(format!(
                "no cgroup file system at {} counts memory",
                self.root.display()
            ));
        }
        for place in &places {
            own_cgroup::make(place)?;
            if place.unified {
                yield_processors(place)?;
            }
            if place.has("pids.max") {
                let processes = tool.processes.saturating_add(OWN_PROCESSES);
                place.write("pids.max", &processes.to_string())?;
            }
            if !place.bound_memory(tool.memory_bytes)? {
                return Err(format!("{}: its memory cannot be bounded", place.folder.display()));
            }
        }
        Ok(places)
    }

    /// Removes the cgroup of a tool that has ended. One in which a process is left stays, for the
    /// next tool of that user.
    pub(super) fn remove(&self, user: u32) {
        own_cgroup::remove(&self.root, &self.of(user)).ok();
    }

    /// Removes the cgroups that an earlier caller left, but for those in which a process is left.
    fn remove_left(&self) {
        for place in own_cgroup::places(&self.root, &self.name).unwrap_or_default() {
            let entries = std::fs::read_dir(&place.folder).into_iter().flatten().flatten();
            for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
                std::fs::remove_dir(entry.path()).ok();
            }
        }
    }
}

/// Gives all tools together the least weight against the containers of the node.
fn yield_processors(place: &CgroupFolder) -> Result<(), String> {
    let weight = place.folder.with_file_name("cpu.weight");
    if weight.exists() {
        own_cgroup::write(&weight, CPU_WEIGHT)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::MemoryBound;
    use std::time::Duration;
    use tempfile::TempDir;

    const NAME: &str = "flopwatch-children";
    const MEMORY_BYTES: u64 = 1536 << 20;

    fn tool() -> Sandboxed {
        Sandboxed {
            command: Vec::new(),
            environment: Vec::new(),
            directory: "/".into(),
            readable: Vec::new(),
            gpu: false,
            user: 1_900_000_003,
            memory_bytes: MEMORY_BYTES,
            memory: MemoryBound::AddressSpace,
            cgroups: None,
            file_bytes: 0,
            processes: 264,
            cpu_seconds: 0,
            deadline: Duration::ZERO,
            whole: true,
        }
    }

    fn touch(root: &TempDir, folder: &str, files: &[&str]) {
        let folder = root.path().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        for file in files {
            std::fs::write(folder.join(file), "").unwrap();
        }
    }

    fn text(root: &TempDir, file: &str) -> String {
        std::fs::read_to_string(root.path().join(file)).unwrap()
    }

    fn cgroups(root: &TempDir) -> ToolCgroups {
        ToolCgroups::open("/proc", root.path(), NAME)
    }

    /// A folder in the place of version 2, with the files that the kernel makes in a cgroup.
    fn unified(controllers: &str) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        let shared = [
            "cgroup.controllers",
            "cgroup.subtree_control",
            "cgroup.procs",
            "cpu.weight",
        ];
        for folder in ["", NAME] {
            touch(&root, folder, &shared);
            std::fs::write(root.path().join(folder).join("cgroup.controllers"), controllers).unwrap();
        }
        let files = ["cgroup.procs", "memory.max", "memory.swap.max", "pids.max"];
        touch(&root, "flopwatch-children/1900000003", &files);
        root
    }

    #[test]
    fn a_tool_has_a_bound_on_memory_of_its_own_beside_the_agents_container_on_version_2() {
        let root = unified("cpu memory pids\n");
        let places = cgroups(&root).make(&tool()).unwrap();
        let folders: Vec<_> = places.iter().map(|place| place.folder.clone()).collect();
        assert_eq!(folders, [root.path().join("flopwatch-children/1900000003")]);
        let of = |file: &str| text(&root, &format!("flopwatch-children/1900000003/{file}"));
        assert_eq!(of("memory.max"), MEMORY_BYTES.to_string());
        assert_eq!(of("memory.swap.max"), "0");
        assert_eq!(of("pids.max"), "266");
        assert_eq!(text(&root, "flopwatch-children/cpu.weight"), "1");
        assert_eq!(
            text(&root, "flopwatch-children/cgroup.subtree_control"),
            "+pids",
            "the last of the controllers that are handed down"
        );
    }

    #[test]
    fn on_version_1_only_the_hierarchy_that_counts_memory_is_entered() {
        let root = tempfile::tempdir().unwrap();
        touch(&root, "memory", &["cgroup.procs", "memory.usage_in_bytes"]);
        touch(&root, "devices", &["cgroup.procs"]);
        touch(&root, "unified", &["cgroup.procs", "cgroup.controllers"]);
        let own = "memory/flopwatch-children/1900000003";
        touch(
            &root,
            own,
            &["cgroup.procs", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"],
        );
        let places = cgroups(&root).make(&tool()).unwrap();
        let folders: Vec<_> = places.iter().map(|place| place.folder.clone()).collect();
        assert_eq!(folders, [root.path().join(own)]);
        for file in ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"] {
            assert_eq!(
                text(&root, &format!("{own}/{file}")),
                MEMORY_BYTES.to_string(),
                "{file}"
            );
        }
        for other in ["devices", "unified"] {
            assert!(!root.path().join(other).join(NAME).exists(), "{other}");
        }
    }

    #[test]
    fn a_tool_whose_memory_cannot_be_bounded_is_refused() {
        let root = unified("cpu pids\n");
        let refused = cgroups(&root).make(&tool()).err().unwrap();
        assert!(refused.contains("counts memory"), "{refused}");
        let root = unified("cpu memory pids\n");
        std::fs::remove_file(root.path().join("flopwatch-children/1900000003/memory.max")).unwrap();
        let refused = cgroups(&root).make(&tool()).err().unwrap();
        assert!(refused.contains("cannot be bounded"), "{refused}");
    }

    #[test]
    fn what_an_earlier_agent_left_is_removed_but_for_what_still_holds_a_process() {
        let root = tempfile::tempdir().unwrap();
        touch(&root, "", &["cgroup.controllers"]);
        touch(&root, "flopwatch-children/7", &[]);
        // The kernel refuses to remove a cgroup with a process in it, as it does a folder with a
        // file.
        touch(&root, "flopwatch-children/8", &["cgroup.procs"]);
        let cgroups = cgroups(&root);
        let left = |user: u32| root.path().join(cgroups.of(user)).exists();
        assert_eq!((left(7), left(8)), (false, true));
        touch(&root, "flopwatch-children/9", &[]);
        for _again in 0..2 {
            cgroups.remove(9);
            assert!(!left(9));
        }
    }
}
