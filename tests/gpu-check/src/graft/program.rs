//! A program under observation: started plainly, or through the launcher and grafted.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use flopwatch_attach::graft::{LauncherState, Target, WAITING};
use flopwatch_attach::nsys::LaunchOptions;
use flopwatch_attach::process::{ProcessId, Procfs};
use flopwatch_attach::reexec::Reexec;

use super::pace::Pace;

/// Longest wait for any state of the program.
const WAIT_TIMEOUT: Duration = Duration::from_mins(2);
/// How long the launcher waits, in seconds, for a session to be claimed and made.
const LAUNCHER_SECONDS: &str = "60";
/// What a program that cannot run here exits with, after a line that begins with [`UNAVAILABLE`].
pub(crate) const CANNOT_RUN: i32 = 3;
/// See [`CANNOT_RUN`].
pub(crate) const UNAVAILABLE: &str = "unavailable: ";

/// A running program.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    folder: PathBuf,
    started: Instant,
    started_ns: u64,
}

/// Why a program does not run.
#[derive(Debug)]
pub(crate) enum Started {
    /// The program runs, and has reported its first steps.
    Running(Program),
    /// The program reported that it cannot run here, and why.
    Unavailable(String),
}

impl Program {
    /// Starts it plainly.
    pub(crate) fn plain(folder: &Path, command: &[String]) -> Result<Started> {
        std::fs::create_dir_all(folder)?;
        let program = Self::spawn(folder, command)?;
        program.until_it_reports()
    }

    /// Starts it through the launcher of `bundle`, and grafts a session of that name into it.
    pub(crate) fn grafted(
        bundle: &Path,
        folder: &Path,
        command: &[String],
        session: &str,
    ) -> Result<(Started, Target, LauncherState)> {
        let (tools, run) = (folder.join("tools"), folder.join("run"));
        for made in [&tools, &run] {
            std::fs::create_dir_all(made)?;
        }
        // As the init container of a prepared pod does. Not a link: with the host's half beside it
        // the profiler would import by itself, inside the program's container.
        let half = bundle.join("nsys/target-linux-x64");
        for arguments in [vec![OsStr::new("install")], vec![OsStr::new("copy"), half.as_os_str()]] {
            let installed = Command::new(bundle.join("launcher"))
                .args(arguments)
                .arg(&tools)
                .stdout(Stdio::null())
                .status()
                .context("the launcher")?;
            if !installed.success() {
                bail!("the launcher's tools cannot be put into {}", tools.display());
            }
        }
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut line = vec![text(&tools.join("launcher")), "run".to_owned()];
        line.extend([
            "--run-dir".to_owned(),
            text(&run),
            "--tools-dir".to_owned(),
            text(&tools),
        ]);
        for bound in ["--claim-seconds", "--session-seconds"] {
            line.extend([bound.to_owned(), LAUNCHER_SECONDS.to_owned()]);
        }
        line.push("--".to_owned());
        line.extend_from_slice(command);
        let program = Self::spawn(folder, &line)?;
        let target = program.launcher(bundle, &run, &tools)?;
        let options = LaunchOptions {
            session: session.to_owned(),
            trace: vec!["cuda".to_owned(), "nvtx".to_owned()],
            cuda_graph_trace: None,
            nvtx_capture: None,
            trace_fork_before_exec: false,
        };
        target.start_session(&options).context("the session")?;
        let state = target.await_state(WAIT_TIMEOUT).context("the launcher's decision")?;
        Ok((program.until_it_reports()?, target, state))
    }

    /// Starts it and does not wait for a report.
    pub(crate) fn spawn(folder: &Path, command: &[String]) -> Result<Self> {
        let (program, arguments) = command.split_first().context("no command")?;
        let output = File::create(folder.join("stdout"))?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(File::create(folder.join("stderr"))?)
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        Ok(Self {
            child,
            folder: folder.to_owned(),
            started: Instant::now(),
            started_ns: now_ns(),
        })
    }

    /// The launcher that this process is, once it waits: for a session.
    fn launcher(&self, bundle: &Path, run: &Path, tools: &Path) -> Result<Target> {
        self.launcher_with(WAITING, bundle, run, tools)
    }

    /// The same once it has written the file `sign` into its run folder. No kubelet made its
    /// folders, and no container is around it.
    pub(crate) fn launcher_with(&self, sign: &str, bundle: &Path, run: &Path, tools: &Path) -> Result<Target> {
        let procfs = Procfs::default();
        let process = procfs.identify(i32::try_from(self.child.id())?)?;
        while self.started.elapsed() < WAIT_TIMEOUT {
            if run.join(sign).exists() {
                return Ok(Target {
                    reexec: Reexec::default(),
                    procfs,
                    process,
                    launcher: bundle.join("launcher"),
                    run_dir: run.to_owned(),
                    tools_dir: tools.to_owned(),
                    volumes: None,
                    cgroup: None,
                });
            }
            pause(Duration::from_millis(20));
        }
        bail!("the launcher never waited: {}", self.last_words())
    }

