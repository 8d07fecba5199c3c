//! PyTorch in namespaces of its own, as a pod has them.

use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flopwatch_agent::profilers::Site;
use flopwatch_attach::process::{ProcessId, Procfs};

use super::super::processes::Processes;

const RUN_TIMEOUT: Duration = Duration::from_mins(3);
/// Begin of the lines in which the program tells how its steps went.
const STEPS: &str = "longest";

/// A Python with PyTorch; None where there is none, which is said.
pub(crate) fn torch() -> Option<PathBuf> {
    let python = std::env::var_os("FLOPWATCH_TORCH").map(PathBuf::from);
    if python.is_none() {
        println!("skipped: FLOPWATCH_TORCH names no Python with PyTorch (cargo xtask setup makes one)");
    }
    python
}

/// The program, in network and PID namespaces of its own.
pub(crate) struct Pod {
    unshare: Child,
    pub(crate) process: ProcessId,
    lines: Arc<Mutex<Vec<String>>>,
    pub(crate) temporary: tempfile::TempDir,
}

impl Pod {
    /// Starts `processes` of them, and waits until each works.
    pub(crate) fn start(python: &Path, processes: usize, work: &str) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/kineto/program.py");
        let mut unshare = Command::new("unshare")
            .args(["--net", "--pid", "--fork", "--kill-child"])
            .arg(python)
            .arg(program)
            .args([&processes.to_string(), work])
            .env("KINETO_USE_DAEMON", "1")
            // Eight programs whose libraries start a thread for each core keep a machine of many
            // cores busy with starting them.
            .envs(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"].map(|name| (name, "1")))
            .env("TMPDIR", temporary.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        collect(unshare.stdout.take().unwrap(), &lines);
        collect(unshare.stderr.take().unwrap(), &lines);
        let until = Instant::now() + RUN_TIMEOUT;
        while count(&lines, "ready") < processes {
            assert!(
                Instant::now() < until,
                "{} of {processes} began; {}; they said {:?}",
                count(&lines, "ready"),
                states(unshare.id()),
                said(&lines)
            );
            assert!(unshare.try_wait().unwrap().is_none(), "the program ended");
            std::thread::sleep(Duration::from_millis(50));
        }
        let procfs = Procfs::default();
        let children = format!("/proc/{0}/task/{0}/children", unshare.id());
        let first = std::fs::read_to_string(children).unwrap();
        let process = procfs.identify(first.trim().parse().unwrap()).unwrap();
        Self {
            unshare,
            process,
            lines,
            temporary,
        }
    }

    /// What is known of it, for a capture of that name.
    pub(crate) fn site(&self, capture: &str, folder: &Path, seconds: u64) -> Site {
        site(self.process, capture, folder, seconds)
    }

    /// Bytes of memory that the first process holds.
    pub(crate) fn held_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.pid)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kibibytes: u64 = line.split_whitespace().next().unwrap().parse().unwrap();
        kibibytes << 10
    }

    /// The longest step since it was asked last, in ms.
    pub(crate) fn longest_step(&self) -> f64 {
        let lines = std::mem::take(&mut *self.lines.lock().unwrap());
        let figures = lines
            .iter()
            .filter_map(|line| line.strip_prefix(STEPS)?.trim().parse().ok());
        figures.fold(0.0, f64::max)
    }

    /// Waits until it or its library says a line with that in it, from now on.
    pub(crate) fn says(&self, words: &str) {
        self.lines.lock().unwrap().clear();
        let until = Instant::now() + RUN_TIMEOUT;
        while !self.lines.lock().unwrap().iter().any(|line| line.contains(words)) {
            assert!(Instant::now() < until, "it never said {words}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until it told the length of its longest step so many times more; it does once a
    /// second.
    pub(crate) fn tells_steps(&self, times: usize) {
        let told = count(&self.lines, STEPS) + times;
        let until = Instant::now() + RUN_TIMEOUT;
        while count(&self.lines, STEPS) < told {
            assert!(Instant::now() < until, "it takes no steps");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What lies in its folder for temporary files.
    pub(crate) fn left(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.temporary.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("flopwatch-")).collect()
    }

    /// Ends it as a container ends.
    pub(crate) fn end(&mut self) {
        self.unshare.kill().ok();
        self.unshare.wait().ok();
        let until = Instant::now() + RUN_TIMEOUT;
        while Procfs::default().is_alive(self.process) {
            assert!(Instant::now() < until, "the program is still there");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// What is known of a process, for a capture of that name.
pub(crate) fn site(process: ProcessId, capture: &str, folder: &Path, seconds: u64) -> Site {
    let length = Duration::from_secs(seconds);
    let mut site = Processes::beside(process).site(process, folder, length);
    capture.clone_into(&mut site.capture);
    site.limits.capture_bytes = 1 << 30;
    site
}

impl Drop for Pod {
    fn drop(&mut self) {
        self.unshare.kill().ok();
        self.unshare.wait().ok();
    }
}

fn collect(from: impl Read + Send + 'static, lines: &Arc<Mutex<Vec<String>>>) {
    let lines = Arc::clone(lines);
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            lines.lock().unwrap().push(line);
        }
    });
}

/// What a process and those that it started do: state, threads, where the kernel has them wait, and
/// the processor time that they took, in ms.
fn states(process: u32) -> String {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
    let stat = read("stat");
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let [state, threads] = [0, 17].map(|at| fields.get(at).copied().unwrap_or("gone"));
    let ran = read("schedstat");
    let ran_ns: u64 = ran.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
    let children = read(&format!("task/{process}/children"));
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    let below: String = children.map(states).collect();
    let (waits, spent_ms) = (read("wchan"), ran_ns / 1_000_000);
    format!("{process} {state} {threads} {waits} {spent_ms}, {below}")
}

/// What they said beside how their steps went.
fn said(lines: &Mutex<Vec<String>>) -> Vec<String> {
    let is_step = |line: &String| line.starts_with(STEPS) || line.starts_with("ready");
    let lines = lines.lock().unwrap();
    lines.iter().filter(|line| !is_step(line)).take(20).cloned().collect()
}

fn count(lines: &Mutex<Vec<String>>, word: &str) -> usize {
    let lines = lines.lock().unwrap();
    lines.iter().filter(|line| line.starts_with(word)).count()
}
