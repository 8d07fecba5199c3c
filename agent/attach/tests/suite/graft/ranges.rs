//! Collections of ranges of the program, with both versions of Nsight Systems.

use std::time::Duration;

use flopwatch_attach::graft::{Bounds, GraftError, Target};
use flopwatch_attach::nsys::{CaptureRange, Collection, LaunchOptions, RangeTrigger, SessionState};

use super::capture::Capture;
use super::container::{Container, Rig, Spec, WORKLOAD, newer, rig, wait_until};
use super::{LOOSE, SESSION, collect, options};

/// A step of the workload takes three times this, so that a range is long enough to be told from
/// the next.
const SLOW: [&str; 3] = [WORKLOAD, "--range-micros", "30000"];

fn capturing(range: &str) -> LaunchOptions {
    LaunchOptions {
        nvtx_capture: Some(range.to_owned()),
        ..options()
    }
}

fn ranges(trigger: RangeTrigger, count: u32) -> Collection {
    Collection {
        range: Some(CaptureRange { trigger, count }),
        ..Collection::default()
    }
}

/// The slow workload in a session that captures ranges of that name, started before it or while it
/// runs.
fn started(rig: &Rig, range: &str, first: Option<&Collection>) -> (Container, Target) {
    let spec = Spec::of(&SLOW);
    let container = spec.start(rig);
    let target = container.target(rig);
    match first {
        Some(collection) => {
            target.start_session_held(&capturing(range)).unwrap();
            assert!(target.await_held(Duration::from_mins(1)).unwrap());
            target.start_collection(SESSION, "r", collection, LOOSE).unwrap();
            target.release().unwrap();
        }
        None => target.start_session(&capturing(range)).unwrap(),
    }
    assert!(target.await_state(Duration::from_mins(1)).unwrap().grafted);
    container.reports();
    (container, target)
}

/// Waits until the last range is over; prints each state on the way, which a failure shows.
fn await_idle(target: &Target) {
    let mut last = None;
    wait_until("the end of the last range", || {
        let state = target.session_state(SESSION).unwrap();
        if last.as_ref() != Some(&state) {
            eprintln!("{state:?}, captures: {:?}", target.captures_of("r").unwrap());
            last = Some(state.clone());
        }
        state == SessionState::Idle
    });
}

/// What a raw capture holds; there is not more in it than one step.
fn one_step(rig: &Rig, container: &Container, name: &str) {
    let capture = Capture::read(rig, &container.file(&format!("run/out/{name}")));
    let names = capture.names();
    for inner in ["forward", "backward", "optimizer"] {
        assert!(names.contains(&inner), "{name}: {names:?}");
    }
    assert!(capture.len() <= 5, "{name}: {} ranges, {names:?}", capture.len());
}

fn names(paths: &[std::path::PathBuf]) -> Vec<&str> {
    paths.iter().filter_map(|path| path.file_name()?.to_str()).collect()
}

fn two_ranges_from_the_start(rig: &Rig) {
    let (mut container, target) = started(rig, "step", Some(&ranges(RangeTrigger::Nvtx, 2)));
    await_idle(&target);
    let paths = target.stop_ranges(SESSION, "r").unwrap();
    assert_eq!(names(&paths), ["r.1.qdstrm", "r.2.qdstrm"]);
    assert!(!container.file("run/collecting").exists());
    for name in names(&paths) {
        one_step(rig, &container, name);
    }
    assert!(target.remove_captures_of("r").unwrap());
    assert!(!target.remove_captures_of("r").unwrap());
    container.terminates(0);
}

#[test]
fn each_range_from_the_programs_start_on_has_a_raw_capture() {
    let Some(rig) = rig() else { return };
    two_ranges_from_the_start(rig);
}

#[test]
fn each_range_from_the_programs_start_on_has_a_raw_capture_of_a_newer_version_too() {
    let Some(rig) = newer() else { return };
    two_ranges_from_the_start(&rig);
}

#[test]
fn a_range_of_a_program_that_runs_is_captured_and_the_session_is_open_for_the_next() {
    let Some(rig) = rig() else { return };
    let (mut container, target) = started(rig, "step", None);
    for _ in 0..2 {
        target
            .start_collection(SESSION, "r", &ranges(RangeTrigger::Nvtx, 1), LOOSE)
            .unwrap();
        await_idle(&target);
        let paths = target.stop_ranges(SESSION, "r").unwrap();
        assert_eq!(names(&paths), ["r.qdstrm"]);
        one_step(rig, &container, "r.qdstrm");
        assert!(target.remove_captures_of("r").unwrap());
    }
    container.terminates(0);
}

#[test]
fn a_range_that_is_over_before_the_deadline_costs_no_session_when_nobody_stops_it() {
    let Some(rig) = rig() else { return };
    let (mut container, target) = started(rig, "step", None);
    let short = Bounds {
        // On a machine whose processors others have, two ranges have taken more than three seconds.
        limit: Duration::from_secs(15),
        ..LOOSE
    };
    target
        .start_collection(SESSION, "r", &ranges(RangeTrigger::Nvtx, 2), short)
        .unwrap();
    wait_until("the guard", || !container.file("run/collecting").exists());
    assert_eq!(target.session_state(SESSION).unwrap(), SessionState::Idle);
    assert_eq!(target.captures_of("r").unwrap().len(), 2);
    target.discard_collection(SESSION, "r").unwrap();
    assert_eq!(target.captures_of("r").unwrap().len(), 0);
    container.terminates(0);
}

/// A range that does not come leaves nothing, and the session records all the same.
fn missed(rig: &Rig, range: &str, trigger: RangeTrigger) {
    let (mut container, target) = started(rig, range, None);
    target
        .start_collection(SESSION, "r", &ranges(trigger, 1), LOOSE)
        .unwrap();
    container.works_for(Duration::from_millis(500));
    assert_eq!(target.session_state(SESSION).unwrap(), SessionState::Collecting);
    let stopped = target.stop_ranges(SESSION, "r");
    assert!(matches!(stopped, Err(GraftError::NoCapture { .. })), "{stopped:?}");
    collect(&target, "all");
    container.works_for(Duration::from_millis(500));
    target.stop_collection(SESSION, "all").unwrap();
    let all = Capture::read(rig, &container.file("run/out/all.qdstrm"));
    assert_eq!(all.names(), ["backward", "forward", "optimizer", "step"]);
    container.terminates(0);
}

#[test]
fn a_range_that_never_comes_leaves_no_capture() {
    let Some(rig) = rig() else { return };
    missed(rig, "nowhere", RangeTrigger::Nvtx);
}

#[test]
fn a_program_that_does_not_call_the_profiler_api_leaves_no_capture_in_either_version() {
    let Some(rig) = rig() else { return };
    missed(rig, "step", RangeTrigger::CudaProfilerApi);
    if let Some(rig) = newer() {
        missed(&rig, "step", RangeTrigger::CudaProfilerApi);
    }
}

#[test]
fn a_newer_version_begins_no_range_in_a_program_that_made_ranges_before() {
    let Some(rig) = newer() else { return };
    missed(&rig, "step", RangeTrigger::Nvtx);
}
