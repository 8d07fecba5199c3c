//! Children that make files leave the disk the space that must stay free.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flopwatch_attach::nsys::HostTools;
use flopwatch_attach::sandbox::users::Users;
use flopwatch_pipeline::disk::{Floor, volume};
use flopwatch_pipeline::sandbox_dir::SandboxDir;
use flopwatch_pipeline::steps::{ChildRunner, Error, Limits};
use tempfile::TempDir;

use crate::ONE_AT_A_TIME;

const MEBIBYTE: u64 = 1 << 20;
/// Memory that is a disk: what else happens on this machine's disks does not reach it.
const DISK: &str = "/dev/shm";

/// Imports in a folder of that name with a program in place of the importer, which leaves `floor`
/// free.
async fn import(folder: &TempDir, name: &str, program: &str, floor: u64) -> Result<Option<Duration>, Error> {
    // As on a node, the tools lie elsewhere than what children make.
    let lies_in = tempfile::tempdir().unwrap();
    let importer = lies_in.path().join("importer");
    std::fs::write(&importer, format!("#!/bin/sh\n{program}\n")).unwrap();
    std::fs::set_permissions(&importer, std::fs::Permissions::from_mode(0o755)).unwrap();
    let tools = HostTools {
        nsys: importer.clone(),
        importer,
        libraries: Vec::new(),
    };
    let limits = Limits {
        floor: Floor {
            bytes: floor,
            percent: 0,
        },
        import: Duration::from_secs(30),
        ..Limits::default()
    };
    let own = PathBuf::from(env!("CARGO_BIN_EXE_flopwatch-agent"));
    let steps = ChildRunner::new(own, Some(tools), limits);
    let sandbox = SandboxDir::make(folder.path().join(name), &Users::caller()).unwrap();
    let raw = sandbox.at("raw");
    std::fs::write(&raw, "").unwrap();
    steps
        .import(&sandbox, &raw, &sandbox.at("report"), std::future::pending())
        .await
}

fn free() -> u64 {
    volume(Path::new(DISK)).unwrap().free
}

#[tokio::test]
async fn a_child_is_not_begun_where_the_disk_is_short_and_ended_where_it_runs_short() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let folder = tempfile::tempdir_in(DISK).unwrap();
    let error = import(&folder, "first", "touch begun", u64::MAX).await.unwrap_err();
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    assert!(!folder.path().join("first/begun").exists());

    let floor = free() - 16 * MEBIBYTE;
    let fills = async {
        while !folder.path().join("second/begun").exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        std::fs::write(folder.path().join("others"), vec![1; 32 << 20]).unwrap();
    };
    let imported = import(&folder, "second", "touch begun; exec sleep 60", floor);
    let filled = async {
        tokio::time::timeout(Duration::from_secs(20), fills).await.unwrap();
        std::future::pending::<()>().await;
    };
    let error = tokio::select! {
        ended = imported => ended.unwrap_err(),
        () = filled => unreachable!("it waits for ever"),
    };
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    assert!(error.to_string().contains("--min-free-bytes"), "{error}");
}

#[tokio::test]
async fn no_file_of_a_child_is_larger_than_what_the_disk_has_above_what_must_stay_free() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let folder = tempfile::tempdir_in(DISK).unwrap();
    let floor = free() - 8 * MEBIBYTE;
    let program = "exec head -c 67108864 /dev/zero >made";
    let error = import(&folder, "only", program, floor).await.unwrap_err();
    assert!(error.is_want_of_space(), "{error:?}");
    let made = std::fs::metadata(folder.path().join("only/made")).unwrap();
    assert!(made.len() <= 8 * MEBIBYTE, "{made:?}");
}

#[tokio::test]
async fn the_processor_time_of_a_child_is_what_it_used_and_not_how_long_it_took() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let folder = tempfile::tempdir_in(DISK).unwrap();
    // What a tool starts is counted too.
    let busy = "sh -c 'turn=0; while [ $turn -lt 400000 ]; do turn=$((turn+1)); done'";
    let used = import(&folder, "busy", busy, 0).await.unwrap().unwrap();
    let waited = import(&folder, "idle", "sleep 1", 0).await.unwrap().unwrap();
    assert!(used > Duration::from_millis(100), "{used:?}");
    assert!(
        waited < Duration::from_millis(900) && waited < used,
        "{waited:?} of {used:?}"
    );
}
