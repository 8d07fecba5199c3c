//! Containers whose files never answer.

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use flopwatch_attach::bounded::{Gate, Late};
use flopwatch_attach::cgroup::ContainerCgroup;
use flopwatch_attach::graft::{Candidate, waits};
use flopwatch_attach::process::Procfs;

use super::container::{Container, Rig, rig, wait_until, waiting};
use super::options;

/// Mounts a FUSE file system over a folder of the container, and never answers for it. It ends with
/// the descriptor.
fn hang(container: &Container, folder: &str) -> File {
    let fuse = File::options().read(true).write(true).open("/dev/fuse").unwrap();
    let status = Command::new("nsenter")
        .arg(format!("--mount=/proc/{}/ns/mnt", container.init().pid))
        .args(["mount", "-i", "-t", "fuse", "-o"])
        .arg("fd=0,rootmode=40000,user_id=0,group_id=0,allow_other")
        .args(["nobody", folder])
        .stdin(Stdio::from(fuse.try_clone().unwrap()))
        .status()
        .unwrap();
    assert!(status.success(), "no file system of nobody's");
    fuse
}

fn launcher(rig: &Rig) -> (Container, Candidate) {
    let container = Container::workload(rig);
    let init = container.init();
    let process = waiting(|candidate| candidate.process == init);
    let candidate = Candidate {
        process,
        container: None,
    };
    (container, candidate)
}

#[test]
fn a_run_folder_on_a_file_system_that_hangs_stops_no_other_graft() {
    let Some(rig) = rig() else { return };
    let ((hanging, stuck), (other, fine)) = (launcher(rig), launcher(rig));
    let fuse = hang(&hanging, "/flopwatch/run");
    let (gate, limit) = (Gate::default(), Duration::from_secs(1));
    let inspect = |key: &str, candidate: &Candidate| {
        let candidate = candidate.clone();
        gate.within(key, limit, move || waits(&Procfs::default(), &candidate, None))
    };
    let start = Instant::now();
    assert_eq!(inspect("hanging", &stuck), Err(Late::Waited(limit)));
    // However often it is asked, one thread waits for it.
    assert_eq!(inspect("hanging", &stuck), Err(Late::Busy));
    assert!(inspect("other", &fine).unwrap().is_some());
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    let target = other.way_in(rig, fine.process);
    target.start_session(&options()).unwrap();
    assert!(target.await_state(Duration::from_mins(1)).unwrap().grafted);
    // The connection ends, and what waited comes back.
    drop(fuse);
    wait_until("the thread that was left behind", || !gate.is_taken("hanging"));
}

#[test]
fn a_container_whose_run_folder_hangs_is_left_by_its_mounts_alone() {
    let Some(rig) = rig() else { return };
    let (container, mut candidate) = launcher(rig);
    candidate.container = Some(ContainerCgroup {
        pod_uid: "0a1b2c3d-1111-2222-3333-444455556666".into(),
        container_id: "0".repeat(64),
    });
    let _fuse = hang(&container, "/flopwatch/run");
    let volumes = flopwatch_attach::volumes::KubeletVolumes::unknown();
    let start = Instant::now();
    assert_eq!(waits(&Procfs::default(), &candidate, Some(&volumes)), None);
    assert!(start.elapsed() < Duration::from_secs(5), "it asked the file system");
}
