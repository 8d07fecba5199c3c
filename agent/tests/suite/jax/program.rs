//! A program of JAX in a network namespace of its own.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use flopwatch_agent::profilers::jax::service::{Service, find};
use flopwatch_attach::process::{ProcessId, Procfs};
use tempfile::TempDir;

use super::rig::{may_enter, wait};

/// Longest start of a program on a busy machine.
const START_TIMEOUT: Duration = Duration::from_mins(2);

/// The program; ended when dropped, with all its processes.
pub(crate) struct Program {
    child: Child,
    folder: TempDir,
    first_port: u16,
    processes: u16,
}

impl Program {
    /// Starts processes with a service each, at ports from `first_port` on. None where there is no
    /// JAX here.
    pub(crate) fn start(first_port: u16, processes: u16) -> Option<Self> {
        Self::start_with(first_port, processes, tempfile::tempdir().unwrap(), &[])
    }

    /// Starts one whose steps call so many functions each, in an annotation of its own.
    pub(crate) fn start_calling(port: u16, calls: u32) -> Option<Self> {
        let variables = [("CALLS", calls.to_string())];
        Self::start_with(port, 1, tempfile::tempdir().unwrap(), &variables)
    }

    /// Starts one whose compiler writes its programs to a folder, and the variables that say so.
    pub(crate) fn start_dumping(port: u16) -> Option<(Self, [(&'static str, String); 2])> {
        let folder = tempfile::tempdir().unwrap();
        let dumps = folder.path().join("dumps");
        std::fs::create_dir(&dumps).unwrap();
        let dumps = dumps.to_str().unwrap().to_owned();
        let flags = format!("--xla_dump_to={dumps} --xla_dump_hlo_as_text --xla_dump_max_hlo_modules=512");
        let variables = [("XLA_FLAGS", flags), ("JAX_DUMP_IR_TO", dumps)];
        Some((Self::start_with(port, 1, folder, &variables)?, variables))
    }

    fn start_with(first_port: u16, processes: u16, folder: TempDir, variables: &[(&str, String)]) -> Option<Self> {
        let python = python()?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/jax/program.py");
        // One end of what it starts: the first process of a PID namespace takes the others with it.
        let child = Command::new("unshare")
            .args(["--net", "--pid", "--fork", "--kill-child", "--"])
            .arg(python)
            .arg(script)
            .args([first_port.to_string(), processes.to_string()])
            .current_dir(folder.path())
            .env("JAX_PLATFORMS", "cpu")
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let program = Self {
            child,
            folder,
            first_port,
            processes,
        };
        let ports = first_port..first_port + processes;
        let begun = Instant::now();
        while ports.clone().any(|port| program.steps(port).len() < 10) {
            assert!(begun.elapsed() < START_TIMEOUT, "the program does not start");
            wait(Duration::from_millis(100));
        }
        Some(program)
    }

    /// Its processes that have JAX loaded.
    pub(crate) fn processes(&self) -> Vec<ProcessId> {
        let procfs = Procfs::default();
        let mut found = vec![i32::try_from(self.child.id()).unwrap()];
        let mut at = 0;
        while let Some(parent) = found.get(at).copied() {
            let children =
                std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
            found.extend(children.split_whitespace().map(|pid| pid.parse::<i32>().unwrap()));
            at += 1;
        }
        let ids = found.into_iter().filter_map(|pid| procfs.identify(pid).ok());
        ids.filter(|process| procfs.mapped(*process).is_ok_and(|mapped| mapped.jax))
            .collect()
    }

    /// Its services, found as a probe finds them.
    pub(crate) fn services(&self) -> Vec<Service> {
        let found = find(&Procfs::default(), &self.processes());
        let ports: Vec<_> = found.iter().map(|service| service.port).collect();
        let expected: Vec<_> = (self.first_port..self.first_port + self.processes).collect();
        assert_eq!(ports, expected);
        found
    }

    /// Begin and end of the steps of the process with that port, in monotonic seconds.
    pub(crate) fn steps(&self, port: u16) -> Vec<(f64, f64)> {
        let text = std::fs::read_to_string(self.folder.path().join(format!("steps.{port}"))).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole
            .lines()
            .filter_map(|line| {
                let (begun, ended) = line.split_once(' ')?;
                Some((begun.parse().ok()?, ended.parse().ok()?))
            })
            .collect()
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A Python with JAX; none, with the reason on a line, where there is none or nobody may enter
/// namespaces.
fn python() -> Option<OsString> {
    if !may_enter() {
        return None;
    }
    let python = std::env::var_os("FLOPWATCH_PYTHON");
    if python.is_none() {
        println!("skipped: FLOPWATCH_PYTHON names no Python with JAX (cargo xtask setup makes one)");
    }
    python
}
