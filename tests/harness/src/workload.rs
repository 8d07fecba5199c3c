//! The sample workload, for the tests that record it.

use std::path::PathBuf;
use std::process::Command;

/// Path of the sample workload: the one that `FLOPWATCH_WORKLOAD` names, else one built beside the
/// test.
pub fn program() -> PathBuf {
    if let Some(workload) = std::env::var_os("FLOPWATCH_WORKLOAD") {
        return workload.into();
    }
    let test = std::env::current_exe().unwrap();
    let target = test
        .ancestors()
        .nth(3)
        .expect("the test lies in target/PROFILE/deps")
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
