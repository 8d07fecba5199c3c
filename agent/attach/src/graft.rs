//! The agent's side of the graft: finds waiting launchers, starts their sessions, controls
//! collections.
//!
//! Every command inside a container runs below a supervisor (a child subreaper), so that nothing of
//! ours ever becomes a child of the workload. The agent and what runs in the container communicate
//! by files of the run folder alone, whose names are in [`flopwatch_launcher::run_dir`].
//!
//! # Example: one prepared container, one window
//!
//! Admission put the launcher in front of the command of the pod, so the container begins as
//! `launcher ... -- python train.py`. From then on, by who acts and which file appears:
//!
//! | who | does | file of the run folder |
//! |---|---|---|
//! | launcher | waits, bounded, for a session | `waiting`: PID, start, protocol |
//! | agent | finds it by [`LauncherScan`], checks by [`waits`] that it waits, enters the container and starts `launcher keeper` ([`Target::start_session`]) | `claimed` |
//! | supervisor | runs `nsys launch` around a stub; the session gives its environment to the stub | `env` (`env.held` where a collection comes first, until [`Target::release`]) |
//! | launcher | merges that environment into its own, writes what it decided, and becomes `python train.py` by `execve`: the same PID | `state`, read by [`Target::await_state`] |
//! | agent | starts a window ([`Target::start_collection`]); the supervisor ends it should the agent be gone | `collecting`: deadline, bounds |
//! | agent | stops it ([`Target::stop_collection`]) and copies the raw capture out | `out/<name>.qdstrm`; `collecting` goes |
//!
//! Whatever fails before `execve` ends in the original command with its original environment, and
//! `failed` says why. An early death of a grafted start leaves `marker`, by which the next start of
//! the same container runs without a session.

mod captures;
mod launched;
mod scan;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flopwatch_launcher::guard::Collecting;
use flopwatch_launcher::run_dir::{self, unix_ms};
use serde::Deserialize;

use crate::enter::{self, Entry};
use crate::nsys::{self, Collection, LaunchOptions, SessionState, StartOptions};
use crate::own_cgroup::OwnCgroup;
use crate::process::{ProcessId, Procfs};
use crate::reexec::{End, Output, Reexec, ReexecError};
use crate::rootfs::{ContainerRoot, RootfsError, Volume};
use crate::volumes::KubeletVolumes;

pub use flopwatch_launcher::run_dir::WAITING;
pub use scan::{Candidate, LauncherScan, can_hold, speaks, waits};

/// Name of the launcher below the tools folder.
pub const LAUNCHER: &str = "launcher";
/// Time for a short control command, beside what it is asked to wait for.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a stop may take: it writes the whole capture.
const STOP_TIMEOUT: Duration = Duration::from_mins(2);

