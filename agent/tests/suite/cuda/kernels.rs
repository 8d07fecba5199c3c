//! Kernels that are recorded all the time: who shows them, and what takes turns with it.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flopwatch_agent::node::kernels::{Kernels, NotRecorded};
use flopwatch_agent::profilers::recorder::Recorder;
use flopwatch_agent::profilers::{Journaled, Profiler as _};
use flopwatch_api::artifact::SAMPLES;
use flopwatch_attach::tracer::TraceFile;
use flopwatch_nvml::utc_ns;
use flopwatch_pipeline::transform::Samples;

use super::WINDOW_DURATION;
use super::node::{Node, cuda, recorded_from, stops_recording};

/// Longest wait for records that are complete.
const RECORDS_TIMEOUT: Duration = Duration::from_secs(20);
/// Nobody.
const NONE: [&str; 0] = [];

/// All of the time of the one container.
fn asked() -> BTreeMap<String, u32> {
    BTreeMap::from([("c".to_owned(), 100)])
}

/// Renews orders, as the agent does; gives the containers that are to be looked at.
fn renew(kernels: &Kernels) -> Vec<String> {
    let due = kernels.due(&asked());
    for (id, percent) in &due.to_renew {
        kernels.renew(id, *percent);
    }
    due.to_look_at
}

/// Has the kernels of the node's container recorded, as the agent does.
fn record(kernels: &Kernels, node: &Node) {
    assert_eq!(renew(kernels), ["c"], "it is to be looked at");
    kernels.take_in("c", TraceFile::open(&node.trace()).map_err(NotRecorded::from));
}

#[tokio::test]
async fn a_window_and_what_is_recorded_all_the_time_take_turns() {
    let mut node = Node::new("");
    let mut program = node.start();
    let kernels = Kernels::new(true);
    record(&kernels, &node);
    assert!(recorded_from(&mut program, 100) > 100);
    assert_eq!(renew(&kernels), NONE);
    assert_eq!(program.recorded("launch 10"), 10, "it goes on");

    let is_captured = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&is_captured);
    let holds = move || seen.load(Ordering::SeqCst);
    kernels.give_way("c", holds, async { None }).await;
    assert_eq!(program.recorded("launch 10"), 0, "it has ended before anything begins");
    let cuda = cuda();
    let state = node.begin(&cuda, WINDOW_DURATION).unwrap();
    assert_eq!(renew(&kernels), NONE, "a capture has the container");
    let counted = program.recorded("launch 200");
    cuda.stop(&node.site, &state, &|| true).unwrap();
    assert_eq!(node.records(), counted);
    assert_eq!(program.recorded("launch 10"), 0);

    is_captured.store(false, Ordering::SeqCst);
    record(&kernels, &node);
    assert!(recorded_from(&mut program, 10) > 10);
}

#[tokio::test]
async fn what_an_earlier_agent_has_ordered_ends_before_a_capture_begins() {
    let mut node = Node::new("");
    let mut program = node.start();
    record(&Kernels::new(true), &node);
    recorded_from(&mut program, 1);
    let trace = node.trace();
    let unheld = async { TraceFile::open(&trace).ok() };
    Kernels::new(true).give_way("c", || true, unheld).await;
    assert_eq!(program.recorded("launch 10"), 0);
}

#[test]
fn a_container_is_not_looked_at_while_a_capture_of_an_earlier_agent_may_be_at_work_in_it() {
    let kernels = Kernels::new(true);
    let is_at_work = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&is_at_work);
    kernels.leave("c", move || seen.load(Ordering::SeqCst));
    assert_eq!(renew(&kernels), NONE);
    is_at_work.store(false, Ordering::SeqCst);
    assert_eq!(renew(&kernels), ["c"]);
}

#[test]
fn a_window_of_an_earlier_agent_is_left_alone() {
    let mut node = Node::new("");
    let mut program = node.start();
    node.begin_and_die(&cuda());
    recorded_from(&mut program, 1);
    record(&Kernels::new(true), &node);
    // A launch is a kernel and its calls: the window has them all.
    assert!(program.recorded("launch 10") > 10);
}

#[test]
fn what_nobody_renews_ends_by_itself() {
    let mut node = Node::new("");
    let mut program = node.start();
    record(&Kernels::new(true), &node);
    recorded_from(&mut program, 1);
    stops_recording(&mut program);
}

#[test]
fn a_driver_that_no_gpu_has_proven_ends_it_once_the_program_says_so() {
    let mut node = Node::new("");
    let mut program = node.start();
    let closed = Kernels::new(false);
    record(&closed, &node);
    recorded_from(&mut program, 1);
    assert_eq!(renew(&closed), NONE);
    assert!(TraceFile::open(&node.trace()).is_ok(), "it lets go of the file");
    stops_recording(&mut program);
}

#[test]
fn the_flight_recorder_shows_the_kernels_of_the_time_that_it_is_asked_for() {
    let mut node = Node::new("");
    let mut program = node.start();
    let kernels = Kernels::new(true);
    record(&kernels, &node);
    recorded_from(&mut program, 300);
    // A kernel ends some microseconds behind its call.
    std::thread::sleep(Duration::from_millis(1));
    let since = utc_ns();
    let counted = program.recorded("launch 200");
    let samples = Samples {
        window_start_utc_ns: since,
        window_ns: 1_000_000_000,
        ..Samples::default()
    };
    fs::write(node.site.folder.join(SAMPLES), serde_json::to_vec(&samples).unwrap()).unwrap();
    let recorder = Journaled(Recorder::default());
    let state = node.attach(&recorder);
    let begin = Instant::now();
    // What CUPTI has is complete in moments.
    while recorder.stop(&node.site, &state, &|| true).is_err() || node.records() < counted {
        assert!(begin.elapsed() < RECORDS_TIMEOUT, "{counted} kernels do not come");
    }
    assert_eq!(node.records(), counted);
}
