//! Windows of the CUDA tracer, of programs between stand-ins for NVIDIA's libraries
//! (`tests/rig/fake-cupti`), as the agent has them. Nothing here says anything of a GPU.
#![allow(clippy::disallowed_methods, reason = "there is no runtime whose threads would sleep")]

mod hostile;
mod kernels;
mod node;

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use flopwatch_agent::profilers::{Observed, Profiler as _};
use flopwatch_api::reason::CaptureReason;
use flopwatch_nvml::utc_ns;
use flopwatch_pipeline::cuda_window::EarlyEnd;

use node::{Cuda, Node, cuda, recorded_from, stops_recording};

const WINDOW_DURATION: Duration = Duration::from_secs(30);

#[test]
fn a_window_holds_as_many_records_as_the_program_counted_and_so_does_a_second_one() {
    let mut node = Node::new("");
    let mut program = node.start();
    let cuda = cuda();
    for launches in [500, 20_000] {
        let before = utc_ns();
        let state = node.begin(&cuda, WINDOW_DURATION).unwrap();
        // What the program launches once it has begun to record is of the window.
        let opened = cuda.opened(&node.site).unwrap();
        assert!((before..=utc_ns()).contains(&opened), "{before}, {opened}");
        // Nothing is waited for: the window has begun.
        let counted = program.recorded(&format!("launch {launches}"));
        assert!(counted >= launches, "{counted}");
        cuda.check(&node.site, &state).unwrap();
        cuda.stop(&node.site, &state, &|| true).unwrap();
        assert_eq!(node.records(), counted);
        assert_eq!(program.recorded("launch 5"), 0, "it has ended at once");
    }
}

#[test]
fn an_open_window_tells_how_much_it_has_recorded_and_which_kernels_took_the_longest() {
    let mut node = Node::new("");
    let (mut program, cuda) = (node.start(), cuda());
    assert_eq!(cuda.live(&node.site), None);
    let state = node.begin(&cuda, WINDOW_DURATION).unwrap();
    let mut counted = 0;
    for launches in [500, 3_000] {
        counted += program.recorded(&format!("launch {launches}"));
        let figures = node.told(&cuda, counted);
        let kernels = &figures.latest_kernels;
        assert!((1..=5).contains(&kernels.len()), "{figures:?}");
        assert!(kernels.is_sorted_by_key(|kernel| Reverse(kernel.total_nanoseconds)));
        for kernel in kernels {
            assert!(
                kernel.name.starts_with("void kernel_") && kernel.calls > 0,
                "{kernel:?}"
            );
        }
    }
    cuda.stop(&node.site, &state, &|| true).unwrap();
    assert_eq!(cuda.live(&node.site), None, "it is over");
    assert_eq!(node.records(), counted);
}

#[test]
fn programs_that_begin_cuda_within_the_window_are_recorded_with_the_others() {
    let mut node = Node::new("");
    let (mut first, cuda) = (node.start(), cuda());
    let state = node.begin(&cuda, WINDOW_DURATION).unwrap();
    let mut counted = first.recorded("launch 300");
    let mut second = node.start();
    counted += recorded_from(&mut second, 700);
    cuda.stop(&node.site, &state, &|| true).unwrap();
    assert_eq!(node.records(), counted);
}

#[test]
fn a_program_that_is_started_anew_in_a_window_is_recorded_as_it_was_before() {
    let mut node = Node::new("");
    let (mut first, cuda) = (node.start(), cuda());
    let state = node.begin(&cuda, WINDOW_DURATION).unwrap();
    let mut counted = first.recorded("launch 300");
    node.await_written(counted);
    assert!(first.end().success());
    let mut again = node.start();
    counted += recorded_from(&mut again, 700);
    cuda.stop(&node.site, &state, &|| true).unwrap();
    assert_eq!(node.records(), counted);
}

#[test]
fn the_next_agent_goes_on_with_what_the_file_holds_of_the_window() {
    let mut node = Node::new("");
    let mut program = node.start();
    let before = cuda();
    // An earlier window, whose records stay in the file.
    let state = node.begin(&before, WINDOW_DURATION).unwrap();
    program.recorded("launch 300");
    before.stop(&node.site, &state, &|| true).unwrap();

    let state = node.begin_and_die(&before);
    let mut counted = recorded_from(&mut program, 500);
    let next = cuda();
    assert_eq!(next.observe(Some(&node.site), &state).unwrap(), Observed::Collecting);
    next.check(&node.site, &state).unwrap();
    counted += program.recorded("launch 200");
    next.stop(&node.site, &state, &|| true).unwrap();
    assert_eq!(node.records(), counted);
    let ended = next.observe(Some(&node.site), &state).unwrap();
    assert_eq!(ended, Observed::Done, "where the agent dies before it has the file");
    assert!(matches!(next.observe(None, &state).unwrap(), Observed::Gone(Some(_))));
}

#[test]
fn the_next_agent_ends_a_window_that_was_discarded_meanwhile() {
    let mut node = Node::new("");
    let mut program = node.start();
    node.begin_and_die(&cuda());
    recorded_from(&mut program, 1);
    cuda().discard(&node.site);
    stops_recording(&mut program);
}

#[test]
fn a_driver_that_no_gpu_has_proven_is_not_recorded_with_unless_the_agent_is_told_so() {
    let mut node = Node::new("");
    let mut program = node.start();
    let refused = Cuda::default().capability(&node.facts());
    assert_eq!(refused.reason, "VersionUnsupported", "{refused:?}");
    assert!(cuda().capability(&node.facts()).available);
    // Where it is asked for all the same, the program's own word ends the window.
    let failure = node.refused(&Cuda::default());
    assert_eq!(failure.reason, CaptureReason::VersionUnsupported);
    assert!(failure.message.contains("drivers of CUDA 13.5"), "{failure}");
    stops_recording(&mut program);
}

#[test]
fn a_window_ends_once_a_program_joins_it_whose_driver_is_not_to_be_recorded_with() {
    let mut node = Node::new("");
    let mut first = node.start();
    let window = node.window().admitting(Box::new(|driver| driver == 13_050));
    let (_stop, stopped) = sync_channel(1);
    let window = std::thread::spawn(move || window.run(&stopped));
    recorded_from(&mut first, 100);
    let mut second = node.start_with_driver(13_000);
    let recorded = window.join().unwrap().unwrap();
    assert_eq!(recorded.early, Some(EarlyEnd::Driver));
    assert_eq!(recorded.drivers, BTreeSet::from([13_000, 13_050]));
    stops_recording(&mut first);
    stops_recording(&mut second);
}

#[test]
fn who_has_the_subscription_is_told_when_the_window_does_not_begin() {
    let mut node = Node::new("subscribe=39");
    let _program = node.start();
    let failure = node.refused(&cuda());
    assert_eq!(failure.reason, CaptureReason::OtherProfiler, "{failure}");
    assert!(failure.message.contains("has CUPTI's one subscription"), "{failure}");
}

#[test]
fn a_container_whose_programs_have_not_begun_cuda_is_closed_until_they_do() {
    let mut node = Node::new("");
    let mut program = node.start_without_cuda();
    let cuda = cuda();
    let closed = cuda.capability(&node.facts());
    assert!(
        closed.remedy.contains("none of its programs has begun CUDA"),
        "{closed:?}"
    );
    assert_eq!(program.ask("init"), "init 0");
    assert!(cuda.capability(&node.facts()).available);
}
