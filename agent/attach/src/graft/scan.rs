//! Finds the launchers that wait for a session, and tells what they understand. Who is looked at
//! closer, the caller decides first.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use flopwatch_launcher::run_dir;

use super::LAUNCHER;
use crate::cgroup::ContainerCgroup;
use crate::process::{ProcessId, Procfs};
use crate::rootfs::ContainerRoot;
use crate::volumes::KubeletVolumes;

/// A process that may be a launcher that waits for a session, by its name alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The process, which is to become the workload.
    pub process: ProcessId,
    /// Whose it is; none when it is in no pod that the cgroup tells.
    pub container: Option<ContainerCgroup>,
}

/// How long a process is looked at again and again: a runtime's `init` becomes the container's
/// command in place, with the same PID and start.
const MAX_YOUNG_AGE: Duration = Duration::from_secs(20);
/// Scans after which everything is looked at anew, whatever was seen: a PID may have been reused
/// between two scans.
const SCANS_BETWEEN_RENEWALS: u32 = 16;

/// Finds processes that may be waiting launchers; cheap enough for every 250 ms. It reads names,
/// cgroups and starts: nothing that waits for a container's memory or files.
#[derive(Debug)]
pub struct LauncherScan {
    procfs: Procfs,
    /// When each process was first seen.
    seen: BTreeMap<i32, Instant>,
    scans: u32,
}

impl LauncherScan {
    /// Scans this procfs.
    pub fn new(procfs: Procfs) -> Self {
        Self {
            procfs,
            seen: BTreeMap::new(),
            scans: 0,
        }
    }

    /// The processes that bear a launcher's name now. Anybody may call a program so: whoever goes
    /// on checks first that its pod was prepared, and then that it [`waits`].
    pub fn scan(&mut self) -> io::Result<Vec<Candidate>> {
        let renew = self.scans.is_multiple_of(SCANS_BETWEEN_RENEWALS);
        self.scans = self.scans.wrapping_add(1);
        let pids = self.procfs.pids()?;
        let now = Instant::now();
        let before = std::mem::take(&mut self.seen);
        let mut found = Vec::new();
        for pid in pids {
            let first = before.get(&pid).copied().unwrap_or(now);
            self.seen.insert(pid, first);
            if renew || now.duration_since(first) < MAX_YOUNG_AGE {
                found.extend(self.inspect(pid));
            }
        }
        Ok(found)
    }

    fn inspect(&self, pid: i32) -> Option<Candidate> {
        // The name first: one short read for each of the host's processes.
        let name = std::fs::read_to_string(self.procfs.folder(pid).join("comm")).ok()?;
        if !LAUNCHER_NAMES.contains(&name.trim_end()) {
            return None;
        }
        let process = self.procfs.identify(pid).ok()?;
        Some(Candidate {
            process,
            container: self.procfs.container(pid),
        })
    }
}

/// Whether the process is a launcher that waits for a session and that nobody has claimed: the
/// protocol that it speaks ([`run_dir::PROTOCOL`]), that of the version that prepared the pod. With
/// `volumes` it must show those that the kubelet made for its pod.
///
/// This opens files of the container, which may lie on a file system that does not answer: the
/// caller bounds it ([`crate::bounded::Gate`]).
pub fn waits(procfs: &Procfs, candidate: &Candidate, volumes: Option<&KubeletVolumes>) -> Option<u32> {
    let process = candidate.process;
    if let Some(volumes) = volumes
        && let Err(error) = volumes.check(&candidate.container.as_ref()?.pod_uid, procfs, process.pid)
    {
        tracing::debug!(pid = process.pid, %error, "a process with a launcher's name is none");
        return None;
    }
    if !is_run(&procfs.command_line(process.pid).ok()?) {
        return None;
    }
    let root = ContainerRoot::open(procfs, process).ok()?;
    let folder = Path::new(run_dir::DEFAULT_RUN_DIR);
    let waiting = root.read(&folder.join(run_dir::WAITING), run_dir::CONTROL_LIMIT).ok()?;
    let claimed = root.has(&folder.join(run_dir::CLAIMED));
    (!claimed).then(|| parse_protocol(&String::from_utf8_lossy(&waiting)))
}