    fn until_it_reports(mut self) -> Result<Started> {
        while self.started.elapsed() < WAIT_TIMEOUT {
            if self.pace().last().is_some() {
                return Ok(Started::Running(self));
            }
            if let Some(status) = self.child.try_wait()? {
                let message = self.output();
                let reason = message.lines().find_map(|line| line.strip_prefix(UNAVAILABLE));
                return match reason {
                    Some(reason) if status.code() == Some(CANNOT_RUN) => Ok(Started::Unavailable(reason.to_owned())),
                    _ => bail!("the program ended with {status}: {}", self.last_words()),
                };
            }
            pause(Duration::from_millis(20));
        }
        bail!("the program says nothing: {}", self.last_words())
    }

    fn output(&self) -> String {
        std::fs::read_to_string(self.folder.join("stdout")).unwrap_or_default()
    }

    fn last_words(&self) -> String {
        let message = std::fs::read_to_string(self.folder.join("stderr")).unwrap_or_default();
        message.lines().last().unwrap_or_default().to_owned()
    }

    /// The steps that the program has reported so far.
    pub(crate) fn pace(&self) -> Pace {
        Pace::parse(&self.output())
    }

    /// Milliseconds from its start to its first report.
    pub(crate) fn first_report_ms(&self) -> Option<u64> {
        Some(self.pace().first_ns()?.saturating_sub(self.started_ns) / 1_000_000)
    }

    /// PID of the program, which the launcher had before it.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has said that it went on for so long; its steps per second meanwhile.
    pub(crate) fn works_for(&self, time: Duration) -> Result<Option<f64>> {
        let from = now_ns();
        let until = from.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let begin = Instant::now();
        while begin.elapsed() < time + WAIT_TIMEOUT {
            let pace = self.pace();
            if pace.last().is_some_and(|(at, _)| at >= until) {
                return Ok(pace.per_second(from, u64::MAX));
            }
            pause(Duration::from_millis(50));
        }
        bail!("the program stopped working: {}", self.last_words())
    }

    /// Ends it as a kubelet would, and says how it ended.
    pub(crate) fn end(mut self) -> Result<ExitStatus> {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id())?);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM)?;
        let begin = Instant::now();
        while begin.elapsed() < WAIT_TIMEOUT {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            pause(Duration::from_millis(20));
        }
        bail!("the program does not end on SIGTERM")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended already unless something failed before.
        if matches!(self.child.try_wait(), Ok(None)) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// The profiler's own process of the session that runs the tools of `bundle`.
pub(crate) fn session_process(folder: &Path) -> Result<Option<ProcessId>> {
    let procfs = Procfs::default();
    let run = folder.join("run").to_string_lossy().into_owned();
    for pid in procfs.pids()? {
        let is_agent = procfs
            .command_line(pid)
            .is_ok_and(|words| words.iter().any(|word| word == "--start-agent"));
        // Sessions of others may run on this machine: ours keeps its scratch files in our run
        // folder.
        let environment = std::fs::read(procfs.folder(pid).join("environ")).unwrap_or_default();
        if is_agent && String::from_utf8_lossy(&environment).contains(&run) {
            return Ok(procfs.identify(pid).ok());
        }
    }
    Ok(None)
}

/// Ends what a graft leaves running when this value goes: here no container's end takes the
/// supervisors along.
#[derive(Debug)]
pub(crate) struct Supervisors {
    run: String,
}

impl Supervisors {
    /// Of programs that are grafted in `folder`.
    pub(crate) fn of(folder: &Path) -> Self {
        Self {
            run: folder.join("run").to_string_lossy().into_owned(),
        }
    }

    fn running(&self) -> Vec<i32> {
        let procfs = Procfs::default();
        let pids = procfs.pids().unwrap_or_default();
        let is_supervisor =
            |words: &[String]| words.get(1).is_some_and(|word| word == "keeper") && words.contains(&self.run);
        pids.into_iter()
            .filter(|pid| procfs.command_line(*pid).is_ok_and(|words| is_supervisor(&words)))
            .collect()
    }
}

impl Drop for Supervisors {
    fn drop(&mut self) {
        let begin = Instant::now();
        let mut running = self.running();
        for pid in &running {
            // A supervisor ends its tree on this signal; one that has ended meanwhile is no error.
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(*pid), nix::sys::signal::Signal::SIGTERM).ok();
        }
        while !running.is_empty() && begin.elapsed() < WAIT_TIMEOUT {
            pause(Duration::from_millis(50));
            running = self.running();
        }
    }
}

/// Nanoseconds since the Unix epoch.
fn now_ns() -> u64 {
    let age = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)
}

#[expect(clippy::disallowed_methods, reason = "the program has no runtime")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
