//! What makes a node of a group of processes: network, mounts, process ids, cgroups and host name
//! of its own.
//!
//! A node's first process does nothing but hold that together, and when it ends, the kernel ends
//! all the others and unmounts what they mounted.

use super::cgroups::{self, Hierarchy, Version};
use super::daemon::Daemon;
use super::layout::{Layout, NodeLayout};
use super::reach::quote;
use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::cache::remove;
use flopwatch_toolchain::command::wait_until;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Folders whose names are fixed in the nodes' programs, in CNI plugins or in the chart; each node
/// has its own.
const FOLDERS: [&str; 6] = [
    "/run/containerd",
    "/var/lib/cni",
    "/var/lib/flopwatch",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
];

/// Writes the shell's process id into the files before `--`, and becomes the program after it.
const ENTER: &str = r#"while [ "$1" != -- ]; do echo $$ > "$1" || exit; shift; done; shift; exec "$@""#;

/// The node's first process, as this machine sees it: the one that waits for the first in the
/// namespaces, and is in all of them but that of process ids.
fn holder(layout: &Layout, node: &NodeLayout) -> Daemon {
    Daemon::new(layout, &name(node))
}

/// The name of the node's first process.
pub(crate) fn name(node: &NodeLayout) -> String {
    format!("{}-init", node.name)
}

/// The process id whose namespaces are the node's.
pub(crate) fn pid(layout: &Layout, node: &NodeLayout) -> Result<i32> {
    let pid = holder(layout, node).pid();
    pid.with_context(|| format!("{} does not run", node.name))
}

/// Starts the node's first process; `init` is a program that reaps orphans.
pub(crate) fn start(layout: &Layout, node: &NodeLayout, init: &Path) -> Result<()> {
    cgroups::create(layout, node)?;
    let mut folders = Vec::new();
    for folder in FOLDERS {
        let own = node
            .path("folders")
            .join(folder.trim_start_matches('/').replace('/', "-"));
        fs::create_dir_all(&own)?;
        fs::create_dir_all(folder)?;
        folders.push((own, PathBuf::from(folder)));
    }
    let ready = node.path("isolated");
    remove(&ready)?;
    let script = script(
        node,
        &cgroups::hierarchies()?,
        &aliases(Path::new(cgroups::MOUNT)),
        &folders,
        &ready,
        init,
    );
    let unshare = [
        "unshare",
        "--mount",
        "--propagation=private",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--cgroup",
        "--ipc",
        "--uts",
        "sh",
        "-ec",
        &script,
    ];
    let holder = holder(layout, node);
    let args = enter(cgroups::roots(node)?, unshare.map(OsString::from));
    holder.start(Path::new("sh"), args)?;
    let isolated = wait_until(Duration::from_secs(20), || {
        holder.must_live()?;
        Ok(ready.exists())
    })?;
    if !isolated {
        bail!("{} does not get its namespaces\n{}", node.name, holder.report());
    }
    cgroups::settle(node)
}

/// The arguments of `sh` that run a program on the node.
pub(crate) fn inside(
    layout: &Layout,
    node: &NodeLayout,
    program: &Path,
    args: impl IntoIterator<Item = OsString>,
) -> Result<Vec<OsString>> {
    let pid = pid(layout, node)?;
    let mut words = vec![OsString::from("nsenter")];
    // `pid_for_children`: the holder itself stays outside.
    for (option, file) in [
        ("mount", "mnt"),
        ("net", "net"),
        ("pid", "pid_for_children"),
        ("cgroup", "cgroup"),
        ("ipc", "ipc"),
        ("uts", "uts"),
    ] {
        words.push(format!("--{option}=/proc/{pid}/ns/{file}").into());
    }
    words.push("--".into());
    words.push(program.into());
    words.extend(args);
    Ok(enter(cgroups::entrances(node)?, words))
}

fn enter(cgroups: Vec<PathBuf>, command: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["-c".into(), ENTER.into(), "enter".into()];
    args.extend(cgroups.into_iter().map(OsString::from));
    args.push("--".into());
    args.extend(command);
    args
}

/// Names that lead to others, as `cpu` to `cpu,cpuacct`.
fn aliases(mount: &Path) -> Vec<(PathBuf, PathBuf)> {
    let entries = fs::read_dir(mount).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.path(), fs::read_link(entry.path()).ok()?)))
        .collect()
}

