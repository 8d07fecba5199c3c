//! Many threads.

use super::rig::{Rig, lost, ranges};

const OVERWRITTEN: &str = "NVTX events that the ring no longer holds";

#[test]
fn sixteen_threads_at_once_lose_nothing_where_the_ring_did_not_wrap() {
    let Some(rig) = Rig::any() else { return };
    let said = rig.run(&["threads", "16", "4000"]);
    let capture = rig.capture();
    assert_eq!(ranges(&capture).count(), said);
    assert_eq!(capture.rows.len(), 16);
    assert_eq!(capture.losses.list(), []);
}

#[test]
fn what_a_ring_that_wrapped_holds_and_has_lost_is_what_the_program_did() {
    let Some(rig) = Rig::any() else { return };
    let said = rig.run(&["threads", "16", "40000"]);
    let capture = rig.capture();
    let events = ranges(&capture);
    // A range is two events; a range of which only one is there is counted by itself.
    let headless = lost(&capture, "ranges whose begin the ring no longer holds");
    let held = 2 * events.count() + headless;
    let open =
        lost(&capture, "ranges that had not ended") + lost(&capture, "ranges that were open before a gap in the ring");
    assert_eq!(open, 0, "{:?}", capture.losses.list());
    assert_eq!(
        held + lost(&capture, OVERWRITTEN),
        2 * said,
        "{:?}",
        capture.losses.list()
    );
    assert!(events.len() > 100_000, "{}", events.len());
}

#[test]
fn threads_that_come_and_go_by_thousands_leave_the_latest() {
    let Some(rig) = Rig::any() else { return };
    let said = rig.run(&["storm", "8000"]);
    assert_eq!(said, 16_000);
    let capture = rig.capture();
    let events = ranges(&capture);
    // Each thread has a segment of its own, and a ring of 8 MiB has 1,900 of them.
    assert!((3_000..=4_000).contains(&events.len()), "{}", events.len());
    assert_eq!(lost(&capture, "NVTX events that found no segment"), 0);
}
