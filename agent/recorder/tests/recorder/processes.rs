//! Several processes in one ring.

use flopwatch_model::RowId;

use super::rig::{Rig, lost, ranges};

#[test]
fn two_thousand_short_children_record_beside_their_parent() {
    let Some(rig) = Rig::any() else { return };
    let said = rig.run(&["children", "1500"]);
    assert_eq!(said, 1501);
    let capture = rig.capture();
    let events = ranges(&capture);
    assert_eq!(events.count(), said, "{:?}", capture.losses.list());
    assert_eq!(capture.losses.list(), []);
    let parent = (0..events.len()).filter(|at| events.name_of(*at) == "parent");
    let rows: Vec<RowId> = parent.map(|at| events.row[at]).collect();
    assert_eq!(rows.len(), 1);
    assert!((0..events.len()).all(|at| (events.row[at] == rows[0]) == (events.name_of(at) == "parent")));
    // Five hundred more overwrite the first.
    assert_eq!(rig.run(&["children", "2000"]), 2001);
    let capture = rig.capture();
    assert_eq!(lost(&capture, "NVTX events that found no segment"), 0);
    assert!(ranges(&capture).len() > 1800);
}

#[test]
fn programs_that_follow_each_other_in_one_process_are_all_recorded() {
    let Some(rig) = Rig::any() else { return };
    assert!(rig.command(&["exec", "50"]).output().unwrap().status.success());
    let capture = rig.capture();
    assert_eq!(ranges(&capture).len(), 100);
    assert_eq!((capture.rows.len(), capture.losses.list()), (1, Vec::new()));
}

#[test]
fn processes_that_begin_at_once_share_one_file() {
    let Some(rig) = Rig::any() else { return };
    let mut all: Vec<_> = (0..12)
        .map(|_| {
            rig.command(&["threads", "2", "100"])
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    assert!(all.iter_mut().all(|one| one.wait().unwrap().success()));
    let capture = rig.capture();
    assert_eq!(ranges(&capture).len(), 12 * 400);
    assert_eq!((capture.rows.len(), capture.losses.list()), (24, Vec::new()));
    let files = std::fs::read_dir(rig.path("ring")).unwrap().count();
    assert_eq!(files, 1);
}
