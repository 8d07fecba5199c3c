//! The sample workload, for the tests that record it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The one that `FLOPWATCH_WORKLOAD` names, else one built beside the test.
pub(crate) fn program() -> PathBuf {
    if let Some(workload) = std::env::var_os("FLOPWATCH_WORKLOAD") {
        return workload.into();
    }
    let target = Path::new(env!("CARGO_BIN_EXE_flopwatch-agent"))
        .ancestors()
        .nth(2)
        .expect("the program lies in a target folder")
        .join("for-tests");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "-p", "flopwatch-sample-workload", "--target-dir"])
        .arg(&target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the sample workload does not build");
    target.join("debug/flopwatch-sample-workload")
}