/// Why a session or a collection could not be had.
#[derive(Debug, thiserror::Error)]
pub enum GraftError {
    /// The container cannot be entered.
    #[error("cannot enter the container")]
    Enter(#[from] ReexecError),
    /// A file in the container cannot be used.
    #[error("cannot use the container's run folder")]
    Files(#[from] RootfsError),
    /// The profiler refused.
    #[error("nsys {verb} failed ({end:?}): {message}")]
    Refused {
        /// Verb of the launcher that was run.
        verb: &'static str,
        /// How it ended.
        end: End,
        /// Last line with a word that the command printed.
        message: String,
    },
    /// The profiler said that all is well, and left no capture.
    #[error("nsys stop left no capture at {}", path.display())]
    NoCapture {
        /// Path in the container.
        path: PathBuf,
    },
    /// The launcher had not decided in time.
    #[error("the launcher did not decide within {0:?}")]
    Undecided(Duration),
}

/// A container with a launcher in it, and how to get there.
#[derive(Debug, Clone)]
pub struct Target {
    /// How to start this program again.
    pub reexec: Reexec,
    /// procfs of the host.
    pub procfs: Procfs,
    /// The launcher or, later, the workload that it became: the same process.
    pub process: ProcessId,
    /// The caller's own launcher, a static program: what enters the container. The one in the tools
    /// folder is never executed from outside.
    pub launcher: PathBuf,
    /// Run folder in the container.
    pub run_dir: PathBuf,
    /// Tools folder in the container.
    pub tools_dir: PathBuf,
    /// Where the kubelet keeps the volumes that must be mounted there; none where no kubelet made
    /// them.
    pub volumes: Option<KubeletVolumes>,
    /// Cgroup for what is started in it; none: the caller's own.
    pub cgroup: Option<OwnCgroup>,
}

/// What the launcher did in the end.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LauncherState {
    /// Whether the workload runs with the session's environment.
    pub grafted: bool,
    /// Why, from a closed set ([`flopwatch_launcher::state::Reason`]).
    pub reason: String,
    /// PID in the container.
    pub pid: u32,
    /// When it decided, Unix milliseconds.
    pub unix_ms: u64,
    /// How long it held the workload back, in milliseconds.
    pub waited_ms: u64,
    /// Early deaths of grafted starts of this container so far.
    pub early_deaths: u32,
    /// Variables that the workload sets itself and the session wanted too.
    pub kept: Vec<String>,
    /// What the launcher found of the program, where that is why.
    #[serde(default)]
    pub detail: String,
    /// How the launcher speaks ([`run_dir::PROTOCOL`]).
    #[serde(default = "scan::first_protocol")]
    pub protocol: u32,
}

/// Bounds of a collection that hold even when the agent is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// From the start on; the supervisor stops the collection then.
    pub limit: Duration,
    /// Bytes by which the run folder may grow; the supervisor stops the collection then.
    pub max_bytes: u64,
    /// Free bytes of its volume; below, the supervisor throws the collection away.
    pub min_free_bytes: u64,
}

impl Target {
    fn nsys(&self) -> PathBuf {
        self.tools_dir.join(run_dir::TARGET_FOLDER).join("nsys")
    }

    /// The launcher within the container, as the profiler finds it.
    fn inner_launcher(&self) -> String {
        text(&self.tools_dir.join(LAUNCHER))
    }

    fn root(&self) -> Result<ContainerRoot, RootfsError> {
        ContainerRoot::open(&self.procfs, self.process)
    }

    /// Runs the caller's launcher in the container.
    fn enter(&self, arguments: Vec<String>, deadline: Duration, detach: bool) -> Result<Output, ReexecError> {
        let scratch = text(&self.run_dir.join(run_dir::TMP));
        let arguments = std::iter::once(LAUNCHER.to_owned()).chain(arguments).collect();
        let entry = Entry {
            proc_root: self.procfs.root().to_owned(),
            process: self.process,
            volumes: self.volumes.clone(),
            cgroup: self.cgroup.clone(),
            program: self.launcher.clone(),
            arguments,
            environment: vec![
                ("TMPDIR".into(), scratch.clone()),
                ("HOME".into(), scratch),
                ("PATH".into(), "/usr/bin:/bin".into()),
            ],
            deadline,
            detach,
        };
        enter::run(&self.reexec, &entry)
    }

    /// Runs a control command of the profiler below a supervisor that bounds it.
    fn control(
        &self,
        verb: &'static str,
        line: Vec<String>,
        options: &[String],
        limit: Duration,
    ) -> Result<Output, GraftError> {
        let mut arguments = vec![
            "keeper".into(),
            "--deadline-seconds".into(),
            limit.as_secs().to_string(),
        ];
        arguments.extend_from_slice(options);
        arguments.push("--".into());
        arguments.extend(line);
        // The supervisor's deadline comes first, so that it, not this program, ends the profiler's
        // processes.
        let output = self.enter(arguments, limit + Duration::from_secs(5), false)?;
        accepted(verb, output)
    }

    /// Claims the launcher and starts a session for it; returns when the supervisor runs. What
    /// comes of it tells [`Target::await_state`].
    pub fn start_session(&self, options: &LaunchOptions) -> Result<(), GraftError> {
        self.launch(options, run_dir::ENV)
    }

