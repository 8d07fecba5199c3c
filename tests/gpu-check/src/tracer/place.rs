//! Where a program runs with the tracer: the library, its file, and a libcupti of ours in a folder
//! of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use flopwatch_tracer::LIBRARY;
use tempfile::TempDir;

use super::agent::Agent;
use super::program::{Begun, Program};
use super::until::Until;

/// The bundle's program.
const PROGRAM: &str = "tracer-program";
const LIBRARY_NAME: &str = "libflopwatch_cuda.so";
/// The tracer's file, in the folder that a variable names.
const TRACE: &str = "trace/cuda.trace";
/// How the names of the copies of libcupti begin.
const CUPTI: &str = "libcupti.so.";

/// A release of libcupti that the bundle carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Release {
    /// Such as `13.5`.
    pub(super) name: String,
    pub(super) path: PathBuf,
}

impl Release {
    /// The major version of the driver that it is made for.
    pub(super) fn major(&self) -> u32 {
        let major = self.name.split('.').next();
        major.and_then(|major| major.parse().ok()).unwrap_or(0)
    }
}

/// The releases in a folder, each in one of its name, the oldest first.
pub(super) fn releases(folder: &Path) -> Result<Vec<Release>> {
    let mut releases = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("no libcupti in {}", folder.display()))?;
    for entry in entries {
        let folder = entry?.path();
        let mut files = fs::read_dir(&folder)?.filter_map(|file| Some(file.ok()?.path()));
        let file = files.find(|file| name(file).starts_with(CUPTI));
        releases.extend(file.map(|path| Release {
            name: name(&folder),
            path,
        }));
    }
    releases.sort_by_key(|release| numbers(&release.name));
    Ok(releases)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn numbers(name: &str) -> Vec<u32> {
    name.split('.').map(|number| number.parse().unwrap_or(0)).collect()
}

/// What all items share.
#[derive(Debug)]
pub(super) struct Setup {
    /// The folder of the bundle.
    pub(super) bundle: PathBuf,
    pub(super) releases: Vec<Release>,
    /// The folder of a stand-in for the driver.
    pub(super) driver: Option<PathBuf>,
    /// What the driver says its version is.
    pub(super) version: u32,
    /// The Python that has PyTorch.
    pub(super) python: PathBuf,
    /// How long a pace is measured, in ms.
    pub(super) pace_ms: u64,
    /// Records of nodes of graphs.
    pub(super) records: u64,
    /// Kernels of a graph.
    pub(super) nodes: u64,
    /// Windows one after the other.
    pub(super) switches: u64,
}

impl Setup {
    /// The newest release for the driver.
    pub(super) fn newest(&self) -> Result<&Release> {
        let major = self.version / 1000;
        let own = self.releases.iter().rfind(|release| release.major() == major);
        own.with_context(|| format!("the bundle has no libcupti for drivers of CUDA {major}"))
    }

    /// The bundle's program, without the tracer.
    pub(super) fn bare_command(&self) -> Command {
        self.command_of(&self.bundle.join(PROGRAM))
    }

    fn command_of(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some(driver) = &self.driver {
            command.env("LD_LIBRARY_PATH", driver);
        }
        command
    }

    /// A Python program of the bundle.
    pub(super) fn python_command(&self, file: &str) -> Command {
        let mut command = self.command_of(&self.python);
        command.arg("-u").arg(self.bundle.join(file));
        command
    }

    /// What the driver says its version is; why no program begins CUDA where none does.
    pub(super) fn ask_version(&mut self, until: Until) -> Result<Result<u32, String>> {
        let folder = tempfile::tempdir()?;
        let mut program = Program::start(self.bare_command(), folder.path())?;
        Ok(match program.begin(until)? {
            Begun::Ready(version) => {
                self.version = version;
                Ok(version)
            }
            Begun::Unavailable(reason) => Err(reason),
        })
    }
}

/// A folder with the library, its file and a libcupti of ours.
pub(super) struct Place(TempDir);

impl Place {
    /// With a release as ours.
    pub(super) fn new(release: &Release) -> Result<Self> {
        let place = Self(tempfile::Builder::new().prefix("flopwatch-tracer-").tempdir()?);
        fs::write(place.path(LIBRARY_NAME), LIBRARY)?;
        for folder in ["trace", "own"] {
            fs::create_dir(place.path(folder))?;
        }
        fs::copy(&release.path, place.path("own").join(name(&release.path)))?;
        Ok(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A command with the library in it.
    fn traced(&self, mut command: Command) -> Command {
        command
            .env("CUDA_INJECTION64_PATH", self.path(LIBRARY_NAME))
            .env("FLOPWATCH_CUDA_DIR", self.path("trace"))
            .env("FLOPWATCH_CUDA_CUPTI", self.path("own"));
        command
    }

    /// A program that has begun with the library, and its agent.
    pub(super) fn begin(&self, command: Command, until: Until) -> Result<(Program, Agent)> {
        match self.try_begin(command, until)? {
            Ok(begun) => Ok(begun),
            Err(reason) => bail!("CUDA begins no more: {reason}"),
        }
    }

    /// As [`begin`](Self::begin), with the reason where the program cannot run here.
    pub(super) fn try_begin(&self, command: Command, until: Until) -> Result<Result<(Program, Agent), String>> {
        let mut program = Program::start(self.traced(command), self.0.path())?;
        match program.begin(until)? {
            Begun::Ready(_) => {}
            Begun::Unavailable(reason) => return Ok(Err(reason)),
        }
        let agent = Agent::of(&self.path(TRACE), program.pid(), until)?;
        Ok(Ok((program, agent)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_come_in_the_order_of_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        for release in ["13.5", "12.10", "12.9", "empty"] {
            fs::create_dir(folder.path().join(release)).unwrap();
            let file = folder.path().join(release).join("libcupti.so.13");
            if release != "empty" {
                fs::write(file, "").unwrap();
            }
        }
        let found = releases(folder.path()).unwrap();
        let names: Vec<&str> = found.iter().map(|release| release.name.as_str()).collect();
        assert_eq!(names, ["12.9", "12.10", "13.5"]);
        assert_eq!((found[0].major(), found[2].major()), (12, 13));
    }
}
