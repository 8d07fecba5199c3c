//! The cluster's containers as the kernel knows them: cgroups, and the processes in them.

use super::daemon::end_all;
use super::layout::NodeLayout;
use crate::command::pause;
use crate::progress::say;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// kubelet's cgroup, in every hierarchy. `up` refuses to start where it exists already.
const PODS: &str = "kubepods";
/// The agent's cgroup for profilers' sessions. Their processes live in the pods' PID namespaces and end with them.
const SESSIONS: &str = "flopwatch";
const MOUNT: &str = "/sys/fs/cgroup";

/// Whether there are pods' cgroups on this machine.
pub(crate) fn exist() -> bool {
    !hierarchies(Path::new(MOUNT), PODS).is_empty()
}

/// Ends every process of a container of the cluster, and removes the cgroups.
pub(crate) fn end() -> Result<()> {
    for _ in 0..20 {
        let hierarchies = hierarchies(Path::new(MOUNT), PODS);
        let mut pids = Vec::new();
        for hierarchy in &hierarchies {
            processes(hierarchy, &mut pids);
        }
        pids.sort_unstable();
        pids.dedup();
        if pids.is_empty() {
            return hierarchies.iter().try_for_each(|hierarchy| remove_tree(hierarchy));
        }
        end_all(&pids)?;
    }
    bail!("containers keep starting in the cgroup {PODS}")
}

/// Removes the cgroups of profilers' sessions; one with a process in it is somebody else's.
pub(crate) fn remove_sessions() {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) {
        let left = hierarchies(Path::new(MOUNT), SESSIONS);
        if left.iter().filter(|hierarchy| remove_tree(hierarchy).is_err()).count() == 0 {
            return;
        }
        // A process that was killed a moment ago still counts until it is gone.
        pause(Duration::from_millis(50));
    }
    say(format_args!("the cgroup {SESSIONS} still has processes; left alone"));
}

/// Ends containerd's helpers of a node, one per pod; they know it by its socket.
pub(crate) fn end_shims(node: &NodeLayout) -> Result<()> {
    let socket = node.containerd_socket();
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if fs::read(entry.path().join("cmdline")).is_ok_and(|line| is_shim_of(&line, &socket)) {
            pids.push(pid);
        }
    }
    end_all(&pids)
}

fn is_shim_of(command_line: &[u8], socket: &Path) -> bool {
    let words: Vec<String> = command_line
        .split(|&byte| byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    let program = words
        .first()
        .and_then(|word| Path::new(word).file_name())
        .and_then(|name| name.to_str());
    let told = words.windows(2).any(|pair| {
        matches!(pair, [option, value] if option == "-address" && socket == Path::new(value.trim_end_matches(".ttrpc")))
    });
    told && program.is_some_and(|program| program.starts_with("containerd-shim"))
}

/// A cgroup in the one hierarchy of version 2 or in each of version 1.
fn hierarchies(mount: &Path, name: &str) -> Vec<PathBuf> {
    let below = fs::read_dir(mount)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    // With version 1, `cpu` and the like may be links to one folder.
    let real = below.filter(|path| !path.is_symlink()).map(|path| path.join(name));
    real.chain([mount.join(name)]).filter(|path| path.is_dir()).collect()
}

fn processes(cgroup: &Path, pids: &mut Vec<i32>) {
    let list = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
    pids.extend(list.lines().filter_map(|line| line.parse::<i32>().ok()));
    for child in children(cgroup) {
        processes(&child, pids);
    }
}

fn remove_tree(cgroup: &Path) -> Result<()> {
    for child in children(cgroup) {
        remove_tree(&child)?;
    }
    match fs::remove_dir(cgroup) {
        // The runtime removes the cgroups of containers that end; it may have been first.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.with_context(|| format!("cannot remove the cgroup {}", cgroup.display())),
    }
}

fn children(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shims_are_told_apart_by_their_containerd() {
        let socket = Path::new("/c/containerd.sock");
        let ours = b"/usr/bin/containerd-shim-runc-v2\0-namespace\0k8s.io\0-id\0a\0-address\0/c/containerd.sock\0";
        let foreign =
            b"/usr/bin/containerd-shim-runc-v2\0-namespace\0k8s.io\0-address\0/run/containerd/containerd.sock\0";
        let editor = b"vi\0-address\0/c/containerd.sock\0";
        assert!(is_shim_of(ours, socket));
        assert!(!is_shim_of(foreign, socket));
        assert!(!is_shim_of(editor, socket));
        assert!(!is_shim_of(b"", socket));
    }

    #[test]
    fn the_pods_cgroup_is_found_in_both_versions() {
        let folder = tempfile::tempdir().unwrap();
        assert!(hierarchies(folder.path(), PODS).is_empty());
        fs::create_dir_all(folder.path().join("memory/kubepods/burstable")).unwrap();
        fs::create_dir_all(folder.path().join("kubepods")).unwrap();
        assert_eq!(hierarchies(folder.path(), PODS).len(), 2);
    }
}
