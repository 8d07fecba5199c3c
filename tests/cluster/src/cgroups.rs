//! The nodes' cgroups: a folder per node in every hierarchy, in which all that belongs to the node
//! runs, and which the node takes for the root. Two kubelets on one root would remove each other's
//! pods.

use super::daemon::end_all;
use super::layout::{Layout, MAX_NODES, NodeLayout};
use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::command::pause;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where every distribution mounts them.
pub(crate) const MOUNT: &str = "/sys/fs/cgroup";
/// Where a node's own programs run in version 2, whose cgroups hold processes or cgroups, not both.
const PROGRAMS: &str = "system";
/// The controllers that this machine's root handed down before the cluster, in the cluster's
/// folder.
const HANDED_DOWN: &str = "cgroup-controllers";

/// One mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    pub(crate) mount: PathBuf,
    pub(crate) version: Version,
}

/// The two kinds of hierarchy; machines may have both at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Version {
    /// With the mount options that name its controllers.
    One(String),
    Two,
}

/// This machine's hierarchies.
pub(crate) fn hierarchies() -> Result<Vec<Hierarchy>> {
    let all = parse(&fs::read_to_string("/proc/self/mountinfo")?);
    if all.is_empty() {
        bail!("no cgroup file system is mounted at {MOUNT}: kubelet needs one");
    }
    Ok(all)
}

fn parse(mountinfo: &str) -> Vec<Hierarchy> {
    let mut all = BTreeMap::new();
    for line in mountinfo.lines() {
        let Some((point, kind)) = line.split_once(" - ") else {
            continue;
        };
        let mount = PathBuf::from(point.split(' ').nth(4).unwrap_or_default());
        let mut words = kind.split(' ');
        let version = match words.next() {
            Some("cgroup") => Version::One(controllers(words.nth(1).unwrap_or_default())),
            Some("cgroup2") => Version::Two,
            _ => continue,
        };
        if mount.starts_with(MOUNT) {
            all.insert(mount.clone(), Hierarchy { mount, version });
        }
    }
    all.into_values().collect()
}

/// The mount options that choose a hierarchy of version 1, without those that only say how it
/// behaves.
fn controllers(options: &str) -> String {
    let behaviour = ["rw", "ro", "xattr", "clone_children", "noprefix", "seclabel"];
    let chosen: Vec<&str> = options
        .split(',')
        .filter(|option| !behaviour.contains(option) && !option.starts_with("release_agent="))
        .collect();
    chosen.join(",")
}

impl Hierarchy {
    fn folder(&self, node: &NodeLayout) -> PathBuf {
        self.mount.join(name(&node.name))
    }

    /// Where the node's own programs run.
    fn programs(&self, node: &NodeLayout) -> PathBuf {
        match self.version {
            Version::One(_) => self.folder(node),
            Version::Two => self.folder(node).join(PROGRAMS),
        }
    }
}

fn name(node: &str) -> String {
    format!("flopwatch-{node}")
}

/// Whether there are cgroups of nodes on this machine, of this cluster or another.
pub(crate) fn exist() -> bool {
    names().any(|name| !folders(Path::new(MOUNT), &name).is_empty())
}

fn names() -> impl Iterator<Item = String> {
    (1..=MAX_NODES).map(|number| name(&format!("node{number}")))
}

/// Makes the node's cgroups.
pub(crate) fn create(layout: &Layout, node: &NodeLayout) -> Result<()> {
    for hierarchy in hierarchies()? {
        make(layout, node, &hierarchy).with_context(|| format!("making a cgroup in {}", hierarchy.mount.display()))?;
    }
    Ok(())
}

fn make(layout: &Layout, node: &NodeLayout, hierarchy: &Hierarchy) -> Result<()> {
    let folder = hierarchy.folder(node);
    if hierarchy.version == Version::Two {
        hand_down(&hierarchy.mount, &layout.root().join(HANDED_DOWN))?;
    }
    fs::create_dir_all(hierarchy.programs(node))?;
    // Without processors and memory of its own a cpuset takes no process.
    for file in ["cpuset.cpus", "cpuset.mems"] {
        if matches!(&hierarchy.version, Version::One(controllers) if controllers.split(',').any(|one| one == "cpuset"))
        {
            fs::write(folder.join(file), fs::read(hierarchy.mount.join(file))?)?;
        }
    }
    Ok(())
}

/// Lets the cgroups below a root of version 2 use all of its controllers, and writes down which
/// they could use before.
fn hand_down(root: &Path, note: &Path) -> Result<()> {
    let before = fs::read_to_string(root.join("cgroup.subtree_control"))?;
    let all = fs::read_to_string(root.join("cgroup.controllers"))?;
    if !note.exists() {
        fs::write(note, &before)?;
    }
    for controller in missing(&all, &before) {
        // kubelet says what it cannot do without.
        fs::write(root.join("cgroup.subtree_control"), format!("+{controller}")).ok();
    }
    Ok(())
}

