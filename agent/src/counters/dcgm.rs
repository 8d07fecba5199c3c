//! DCGM's own command, which lets go of the counters and takes them again. DCGM knows neither who
//! paused it nor for how long.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use flopwatch_pipeline::child::{Error, run_here};

/// Longest time that the command may take.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// The command and the host engine that it talks to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dcgm {
    /// `dcgmi`.
    pub program: PathBuf,
    /// Address of the host engine; none: the command's default.
    pub host: Option<String>,
}

impl Dcgm {
    /// Has DCGM let go of the counters: its profiling metrics are blank from then on. Safe to run
    /// twice.
    pub fn pause(&self) -> Result<(), Error> {
        self.run("pausing DCGM", "--pause")
    }

    /// Has DCGM take them again. Safe to run twice.
    pub fn resume(&self) -> Result<(), Error> {
        self.run("resuming DCGM", "--resume")
    }

    fn run(&self, what: &str, verb: &str) -> Result<(), Error> {
        let mut command = Command::new(&self.program);
        command.arg("profile");
        if let Some(host) = &self.host {
            command.args(["--host", host]);
        }
        command.arg(verb);
        run_here(what, command, COMMAND_TIMEOUT).map(drop)
    }
}
