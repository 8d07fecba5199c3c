//! What a tool's own cgroup bounds: the memory of all of its processes together.

use std::path::{Path, PathBuf};

use flopwatch_attach::own_cgroup;
use flopwatch_attach::reexec::Output;
use flopwatch_attach::sandbox::{self, Sandboxed, ToolCgroups};

use super::rig::{Rig, text, wait_for};

/// Bytes that the tools may take.
const MEMORY_BYTES: u64 = 256 << 20;
/// Takes 150 MB in each of four processes, which is within the bound of each, and says which of
/// them the kernel ended.
const GREEDY: &str = "python3 -c '
import os, time
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        x = b\"x\" * 150_000_000
        time.sleep(1)
        os._exit(0)
    children.append(child)
ended = [os.waitpid(child, 0)[1] for child in children]
print(\"killed\", sum(os.WIFSIGNALED(status) for status in ended))
' || echo killed all";

/// The folder of the tools of one test, which is made with more rights than the agent has.
struct Tools {
    root: PathBuf,
    name: String,
}

impl Tools {
    fn new(name: &str) -> Self {
        let root = PathBuf::from("/sys/fs/cgroup");
        let name = format!("flopwatch-test-{name}-{}", std::process::id());
        own_cgroup::make_parent(&root, &name).unwrap();
        Self { root, name }
    }

    fn run(&self, rig: &Rig, script: &str) -> Output {
        let tool = Sandboxed {
            memory_bytes: MEMORY_BYTES,
            cgroups: Some(ToolCgroups::open("/proc", &self.root, &self.name)),
            ..rig.tool(script)
        };
        sandbox::run(&rig.agent(), &tool).unwrap()
    }

    /// Cgroups of tools that are there, in whatever hierarchy.
    fn left(&self) -> Vec<PathBuf> {
        let hierarchies = std::fs::read_dir(&self.root)
            .unwrap()
            .flatten()
            .map(|entry| entry.path());
        let folders = hierarchies
            .chain([self.root.clone()])
            .map(|hierarchy| hierarchy.join(&self.name));
        folders.flat_map(|folder| folders_in(&folder)).collect()
    }
}

impl Drop for Tools {
    fn drop(&mut self) {
        own_cgroup::remove(&self.root, &self.name).ok();
    }
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
    folders.collect()
}

#[test]
fn a_tool_of_many_processes_takes_no_more_memory_than_one_may_and_ends_alone() {
    let Some(rig) = Rig::new() else { return };
    let tools = Tools::new("greedy");
    let greedy = tools.run(&rig, GREEDY);
    let message = text(&greedy);
    assert!(message.contains("killed"), "{message}");
    assert!(!message.contains("killed 0"), "{message}");
    wait_for("the tool's cgroup to go", || tools.left().is_empty().then_some(()));
    // The bound is the tool's, and no bound on who started it.
    let modest = tools.run(&rig, "python3 -c 'x = b\"x\" * 50_000_000'");
    let message = text(&modest);
    assert!(modest.success() && modest.missing.is_empty(), "{message}");
    wait_for("the tool's cgroup to go", || tools.left().is_empty().then_some(()));
}

#[test]
fn where_a_tools_memory_cannot_be_bounded_it_is_not_run() {
    let Some(rig) = Rig::new() else { return };
    let empty = tempfile::tempdir().unwrap();
    let tool = Sandboxed {
        cgroups: Some(ToolCgroups::open("/proc", empty.path(), "tools")),
        ..rig.tool("echo ran > made")
    };
    let refused = sandbox::run(&rig.agent(), &tool).unwrap_err().to_string();
    assert!(refused.contains("join the cgroup"), "{refused}");
    assert!(!rig.at("spool/own/work/made").exists());
}