    /// The same, but the launcher goes on waiting after the session is there, until
    /// [`Target::release`].
    pub fn start_session_held(&self, options: &LaunchOptions) -> Result<(), GraftError> {
        self.launch(options, run_dir::ENV_HELD)
    }

    /// Waits until a held session is there; false when the launcher was told, or decided, to go on
    /// without.
    pub fn await_held(&self, limit: Duration) -> Result<bool, GraftError> {
        let root = self.root()?;
        let has = |name: &str| root.has(&self.run_dir.join(name));
        awaited(limit, || {
            let goes_on = || has(run_dir::FAILED) || has(run_dir::STATE);
            let is_held = has(run_dir::ENV_HELD);
            Ok((is_held || goes_on()).then_some(is_held))
        })
    }

    /// Lets the launcher take the session that was held back. Safe to run twice.
    pub fn release(&self) -> Result<(), GraftError> {
        self.send_verb("release")
    }

    /// Has the supervisor end a session that hangs on its way to its end
    /// ([`SessionState::Ending`]); the workload runs on. Safe to run twice.
    pub fn end_hanging_session(&self) -> Result<(), GraftError> {
        self.send_verb("shutdown")
    }

    /// Writes a word into the run folder, as the container's user.
    fn send_verb(&self, verb: &'static str) -> Result<(), GraftError> {
        let output = self.enter(vec![verb.into(), text(&self.run_dir)], CONTROL_TIMEOUT, false)?;
        accepted(verb, output).map(drop)
    }

    /// Whether the program of a container that is held for its capture has ended.
    pub fn has_ended(&self) -> Result<bool, GraftError> {
        Ok(self.root()?.has(&self.run_dir.join(run_dir::ENDED)))
    }

    fn launch(&self, options: &LaunchOptions, environment: &str) -> Result<(), GraftError> {
        let stub = vec![
            self.inner_launcher(),
            "stub".into(),
            text(&self.run_dir.join(environment)),
        ];
        let mut arguments = vec!["keeper".into(), "--run-dir".into(), text(&self.run_dir)];
        arguments.extend(["--nsys".into(), text(&self.nsys()), "--".into()]);
        arguments.extend(nsys::launch(&self.nsys(), options, &stub));
        self.enter(arguments, CONTROL_TIMEOUT, true)?;
        tracing::debug!(
            pid = self.process.pid,
            session = options.session,
            "session supervisor started"
        );
        Ok(())
    }

    /// Tells a waiting launcher that there will be no session, and why: the workload starts at
    /// once.
    pub fn refuse(&self, why: &str) -> Result<(), GraftError> {
        let failed = text(&self.run_dir.join(run_dir::FAILED));
        let arguments = vec!["write".into(), failed, why.into()];
        let output = self.enter(arguments, CONTROL_TIMEOUT, false)?;
        accepted("refusal", output).map(drop)
    }

    /// What the launcher did; none while it waits.
    pub fn read_state(&self) -> Result<Option<LauncherState>, GraftError> {
        self.state_in(&self.root()?)
    }