/// Takes back what was handed down.
fn take_back(root: &Path, note: &Path) -> Result<()> {
    let Ok(before) = fs::read_to_string(note) else {
        return Ok(());
    };
    let now = fs::read_to_string(root.join("cgroup.subtree_control"))?;
    for controller in missing(&now, &before) {
        // Somebody else may have begun to use it.
        fs::write(root.join("cgroup.subtree_control"), format!("-{controller}")).ok();
    }
    Ok(())
}

/// The words of one list that another lacks.
fn missing<'a>(all: &'a str, there: &str) -> Vec<&'a str> {
    all.split_whitespace()
        .filter(|word| !there.split_whitespace().any(|other| other == *word))
        .collect()
}

/// The files that a process writes its id into to found the node: its cgroups' roots.
pub(crate) fn roots(node: &NodeLayout) -> Result<Vec<PathBuf>> {
    let all = hierarchies()?;
    Ok(all.iter().map(|one| one.folder(node).join("cgroup.procs")).collect())
}

/// The files that a process writes its id into to become one of the node's programs.
pub(crate) fn entrances(node: &NodeLayout) -> Result<Vec<PathBuf>> {
    let all = hierarchies()?;
    Ok(all.iter().map(|one| one.programs(node).join("cgroup.procs")).collect())
}

/// Brings those who founded the node to where its programs run, so that its root is free to have
/// cgroups.
pub(crate) fn settle(node: &NodeLayout) -> Result<()> {
    for hierarchy in hierarchies()?.iter().filter(|one| one.version == Version::Two) {
        let founders = fs::read_to_string(hierarchy.folder(node).join("cgroup.procs"))?;
        for pid in founders.lines() {
            fs::write(hierarchy.programs(node).join("cgroup.procs"), pid)?;
        }
    }
    Ok(())
}

/// Ends all that runs on a node, and removes its cgroups.
pub(crate) fn end(node: &NodeLayout) -> Result<()> {
    end_named(&name(&node.name))
}

/// Ends all that runs on any node, however far the cluster came, and leaves the machine's cgroups
/// as they were.
pub(crate) fn end_all_nodes(layout: &Layout) -> Result<()> {
    names().try_for_each(|name| end_named(&name))?;
    let all = hierarchies()?;
    let roots = all.iter().filter(|one| one.version == Version::Two);
    roots
        .into_iter()
        .try_for_each(|root| take_back(&root.mount, &layout.root().join(HANDED_DOWN)))
}

fn end_named(name: &str) -> Result<()> {
    for _ in 0..400 {
        let folders = folders(Path::new(MOUNT), name);
        let mut pids = Vec::new();
        for folder in &folders {
            processes(folder, &mut pids);
        }
        pids.sort_unstable();
        pids.dedup();
        if pids.is_empty() {
            return folders.iter().try_for_each(|folder| remove_tree(folder));
        }
        end_all(&pids)?;
        // What was killed a moment ago is still listed until it is gone.
        pause(Duration::from_millis(50));
    }
    bail!("processes keep starting in the cgroup {name}")
}

/// A cgroup in the one hierarchy of version 2 or in each of version 1.
fn folders(mount: &Path, name: &str) -> Vec<PathBuf> {
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
    for _ in 0..100 {
        match fs::remove_dir(cgroup) {
            // A process that was killed a moment ago still counts until it is gone.
            Err(error) if error.kind() == ErrorKind::ResourceBusy => pause(Duration::from_millis(50)),
            // The runtime removes the cgroups of containers that end; it may have been first.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            removed => return removed.with_context(|| format!("cannot remove the cgroup {}", cgroup.display())),
        }
    }
    bail!("the cgroup {} does not become free", cgroup.display())
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
    fn hierarchies_are_read_from_the_mounts_of_both_versions() {
        let text = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
                    32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
                    33 31 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,release_agent=/lib/x,name=systemd\n\
                    34 31 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n\
                    35 31 0:31 / /elsewhere rw - cgroup2 cgroup2 rw\n";
        let found: Vec<(String, Version)> = parse(text)
            .into_iter()
            .map(|one| (one.mount.display().to_string(), one.version))
            .collect();
        let at = |name: &str| format!("{MOUNT}/{name}");
        assert_eq!(
            found,
            [
                (at("cpu,cpuacct"), Version::One("cpu,cpuacct".into())),
                (at("systemd"), Version::One("name=systemd".into())),
                (at("unified"), Version::Two),
            ]
        );
        let modern = parse("24 23 0:22 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
        assert_eq!(modern.len(), 1);
    }

    #[test]
    fn a_nodes_cgroup_is_found_in_both_versions() {
        let folder = tempfile::tempdir().unwrap();
        let name = name("node1");
        assert!(folders(folder.path(), &name).is_empty());
        fs::create_dir_all(folder.path().join("memory").join(&name).join("kubepods")).unwrap();
        fs::create_dir_all(folder.path().join(&name)).unwrap();
        assert_eq!(folders(folder.path(), &name).len(), 2);
    }

    #[test]
    fn only_controllers_that_were_not_handed_down_before_are_named() {
        assert_eq!(missing("cpu io memory\n", "memory\n"), ["cpu", "io"]);
        assert!(missing("", "memory").is_empty());
    }
}
