//! Windows of one capture, one after the other.

use std::time::Duration;

use flopwatch_api::profiler::JaxOptions;

use super::double::{Double, PROFILE};
use super::rig::{Rig, may_enter, wait};

/// A window.
const WINDOW_DURATION: Duration = Duration::from_secs(2);

#[test]
fn a_second_window_is_whole_though_the_service_heard_of_the_end_of_the_first_when_that_was_over() {
    if !may_enter() {
        return;
    }
    // Longer than a service is waited for before it is told to end, as on a busy machine.
    let double = Double::collecting_for(Duration::from_secs(1));
    let service = double.serve();
    for _ in 0..2 {
        let rig = Rig::new(&[service], JaxOptions::default(), WINDOW_DURATION);
        rig.start().unwrap();
        wait(WINDOW_DURATION);
        let raw = rig.stop().unwrap();
        assert_eq!(
            std::fs::read(raw.path("profile.xplane.pb")).unwrap(),
            PROFILE.as_bytes()
        );
    }
    let recorded = double.recorded();
    assert_eq!(recorded.len(), 2);
    // One that begins late is ended in time.
    let is_whole = |recorded: &Duration| *recorded > WINDOW_DURATION / 2;
    assert!(recorded.iter().all(is_whole), "recorded for {recorded:?}");
}

#[test]
fn a_window_that_is_ended_early_ends_the_services_session() {
    if !may_enter() {
        return;
    }
    let double = Double::default();
    let rig = Rig::new(&[double.serve()], JaxOptions::default(), Duration::from_mins(5));
    rig.start().unwrap();
    wait(Duration::from_millis(500));
    rig.stop().unwrap();
    let recorded = double.recorded();
    assert!(
        recorded.len() == 1 && recorded[0] < Duration::from_mins(1),
        "{recorded:?}"
    );
}

#[test]
fn the_result_of_a_service_that_writes_it_to_its_own_disk_is_taken_from_there() {
    if !may_enter() {
        return;
    }
    let capture = format!("0-{}", std::process::id());
    let folder = std::path::Path::new("/tmp").join(format!("flopwatch-{capture}"));
    for place in ["", "plugins/profile"] {
        let double = Double::leaving_in(place);
        let mut rig = Rig::new(&[double.serve()], JaxOptions::default(), Duration::from_mins(5));
        rig.site.capture.clone_from(&capture);
        rig.start().unwrap();
        let raw = rig.stop().unwrap();
        assert_eq!(
            std::fs::read(raw.path("profile.xplane.pb")).unwrap(),
            PROFILE.as_bytes()
        );
        assert!(!folder.exists(), "nothing stays on the program's disk");
    }
}
