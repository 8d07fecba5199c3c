//! Folders of traces in containers that belong to no capture any more: an agent died, and its
//! captures were gone before the next one came.
//!
//! A folder for temporary files is the workload's, and may be on a volume that several nodes share.
//! So nothing goes by its name alone: the capture must have been this node's.

use std::path::Path;
use std::time::Duration;

use flopwatch_attach::bounded::Gate;
use flopwatch_attach::kineto::{TraceFolder, captures_in, folder_name};
use flopwatch_attach::process::{ProcessId, Procfs};
use flopwatch_attach::rootfs::RootfsError;
use flopwatch_pipeline::failure::chain;
use tracing::{debug, info, warn};

use crate::profilers::facts::TMPDIR;
use crate::profilers::kineto::temporary_folder;

/// How long a container's files are waited for.
const FILES_TIMEOUT: Duration = Duration::from_secs(10);

/// Removes them in one container; `is_orphan` says whether a capture of that UID was this node's
/// and is at work no more.
pub(super) fn sweep_container(
    procfs: &Procfs,
    gate: &Gate,
    id: &str,
    process: ProcessId,
    is_orphan: impl Fn(&str) -> bool + Send + 'static,
) {
    let key = format!("{id} traces");
    let (pid, procfs) = (process.pid, procfs.clone());
    match gate.within(&key, FILES_TIMEOUT, move || remove(&procfs, process, &is_orphan)) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(pid, error = %chain(&error), "a container cannot be looked into for orphaned traces"),
        Err(error) => warn!(pid, %error, "a container's files do not answer; orphaned traces in it stay for now"),
    }
}

fn remove(procfs: &Procfs, process: ProcessId, is_orphan: &impl Fn(&str) -> bool) -> Result<(), RootfsError> {
    let pid = process.pid;
    let variables = procfs.variables(process, &[TMPDIR])?;
    let temporary = Path::new(temporary_folder(variables.get(TMPDIR).map(String::as_str)));
    let captures = captures_in(procfs, process, temporary)?;
    for capture in captures.into_iter().filter(|capture| is_orphan(capture)) {
        let folder = temporary.join(folder_name(&capture));
        match TraceFolder::new(procfs.clone(), process, folder).remove() {
            Ok(removed) => info!(
                pid,
                capture, removed, "found traces in a container that belong to no capture"
            ),
            Err(error) => debug!(pid, capture, error = %chain(&error), "orphaned traces stay for now"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use tempfile::TempDir;

    use super::*;

    const ORPHAN: &str = "0a1b2c3d-0000-0000-0000-000000000001";
    const AT_WORK: &str = "0a1b2c3d-0000-0000-0000-000000000002";
    const OF_ANOTHER_NODE: &str = "0a1b2c3d-0000-0000-0000-000000000003";

    /// A folder for temporary files, and a program that has it, with its process.
    fn program() -> (TempDir, Child, ProcessId) {
        let temporary = tempfile::tempdir().unwrap();
        let mut sleep = Command::new("sleep");
        let program = sleep.arg("60").env("TMPDIR", temporary.path()).spawn().unwrap();
        let pid = i32::try_from(program.id()).unwrap();
        (temporary, program, Procfs::default().identify(pid).unwrap())
    }

    #[test]
    fn nothing_of_the_workloads_goes_nor_of_another_nodes_captures() {
        let (temporary, mut program, process) = program();
        let captures = [ORPHAN, AT_WORK, OF_ANOTHER_NODE].map(folder_name);
        let names = captures.iter().map(String::as_str);
        for name in names.chain(["flopwatch-results", "flopwatch-serve-Ab12Cd", "other"]) {
            std::fs::create_dir(temporary.path().join(name)).unwrap();
            std::fs::write(temporary.path().join(name).join("x"), "{").unwrap();
        }
        // This node knows the first two.
        sweep_container(&Procfs::default(), &Gate::default(), "id", process, |capture| {
            [ORPHAN, AT_WORK].contains(&capture) && capture != AT_WORK
        });
        let entries = std::fs::read_dir(temporary.path()).unwrap();
        let mut left: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let [_, at_work, of_another_node] = captures;
        let expected = [
            at_work.as_str(),
            of_another_node.as_str(),
            "flopwatch-results",
            "flopwatch-serve-Ab12Cd",
            "other",
        ];
        assert_eq!(left, expected);
        for name in left {
            assert!(temporary.path().join(&name).join("x").exists(), "{name} was emptied");
        }
        program.kill().unwrap();
        program.wait().unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_removed_keeps_no_other() {
        let (temporary, mut program, process) = program();
        // What a service of JAX leaves is deeper, and is removed with its capture.
        for name in [format!("{}/deep/er", folder_name(AT_WORK)), folder_name(ORPHAN)] {
            std::fs::create_dir_all(temporary.path().join(name)).unwrap();
        }
        sweep_container(&Procfs::default(), &Gate::default(), "id", process, |_| true);
        assert!(!temporary.path().join(folder_name(ORPHAN)).exists());
        assert!(temporary.path().join(folder_name(AT_WORK)).exists());
        program.kill().unwrap();
        program.wait().unwrap();
    }
}