/// Names that the kernel gives a launcher's process: at most 15 letters of the file's name.
const LAUNCHER_NAMES: [&str; 2] = [LAUNCHER, "flopwatch-launc"];

/// Whether a command line is `launcher run ...`. Its folders are not its own to choose: one that
/// names others is left alone.
fn is_run(words: &[String]) -> bool {
    let mut words = words.iter().skip(1).map(String::as_str);
    if words.next() != Some("run") {
        return false;
    }
    while let Some(word) = words.next() {
        let value = match word {
            "--" => return true,
            "--run-dir" => words.next() == Some(run_dir::DEFAULT_RUN_DIR),
            "--tools-dir" => words.next() == Some(run_dir::DEFAULT_TOOLS_DIR),
            "--claim-seconds" | "--session-seconds" => words.next().is_some(),
            _ => false,
        };
        if !value {
            return false;
        }
    }
    false
}

/// The protocol in what a waiting launcher wrote; launchers that say nothing speak the first.
fn parse_protocol(waiting: &str) -> u32 {
    let line = waiting.lines().find_map(|line| line.strip_prefix("protocol="));
    line.and_then(|number| number.parse().ok()).unwrap_or(FIRST_PROTOCOL)
}

/// The protocol of launchers that name none.
const FIRST_PROTOCOL: u32 = 1;

pub(super) const fn first_protocol() -> u32 {
    FIRST_PROTOCOL
}

/// Whether this version understands a launcher or a run folder of that protocol. Older ones are
/// understood for as long as pods that they prepared may run.
pub const fn speaks(protocol: u32) -> bool {
    FIRST_PROTOCOL <= protocol && protocol <= run_dir::PROTOCOL
}

/// Whether a launcher of that protocol waits while a collection is started before its program.
pub const fn can_hold(protocol: u32) -> bool {
    protocol >= 2 && speaks(protocol)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graft::LauncherState;

    #[test]
    fn a_launcher_cannot_name_the_folders_that_it_is_served_from() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for line in [
            "/t/launcher run -- app",
            "/t/launcher run --claim-seconds 1 -- app --tools-dir /x",
            "/t/launcher run --run-dir /flopwatch/run --tools-dir /flopwatch/tools -- app",
        ] {
            assert!(is_run(&words(line)), "{line}");
        }
        for line in [
            "x run --tools-dir /evil --",
            "x run --run-dir /evil --",
            "/t/launcher hold -- /t/launcher run -- x",
            "/t/launcher keeper -- x",
            "/t/launcher run --what",
            "/t/launcher run --run-dir",
            "launcher",
        ] {
            assert!(!is_run(&words(line)), "{line}");
        }
    }

    #[test]
    fn a_pod_prepared_by_an_older_version_is_understood_and_one_by_a_newer_is_not() {
        assert_eq!(parse_protocol("pid=1\nunix_ms=5\n"), 1);
        assert_eq!(parse_protocol("pid=1\nprotocol=2\n"), 2);
        let older =
            r#"{"grafted":true,"reason":"session","pid":1,"unix_ms":5,"waited_ms":7,"early_deaths":0,"kept":[]}"#;
        let state: LauncherState = serde_json::from_str(older).unwrap();
        assert!(state.grafted && speaks(state.protocol) && !can_hold(state.protocol));
        let newer = older.replace("[]", "[],\"protocol\":99,\"more\":true");
        let state: LauncherState = serde_json::from_str(&newer).unwrap();
        assert!(!speaks(state.protocol) && !can_hold(state.protocol));
        assert!(speaks(run_dir::PROTOCOL) && can_hold(run_dir::PROTOCOL));
    }
}
