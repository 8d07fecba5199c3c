//! What the file of the CUDA tracer says of a container's programs: read, and not changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flopwatch_api::preparation::FLOPWATCH_CUDA_DIR;
use flopwatch_attach::bounded::Gate;
use flopwatch_attach::process::{Mapped, ProcessId, Procfs};
use flopwatch_attach::rootfs::RootfsError;
use flopwatch_attach::tracer::{self, Slots};
use flopwatch_pipeline::failure::chain;
use flopwatch_tracer_file::process::{Phase, Process};

/// How long the container's files are waited for.
const FILES_TIMEOUT: Duration = Duration::from_secs(3);

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// There is no file: no program has begun CUDA.
    NoFile,
    /// There is no file, and the C library of each program is musl.
    Musl,
    /// The file cannot be read, and why.
    Unread(String),
    /// The processes that run and have the library in them, as the file has them.
    Programs(Vec<Process>),
}

impl Look {
    /// The processes that run and have the library in them.
    pub(super) fn programs(&self) -> &[Process] {
        match self {
            Self::NoFile | Self::Musl | Self::Unread(_) => &[],
            Self::Programs(programs) => programs,
        }
    }
}

/// Where the programs of a container keep the file, in the container; none where they have none.
pub(super) fn file(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    let folder = Path::new(variables.get(FLOPWATCH_CUDA_DIR)?);
    folder.is_absolute().then(|| folder.join(tracer::NAME))
}

/// Looks at the file of the container that has these processes, its first before the others, with
/// what each has mapped; none where its programs have no tracer.
pub(super) fn look(gate: &Gate, procfs: &Procfs, found: &[(ProcessId, Mapped)]) -> Option<Look> {
    let processes: Vec<_> = found.iter().map(|(process, _)| *process).collect();
    let first = *processes.first()?;
    let path = file_of(procfs, first)?;
    let own = procfs.clone();
    let read = gate.within(&first.pid.to_string(), FILES_TIMEOUT, move || {
        Slots::of_container(&own, first, &path)
    });
    Some(match read {
        Ok(Ok(slots)) => Look::Programs(running(procfs, &processes, &slots)),
        Ok(Err(tracer::Error::Container(RootfsError::NotFound { .. }))) => without_file(found),
        Ok(Err(error)) => Look::Unread(chain(&error)),
        Err(late) => Look::Unread(chain(&late)),
    })
}

/// What stands for a file that is not there: a program of glibc may make it yet.
fn without_file(found: &[(ProcessId, Mapped)]) -> Look {
    if found.iter().all(|(_, mapped)| mapped.musl) {
        Look::Musl
    } else {
        Look::NoFile
    }
}

/// Where the programs of the container of a process keep the file.
pub(super) fn file_of(procfs: &Procfs, process: ProcessId) -> Option<PathBuf> {
    file(&procfs.variables(process, &[FLOPWATCH_CUDA_DIR]).ok()?)
}

/// Those of the processes that have a slot. One that runs another program since has left its slot.
fn running(procfs: &Procfs, processes: &[ProcessId], slots: &Slots) -> Vec<Process> {
    let known = processes.iter().filter_map(|process| key(procfs, *process));
    let known: BTreeSet<_> = known.collect();
    let is_there = |process: &Process| known.contains(&(process.pid, process.started));
    let mut programs = slots.processes();
    programs.retain(|process| process.phase != Phase::Replaced && is_there(process));
    programs
}

/// How a slot names a process: as its container numbers it, and when it began.
pub(super) fn key(procfs: &Procfs, process: ProcessId) -> Option<(u32, u64)> {
    let inner = procfs.owner(process).ok()?.inner_pid;
    Some((u32::try_from(inner).ok()?, process.start_time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(path: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(FLOPWATCH_CUDA_DIR.to_owned(), path.to_owned())])
    }

    #[test]
    fn the_file_lies_in_the_folder_that_the_program_was_started_with() {
        let path = file(&folder("/flopwatch/cuda"));
        assert_eq!(path.as_deref(), Some(Path::new("/flopwatch/cuda/cuda.trace")));
        assert_eq!(file(&folder("relative")), None);
        assert_eq!(file(&BTreeMap::new()), None);
    }

    #[test]
    fn a_container_without_the_tracer_is_not_looked_into() {
        let procfs = Procfs::default();
        let own = procfs.identify(i32::try_from(std::process::id()).unwrap()).unwrap();
        let found = [(own, Mapped::default())];
        assert_eq!(look(&Gate::default(), &procfs, &found), None);
        assert_eq!(look(&Gate::default(), &procfs, &[]), None);
        assert_eq!(key(&procfs, own), Some((std::process::id(), own.start_time)));
    }

    #[test]
    fn a_container_is_of_musl_where_each_of_its_programs_is() {
        let of = |musl| {
            let process = ProcessId { pid: 1, start_time: 1 };
            let mapped = Mapped {
                musl,
                ..Mapped::default()
            };
            (process, mapped)
        };
        assert_eq!(without_file(&[of(true), of(true)]), Look::Musl);
        assert_eq!(without_file(&[of(true), of(false)]), Look::NoFile);
    }
}