/// What a node's first process does before it only waits.
fn script(
    node: &NodeLayout,
    hierarchies: &[Hierarchy],
    aliases: &[(PathBuf, PathBuf)],
    folders: &[(PathBuf, PathBuf)],
    ready: &Path,
    init: &Path,
) -> String {
    let word = |path: &Path| quote(&path.display().to_string());
    let mount = Path::new(cgroups::MOUNT);
    let mut lines = vec![format!("umount --recursive --lazy {}", word(mount))];
    if hierarchies.iter().all(|one| one.mount != mount) {
        lines.push(format!("mount -t tmpfs -o mode=755 cgroup {}", word(mount)));
    }
    for hierarchy in hierarchies {
        let at = word(&hierarchy.mount);
        let (kind, options) = match &hierarchy.version {
            Version::One(controllers) => ("cgroup", format!(" -o {}", quote(controllers))),
            Version::Two => ("cgroup2", String::new()),
        };
        lines.push(format!("mkdir -p {at}"));
        lines.push(format!("mount -t {kind}{options} cgroup {at}"));
    }
    lines.extend(
        aliases
            .iter()
            .map(|(at, target)| format!("ln -s {} {}", word(target), word(at))),
    );
    lines.extend(
        folders
            .iter()
            .map(|(own, at)| format!("mount --bind {} {}", word(own), word(at))),
    );
    lines.push("echo 1 > /proc/sys/net/ipv4/ip_forward".to_owned());
    // A Service's packets leave where they came in; the sender must not be told a shorter way
    // around the translation.
    for scope in ["all", "default"] {
        lines.push(format!("echo 0 > /proc/sys/net/ipv4/conf/{scope}/send_redirects"));
    }
    lines.push(format!("echo {} > /proc/sys/kernel/hostname", node.name));
    lines.push("ip link set lo up".to_owned());
    lines.push(format!(": > {}", word(ready)));
    lines.push(format!("exec {}", word(init)));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use flopwatch_toolchain::cache::Cache;
    use flopwatch_toolchain::command::Run;

    fn node() -> NodeLayout {
        let layout = Layout::open(&Cache::at(Path::new("/c"))).unwrap();
        NodeLayout::new(&layout, 2)
    }

    fn lines(hierarchies: &[Hierarchy]) -> String {
        script(&node(), hierarchies, &[], &[], Path::new("/r"), Path::new("/i"))
    }

    #[test]
    fn a_node_gets_the_kind_of_cgroups_that_its_machine_has() {
        let one = Hierarchy {
            mount: "/sys/fs/cgroup/cpu,cpuacct".into(),
            version: Version::One("cpu,cpuacct".into()),
        };
        let text = lines(std::slice::from_ref(&one));
        assert!(text.contains("mount -t tmpfs"), "{text}");
        assert!(
            text.contains("mount -t cgroup -o 'cpu,cpuacct' cgroup '/sys/fs/cgroup/cpu,cpuacct'"),
            "{text}"
        );
        let two = Hierarchy {
            mount: "/sys/fs/cgroup".into(),
            version: Version::Two,
        };
        let text = lines(&[two]);
        assert!(!text.contains("tmpfs"), "{text}");
        assert!(text.contains("mount -t cgroup2 cgroup '/sys/fs/cgroup'"), "{text}");
    }

    /// Tests that start processes.
    mod crate_tests {
        use super::*;

        #[test]
        fn a_program_enters_the_cgroups_before_it_starts() {
            let folder = tempfile::tempdir().unwrap();
            let files = ["a", "b"].map(|name| folder.path().join(name));
            let args = enter(files.to_vec(), ["sh", "-c", "echo $$"].map(OsString::from));
            let message = Run::new("sh").args(args).output().unwrap();
            for file in files {
                assert_eq!(fs::read_to_string(file).unwrap(), message, "another process entered");
            }
        }

        #[test]
        fn a_program_does_not_start_outside_the_cgroups() {
            let args = enter(vec!["/no/such/cgroup".into()], ["echo", "started"].map(OsString::from));
            assert!(Run::new("sh").args(args).quiet().is_err());
        }
    }
}