    fn state_in(&self, root: &ContainerRoot) -> Result<Option<LauncherState>, GraftError> {
        match root.read(&self.run_dir.join(run_dir::STATE), run_dir::CONTROL_LIMIT) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(RootfsError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the launcher has decided, at most `limit`.
    pub fn await_state(&self, limit: Duration) -> Result<LauncherState, GraftError> {
        // Pinned: a workload may end right after its start, and what its launcher said is still
        // there.
        let root = self.root()?;
        awaited(limit, || self.state_in(&root))
    }

    /// Why there is no session, in the supervisor's or the agent's words.
    pub fn failure(&self) -> Option<String> {
        self.said(run_dir::FAILED)
    }

    /// The text of a file of the run folder; none where it cannot be read.
    fn said(&self, name: &str) -> Option<String> {
        let root = self.root().ok()?;
        let bytes = root.read(&self.run_dir.join(name), run_dir::CONTROL_LIMIT).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What the supervisor ended by itself, since the last start of a collection.
    pub fn guard_verdict(&self) -> Option<flopwatch_launcher::guard::Verdict> {
        flopwatch_launcher::guard::Verdict::parse(&self.said(run_dir::GUARD)?)
    }

    /// Room of the volume that captures are written to.
    pub fn volume(&self) -> Result<Volume, GraftError> {
        Ok(self.root()?.volume(&self.run_dir)?)
    }

    /// State of the session, asked from inside.
    pub fn session_state(&self, session: &str) -> Result<SessionState, GraftError> {
        let output = self.control("sessions list", nsys::list(&self.nsys()), &[], CONTROL_TIMEOUT)?;
        Ok(nsys::parse_list(&String::from_utf8_lossy(&output.stdout), session))
    }

    /// Version of the tools in the container.
    pub fn tools_version(&self) -> Result<Option<String>, GraftError> {
        let output = self.control(
            "--version",
            vec![text(&self.nsys()), "--version".into()],
            &[],
            CONTROL_TIMEOUT,
        )?;
        Ok(nsys::parse_version(&String::from_utf8_lossy(&output.stdout)).map(str::to_owned))
    }

    /// Starts a collection whose raw captures will be called `name`; its bounds hold from before
    /// the start on.
    pub fn start_collection(
        &self,
        session: &str,
        name: &str,
        collection: &Collection,
        bounds: Bounds,
    ) -> Result<(), GraftError> {
        let deadline = unix_ms().saturating_add(u64::try_from(bounds.limit.as_millis()).unwrap_or(u64::MAX));
        let collecting = Collecting {
            session: session.into(),
            deadline_unix_ms: deadline,
            max_bytes: bounds.max_bytes,
            min_free_bytes: bounds.min_free_bytes,
            output: self.capture(name),
            running: false,
        };
        let options = ["--begin-collecting".into(), text(&self.run_dir), collecting.render()];
        let start = StartOptions {
            session: session.into(),
            output: self.run_dir.join(run_dir::OUT).join(name),
            collection: collection.clone(),
        };
        self.control("start", nsys::start(&self.nsys(), &start), &options, CONTROL_TIMEOUT)
            .map(drop)
    }

    /// Ends a collection that records all of its window; returns the raw capture's path in the
    /// container. Where the supervisor was faster, its capture is returned.
    pub fn stop_collection(&self, session: &str, name: &str) -> Result<PathBuf, GraftError> {
        let mut captures = self.stop_ranges(session, name)?.into_iter();
        captures.next().ok_or_else(|| GraftError::NoCapture {
            path: self.capture(name),
        })
    }

    /// Ends a collection; returns the paths of its raw captures in the container, one for each
    /// range that it recorded, in their order. There is at least one.
    pub fn stop_ranges(&self, session: &str, name: &str) -> Result<Vec<PathBuf>, GraftError> {
        let options = ["--end-collecting".into(), text(&self.run_dir)];
        let stopped = self.control("stop", nsys::stop(&self.nsys(), session), &options, STOP_TIMEOUT);
        let paths = self.captures_of(name)?;
        match stopped {
            Ok(_) if paths.is_empty() => Err(GraftError::NoCapture {
                path: self.capture(name),
            }),
            Ok(_) => Ok(paths),
            Err(error) if paths.is_empty() => Err(error),
            // An earlier stop wrote it and was cut off before it could say that there is nothing
            // left to guard; or the ranges were over before the window was.
            Err(_) => {
                self.root()?.remove(&self.run_dir.join(run_dir::COLLECTING))?;
                Ok(paths)
            }
        }
    }

    /// Ends a collection and throws it away. Safe to run twice: a collection that ended already is
    /// no error.
    pub fn discard_collection(&self, session: &str, name: &str) -> Result<(), GraftError> {
        // A stop and a removal: `nsys cancel` is not implemented in every version that has it.
        match self.stop_ranges(session, name) {
            Ok(_) => self.remove_captures_of(name).map(drop),
            Err(error) if self.session_state(session)? == SessionState::Collecting => Err(error),
            Err(_) => Ok(()),
        }
    }

    /// Ends the session for good; the workload runs on.
    pub fn shutdown_session(&self, session: &str) -> Result<(), GraftError> {
        self.control("shutdown", nsys::shutdown(&self.nsys(), session), &[], CONTROL_TIMEOUT)
            .map(drop)
    }

    /// Copies a raw capture out, at most `limit` bytes, and leaves it where it is; returns its
    /// bytes.
    pub fn copy_capture(
        &self,
        path: &Path,
        to: &mut dyn io::Write,
        limit: u64,
        progress: impl FnMut(u64) -> bool,
    ) -> Result<u64, GraftError> {
        Ok(self.root()?.copy_out(path, to, limit, progress)?)
    }

    /// Removes a raw capture in the container; true when it was there. Safe to run twice.
    pub fn remove_capture(&self, path: &Path) -> Result<bool, GraftError> {
        Ok(self.root()?.remove(path)?)
    }

    /// Whether a control command (of an agent that ended in the middle of it, or the guard's stop)
    /// is at work in the container.
    pub fn is_controlled(&self) -> io::Result<bool> {
        let namespace = |pid: i32| std::fs::read_link(self.procfs.folder(pid).join("ns/pid")).ok();
        let own = namespace(self.process.pid);
        // The namespace first: the command line of a process elsewhere is nobody's business here,
        // and its reading may wait.
        Ok(self.procfs.pids()?.into_iter().any(|pid| {
            own.is_some()
                && namespace(pid) == own
                && self.procfs.command_line(pid).is_ok_and(|words| is_control(&words))
        }))
    }

    /// Waits until no control command is at work in the container, at most as long as the longest
    /// may take.
    pub fn await_quiet(&self) -> io::Result<()> {
        let deadline = Instant::now() + STOP_TIMEOUT;
        while self.is_controlled()? && Instant::now() < deadline {
            pause(Duration::from_millis(100));
        }
        Ok(())
    }
}

/// What a verb of the launcher came to, which must have ended well.
fn accepted(verb: &'static str, output: Output) -> Result<Output, GraftError> {
    if output.success() {
        return Ok(output);
    }
    Err(GraftError::Refused {
        verb,
        end: output.end,
        message: output.last_words(),
    })
}

/// Asks until there is an answer, for at most `limit`.
fn awaited<T>(limit: Duration, ask: impl Fn() -> Result<Option<T>, GraftError>) -> Result<T, GraftError> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        if Instant::now() >= deadline {
            return Err(GraftError::Undecided(limit));
        }
        pause(Duration::from_millis(10));
    }
}

/// A supervisor with a deadline holds a control command; one without holds the session. The guard
/// runs its stop without one.
fn is_control(words: &[String]) -> bool {
    let word = |index: usize| words.get(index).map(String::as_str);
    match word(1) {
        Some("keeper") => word(2) == Some("--deadline-seconds"),
        Some("stop") => word(0).is_some_and(|program| program.ends_with("/nsys")),
        _ => false,
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[expect(
    clippy::disallowed_methods,
    reason = "this crate blocks by design; callers give it a thread"
)]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_command_is_told_from_a_session() {
        for (line, controls) in [
            (
                "/t/launcher keeper --deadline-seconds 15 -- /t/nsys sessions list",
                true,
            ),
            ("/t/target-linux-x64/nsys stop --session=flopwatch", true),
            (
                "/t/launcher keeper --run-dir /r --nsys /t/nsys -- /t/nsys launch x",
                false,
            ),
            ("/t/target-linux-x64/nsys --start-agent", false),
            ("/bin/systemctl stop x", false),
            ("sh", false),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(is_control(&words), controls, "{line}");
        }
    }
}
