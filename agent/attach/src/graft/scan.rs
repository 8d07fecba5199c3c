//! Finds the launchers that wait for a session, and tells what they understand.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use flopwatch_launcher::run_dir;

use super::LAUNCHER;
use crate::cgroup::ContainerCgroup;
use crate::process::{ProcessId, Procfs};
use crate::rootfs::ContainerRoot;

/// A launcher that waits for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingLauncher {
    /// The launcher, which is to become the workload.
    pub process: ProcessId,
    /// Whose it is; none when it is in no pod that the cgroup tells.
    pub container: Option<ContainerCgroup>,
    /// Run folder in the container.
    pub run_dir: PathBuf,
    /// Tools folder in the container.
    pub tools_dir: PathBuf,
    /// How it speaks ([`run_dir::PROTOCOL`]); that of the version that prepared the pod.
    pub protocol: u32,
}

/// How long a process is looked at again and again: a runtime's `init` becomes the container's command in place, with the
/// same PID and start.
const YOUNG: Duration = Duration::from_secs(20);
/// Scans after which everything is looked at anew, whatever was seen: a PID may have been reused between two scans.
const RENEW: u32 = 16;

/// Finds waiting launchers; cheap enough for every 250 ms.
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

    /// The launchers that wait now and that nobody has claimed. Who runs a program of that name and layout is listed too:
    /// whoever starts a session for it checks that its pod was prepared.
    pub fn scan(&mut self) -> io::Result<Vec<WaitingLauncher>> {
        let renew = self.scans.is_multiple_of(RENEW);
        self.scans = self.scans.wrapping_add(1);
        let pids = self.procfs.pids()?;
        let now = Instant::now();
        let before = std::mem::take(&mut self.seen);
        let mut waiting = Vec::new();
        for pid in pids {
            let first = before.get(&pid).copied().unwrap_or(now);
            self.seen.insert(pid, first);
            if renew || now.duration_since(first) < YOUNG {
                waiting.extend(self.look(pid));
            }
        }
        Ok(waiting)
    }

    fn look(&self, pid: i32) -> Option<WaitingLauncher> {
        // The name first: one short read for each of the host's processes.
        let name = std::fs::read_to_string(self.procfs.folder(pid).join("comm")).ok()?;
        if !LAUNCHER_NAMES.contains(&name.trim_end()) {
            return None;
        }
        let (run_dir, tools_dir) = parse_run(&self.procfs.command_line(pid).ok()?)?;
        let process = self.procfs.identify(pid).ok()?;
        let root = ContainerRoot::open(&self.procfs, process).ok()?;
        let waiting = root
            .read(&run_dir.join(run_dir::WAITING), run_dir::CONTROL_LIMIT)
            .ok()?;
        let claimed = root.has(&run_dir.join(run_dir::CLAIMED));
        (!claimed).then(|| WaitingLauncher {
            process,
            container: self.procfs.container(pid),
            run_dir,
            tools_dir,
            protocol: parse_protocol(&String::from_utf8_lossy(&waiting)),
        })
    }
}

/// Names that the kernel gives a launcher's process: at most 15 letters of the file's name.
const LAUNCHER_NAMES: [&str; 2] = [LAUNCHER, "flopwatch-launc"];

/// Reads a launcher's command line; none when it is not `launcher run ...`.
fn parse_run(words: &[String]) -> Option<(PathBuf, PathBuf)> {
    let mut words = words.iter().skip(1);
    if words.next()? != "run" {
        return None;
    }
    let (mut run_dir, mut tools_dir) = (
        PathBuf::from(run_dir::DEFAULT_RUN_DIR),
        PathBuf::from(run_dir::DEFAULT_TOOLS_DIR),
    );
    while let Some(word) = words.next() {
        match word.as_str() {
            "--run-dir" => run_dir = words.next()?.into(),
            "--tools-dir" => tools_dir = words.next()?.into(),
            "--claim-seconds" | "--session-seconds" => drop(words.next()?),
            "--" => return Some((run_dir, tools_dir)),
            _ => return None,
        }
    }
    None
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

/// Whether this version understands a launcher or a run folder of that protocol. Older ones are understood for as long as
/// pods that they prepared may run.
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
    fn a_launchers_command_line_tells_its_folders() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let parsed = parse_run(&words(
            "/t/launcher run --claim-seconds 1 --run-dir /r -- app --tools-dir /x",
        ));
        assert_eq!(parsed, Some(("/r".into(), run_dir::DEFAULT_TOOLS_DIR.into())));
        for line in [
            "/t/launcher hold -- /t/launcher run -- x",
            "/t/launcher keeper -- x",
            "/t/launcher run --what",
            "/t/launcher run --run-dir /r",
            "launcher",
        ] {
            assert_eq!(parse_run(&words(line)), None, "{line}");
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
