//! Two programs that share the GPU by MPS, each with a window.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use flopwatch_tracer_file::wanted::{GraphLevel, Kinds};

use super::item::{Ended, Found};
use super::place::{Place, Setup};
use super::tally::Tally;
use super::until::Until;
use crate::graft::program::pause;

/// The server's program.
const CONTROL: &str = "nvidia-cuda-mps-control";
const LAUNCHES: u64 = 5000;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long the server may take to be there, and to go.
const SERVER_TIMEOUT: Duration = Duration::from_secs(10);
/// What it makes in its folder when it is there.
const SOCKET: &str = "control";

/// A server of MPS with its own folders; it is told to quit when this value goes.
struct Server {
    program: PathBuf,
    folder: tempfile::TempDir,
    process: Child,
}

impl Server {
    /// Starts one in the foreground, as a child.
    fn start(program: PathBuf) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let process = in_folder(&program, folder.path())
            .arg("-f")
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {CONTROL}"))?;
        let mut server = Self {
            program,
            folder,
            process,
        };
        let until = Until::after(SERVER_TIMEOUT);
        while !server.folder.path().join(SOCKET).exists() {
            if server.process.try_wait()?.is_some() || until.left().is_none() {
                bail!("{CONTROL} does not begin here");
            }
            pause(POLL_INTERVAL);
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let control = in_folder(&self.program, self.folder.path())
            .stdin(Stdio::piped())
            .spawn();
        if let Ok(mut control) = control {
            if let Some(mut input) = control.stdin.take() {
                // One that has ended already reads nothing.
                input.write_all(b"quit\n").ok();
            }
            end(&mut control);
        }
        end(&mut self.process);
    }
}

/// Waits for a process, and kills it where it stays.
fn end(process: &mut Child) {
    let until = Until::after(SERVER_TIMEOUT);
    while until.left().is_some() && matches!(process.try_wait(), Ok(None)) {
        pause(POLL_INTERVAL);
    }
    process.kill().ok();
    process.try_wait().ok();
}

/// The control program, which says nothing.
fn in_folder(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    with_folders(&mut command, folder);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn with_folders(command: &mut Command, folder: &Path) {
    command
        .env("CUDA_MPS_PIPE_DIRECTORY", folder)
        .env("CUDA_MPS_LOG_DIRECTORY", folder);
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(CONTROL))
        .find(|file| file.is_file())
}

/// Both windows hold their own program's launches.
pub(super) fn two_programs(setup: &Setup, until: Until, found: &mut Found) -> Result<Ended> {
    let program = match find() {
        Some(program) if setup.driver.is_none() => program,
        _ => return Ok(Ended::NotRun(format!("no {CONTROL} on this machine"))),
    };
    let server = match Server::start(program) {
        Ok(server) => server,
        Err(error) => return Ok(Ended::NotRun(format!("{error:#}"))),
    };
    let newest = setup.newest()?;
    let places = [Place::new(newest)?, Place::new(newest)?];
    let mut begun = Vec::new();
    for place in &places {
        let mut command = setup.bare_command();
        with_folders(&mut command, server.folder.path());
        match place.try_begin(command, until)? {
            Ok(both) => begun.push(both),
            Err(reason) => return Ok(Ended::NotRun(format!("MPS serves no program here: {reason}"))),
        }
    }
    for (_, agent) in &mut begun {
        agent.begin(Kinds::KERNELS, GraphLevel::Whole, until)?;
    }
    for (program, _) in &mut begun {
        program.tell(&format!("launch {LAUNCHES}"))?;
    }
    for (number, (program, agent)) in (1..).zip(&mut begun) {
        let answer = program.line(until)?;
        found.must(answer == format!("launched {LAUNCHES} {LAUNCHES}"), || answer);
        agent.end(until)?;
        let mut tally = Tally::default();
        agent.drain(&mut tally)?;
        found.must_equal(&format!("kernels of program {number}"), tally.kernels, LAUNCHES);
    }
    Ok(Ended::Done)
}
