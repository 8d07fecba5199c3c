//! Programs that outlive the recipe that started them, known by process id and start time.

use super::layout::Layout;
use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::cache::remove;
use flopwatch_toolchain::command::{pause, tail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How much a program of Go's may allocate before it collects, in percent of what lives. At Go's
/// own 100 the API server collects for a sixth of its time; it has 150 MB that live.
const GC_PERCENT: &str = "400";

/// One program of the cluster.
#[derive(Debug, Clone)]
pub(crate) struct Daemon {
    /// Names it in messages, and its files.
    pub(crate) name: String,
    pid_file: PathBuf,
    pub(crate) log: PathBuf,
}

/// A process that cannot be mistaken for a later one with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: i32,
    /// Clock ticks from boot to the process's start.
    start: u64,
}

impl Daemon {
    pub(crate) fn new(layout: &Layout, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            pid_file: layout.run().join(format!("{name}.pid")),
            log: layout.log().join(format!("{name}.log")),
        }
    }

    /// Starts the program in a session of its own, its output in its log.
    pub(crate) fn start<A: AsRef<OsStr>>(&self, program: &Path, args: impl IntoIterator<Item = A>) -> Result<()> {
        if self.is_alive() {
            bail!("{} runs already", self.name);
        }
        let log = File::create(&self.log)?;
        // setsid(1) keeps its process id when, as here, it does not lead a process group.
        let child = Command::new("setsid")
            .arg(program)
            .args(args)
            .env("GOGC", GC_PERCENT)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", self.name))?;
        let pid = i32::try_from(child.id())?;
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let (_, start) = parse_stat(&text).with_context(|| format!("cannot tell when {} started", self.name))?;
        Ok(fs::write(&self.pid_file, Process { pid, start }.render())?)
    }

    fn process(&self) -> Option<Process> {
        Process::parse(&fs::read_to_string(&self.pid_file).ok()?)
    }

    /// Whether it was started and not stopped since.
    pub(crate) fn was_started(&self) -> bool {
        self.pid_file.exists()
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.process().is_some_and(Process::is_alive)
    }

    pub(crate) fn pid(&self) -> Option<i32> {
        self.process()
            .filter(|process| process.is_alive())
            .map(|process| process.pid)
    }

    /// An error with the end of its log when it is no longer there.
    pub(crate) fn must_live(&self) -> Result<()> {
        if self.is_alive() {
            Ok(())
        } else {
            bail!("{} ended\n{}", self.name, self.report())
        }
    }

    /// The end of its log, for an error.
    pub(crate) fn report(&self) -> String {
        format!("--- the end of {} ---\n{}", self.log.display(), tail(&self.log, 25))
    }

    /// Ends it. All that it keeps goes with the cluster, so there is nothing to wait for but its
    /// end.
    pub(crate) fn stop(&self) -> Result<()> {
        if let Some(process) = self.process() {
            process.end().with_context(|| format!("cannot stop {}", self.name))?;
        }
        remove(&self.pid_file)
    }
}

impl Process {
    fn render(self) -> String {
        format!("{} {}\n", self.pid, self.start)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let process = Self {
            pid: words.next()?.parse().ok()?,
            start: words.next()?.parse().ok()?,
        };
        (process.pid > 1 && words.next().is_none()).then_some(process)
    }

    fn is_alive(self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        parse_stat(&stat).is_some_and(|(state, start)| start == self.start && !matches!(state, 'Z' | 'X'))
    }

    fn end(self) -> Result<()> {
        let begin = Instant::now();
        while self.is_alive() {
            // It may end by itself in between; the next look tells.
            kill(Pid::from_raw(self.pid), Signal::SIGKILL).ok();
            if begin.elapsed() > Duration::from_secs(20) {
                bail!("process {} does not end", self.pid);
            }
            pause(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// Ends processes of the cluster's containers, known by their id alone.
pub(crate) fn end_all(pids: &[i32]) -> Result<()> {
    let processes: Vec<Process> = pids.iter().filter_map(|&pid| now(pid)).collect();
    processes.into_iter().try_for_each(Process::end)
}

fn now(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(Process {
        pid,
        start: parse_stat(&stat)?.1,
    })
    .filter(|process| process.pid > 1)
}

/// State and start time of a process, from its `/proc/<pid>/stat`. The name in it may hold spaces
/// and brackets.
fn parse_stat(stat: &str) -> Option<(char, u64)> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn daemon(folder: &Path) -> Daemon {
        Daemon {
            name: "sleeper".into(),
            pid_file: folder.join("pid"),
            log: folder.join("log"),
        }
    }

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let fields = "R 1 2 2 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 2 3";
        for name in ["sh", "a b", "x) y (z"] {
            assert_eq!(parse_stat(&format!("12 ({name}) {fields}")), Some(('R', 4711)));
        }
        assert_eq!(parse_stat("12 (sh) R 1"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn process_files_are_read_strictly() {
        let process = Process { pid: 12, start: 99 };
        assert_eq!(Process::parse(&process.render()), Some(process));
        for text in ["", "12", "x 1", "1 99", "0 99", "-5 99", "12 99 7"] {
            assert_eq!(Process::parse(text), None, "{text:?}");
        }
    }

    /// Tests that start processes.
    mod crate_tests {
        use super::*;

        #[test]
        fn a_daemon_starts_lives_and_stops_twice() {
            let folder = tempfile::tempdir().unwrap();
            let daemon = daemon(folder.path());
            assert!(!daemon.is_alive());
            daemon.start(Path::new("sleep"), ["600"]).unwrap();
            assert!(daemon.is_alive() && daemon.was_started());
            assert!(
                daemon.start(Path::new("sleep"), ["600"]).is_err(),
                "it must not run twice"
            );
            daemon.stop().unwrap();
            daemon.stop().unwrap();
            assert!(!daemon.is_alive() && !daemon.was_started());
        }

        #[test]
        fn another_process_with_the_same_id_is_left_alone() {
            let folder = tempfile::tempdir().unwrap();
            let daemon = daemon(folder.path());
            let mut bystander = Command::new("sleep").arg("600").spawn().unwrap();
            fs::write(&daemon.pid_file, format!("{} 1\n", bystander.id())).unwrap();
            assert!(!daemon.is_alive());
            daemon.stop().unwrap();
            assert!(bystander.try_wait().unwrap().is_none(), "the bystander was ended");
            bystander.kill().unwrap();
            bystander.wait().unwrap();
        }

        #[test]
        fn a_daemon_that_ended_shows_its_last_words() {
            let folder = tempfile::tempdir().unwrap();
            let daemon = daemon(folder.path());
            daemon
                .start(Path::new("sh"), ["-c", "echo the reason; exit 1"])
                .unwrap();
            let end = Instant::now() + Duration::from_secs(10);
            while daemon.is_alive() && Instant::now() < end {
                pause(Duration::from_millis(10));
            }
            assert!(daemon.must_live().unwrap_err().to_string().contains("the reason"));
        }
    }
}
