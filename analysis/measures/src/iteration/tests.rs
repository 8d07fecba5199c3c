//! Iterations of traces made by hand.

use flopwatch_analysis_testing::Trace;
use flopwatch_model::{Row, Track};

use super::*;

fn times(iterations: &Iterations) -> Vec<(u64, u64)> {
    let list = iterations.list.iter();
    list.map(|iteration| (iteration.time.start, iteration.time.end))
        .collect()
}

/// Three iterations of 100 ns each, in which the loop's thread launches one kernel and a second
/// thread another; a kernel without a launch runs at 250, and one launched before the loop.
fn three(mark: impl Fn(&mut Trace, RowId, u64)) -> Timeline {
    let mut trace = Trace::new();
    let marks = trace.thread(1, 10, Track::Annotation);
    let stream = trace.stream(1, 0, 7);
    let (own, other) = (trace.thread(1, 10, Track::CudaApi), trace.thread(1, 11, Track::CudaApi));
    trace.launch_kernel((own, 2, 4), (stream, "init", 110, 112));
    for start in [100, 200, 300] {
        mark(&mut trace, marks, start);
        for (thread, name, at) in [(own, "forward", 10), (other, "backward", 60)] {
            // The kernel runs when its iteration is over.
            let kernel = (stream, name, start + at + 90, start + at + 100);
            trace.launch_kernel((thread, start + at, start + at + 5), kernel);
        }
    }
    trace.kernel(stream, "unlaunched", 250, 255);
    trace.build()
}

#[test]
fn steps_hold_the_work_that_was_launched_in_them_whenever_it_ran() {
    let timeline = three(|trace, row, start| {
        trace.step(row, start / 100, start, start + 90);
    });
    let work = GpuWork::of(&timeline);
    let iterations = of(&timeline, &IterationOptions::default());
    assert_eq!(iterations.source, Some(IterationSource::Step));
    assert_eq!(iterations.name, "ProfilerStep#");
    let numbers: Vec<u64> = iterations.list.iter().map(|iteration| iteration.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let assignment = iterations.assign(&timeline, &work);
    assert_eq!((assignment.by_thread, assignment.by_process), (3, 3));
    // The kernel without a launch by time; the one launched before the loop to none, though it ran
    // inside.
    assert_eq!((assignment.by_time, assignment.outside), (1, 1));
    let lists = assignment.by_iteration(&work, 3);
    let names: Vec<Vec<&str>> = lists
        .iter()
        .map(|list| list.iter().map(|work| work.name(&timeline)).collect())
        .collect();
    assert_eq!(
        names,
        [
            vec!["forward", "backward"],
            vec!["unlaunched", "forward", "backward"],
            vec!["forward", "backward"]
        ]
    );
}

#[test]
fn the_outermost_range_around_the_launches_is_the_iteration() {
    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    let api = trace.thread(1, 10, Track::CudaApi);
    let nvtx = trace.thread(1, 10, Track::Nvtx);
    let loader = trace.thread(1, 12, Track::Nvtx);
    for number in 0..5 {
        let start = 1000 + number * 100;
        trace.event(Category::NvtxRange, nvtx, &format!("train {number}"), start, start + 80);
        trace.event(Category::NvtxRange, nvtx, "forward", start + 5, start + 70);
        trace.event(Category::NvtxRange, loader, "load", start, start + 99);
        trace.launch_kernel((api, start + 10, start + 12), (stream, "k", start + 20, start + 30));
    }
    let timeline = trace.build();
    let found = of(&timeline, &IterationOptions::default());
    // Not `load`, which is longer, of a thread that launches nothing; not `forward`, which is
    // inside.
    assert_eq!(
        (found.source, found.name.as_str()),
        (Some(IterationSource::Range), "train #")
    );
    let of_range = |range: &str| of(&timeline, &IterationOptions::new(IterateBy::Auto, range));
    let named = of_range("train #");
    assert_eq!(times(&named).first(), Some(&(1000, 1080)));
    assert_eq!(named.list.len(), 5);
    assert!((named.confidence_ratio - 1.0).abs() < 1e-9);
    let missing = of_range("epoch");
    assert!(missing.list.is_empty() && missing.not_found.is_some());
}

#[test]
fn without_a_range_around_an_iteration_each_begins_with_a_range_that_repeats() {
    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    let api = trace.thread(1, 10, Track::CudaApi);
    let nvtx = trace.thread(1, 10, Track::Nvtx);
    for start in [1000, 1100, 1200, 1300] {
        trace.event(Category::NvtxRange, nvtx, "pre, seq = 3, op_id = 7", start, start + 20);
        for at in [10, 40, 70] {
            let kernel = (stream, "k", start + at + 5, start + at + 10);
            trace.launch_kernel((api, start + at, start + at + 2), kernel);
        }
    }
    let timeline = trace.build();
    let found = of(&timeline, &IterationOptions::default());
    assert_eq!(found.source, Some(IterationSource::RangeToNext));
    assert_eq!(found.name, "pre");
    assert_eq!(times(&found), [(1000, 1100), (1100, 1200), (1200, 1300)]);
    assert!(!found.cautions.is_empty());
}

#[test]
fn kernels_alone_have_a_period_or_an_abstention() {
    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    for number in 0..6 {
        for (at, name) in ["embed", "gemm", "loss"].into_iter().enumerate() {
            let start = number * 100 + u64::try_from(at).unwrap() * 20;
            trace.kernel(stream, name, start, start + 15);
        }
    }
    let timeline = trace.build();
    let found = of(&timeline, &IterationOptions::default());
    assert_eq!(found.source, Some(IterationSource::KernelPeriod));
    assert_eq!(found.list.len(), 6);
    assert_eq!(times(&found).first(), Some(&(0, 100)));
    let assignment = found.assign(&timeline, &GpuWork::of(&timeline));
    assert_eq!((assignment.by_time, assignment.outside), (18, 0));

    let mut trace = Trace::new();
    let stream = trace.stream(1, 0, 7);
    for name in ["a", "b", "c"] {
        trace.kernel(stream, name, 1, 2);
    }
    let none = of(&trace.build(), &IterationOptions::default());
    assert!(none.list.is_empty() && none.not_found.is_some());
}

/// What XLA's profiler writes of two devices: a line `Steps` each, whose events are named by the
/// step's number.
fn device_steps(trace: &mut Trace) {
    for device in [0, 1] {
        let line = |label: &str| Row {
            device: Some(device),
            label: format!("/device:TPU:{device} {label}"),
            ..Row::of(0, Track::Derived)
        };
        let (steps, modules) = (trace.row(line("Steps")), trace.row(line("XLA Modules")));
        for step in [5, 6] {
            let start = u64::from(device) * 10 + step * 100;
            trace.event(Category::Derived, steps, &step.to_string(), start, start + 80);
            trace.event(Category::Derived, modules, "jit_train_step", start, start + 70);
        }
    }
}

#[test]
fn the_steps_of_a_device_are_iterations_of_its_time() {
    let mut trace = Trace::new();
    device_steps(&mut trace);
    // The host has enqueued both long before.
    let host = trace.thread(0, 10, Track::Annotation);
    for (number, start) in [(5, 0), (6, 20)] {
        let step = trace.event(Category::Step, host, "train", start, start + 20);
        trace.number(step, ColumnId::StepNumber, number);
    }
    let timeline = trace.build();
    let iterations = of(&timeline, &IterationOptions::default());
    assert_eq!(iterations.source, Some(IterationSource::DeviceStep));
    assert_eq!(times(&iterations), [(500, 580), (600, 680), (510, 590), (610, 690)]);
    let numbers: Vec<u64> = iterations.list.iter().map(|iteration| iteration.number).collect();
    assert_eq!((numbers, iterations.loops().count()), (vec![5, 6, 5, 6], 2));
}

#[test]
fn work_belongs_to_the_step_of_its_device_in_which_it_begins() {
    let mut trace = Trace::new();
    device_steps(&mut trace);
    for device in [0, 1] {
        let stream = trace.stream(0, device, 13);
        trace.kernel(stream, "gemm", 605, 620);
    }
    let timeline = trace.build();
    let iterations = of(&timeline, &IterationOptions::default());
    let assignment = iterations.assign(&timeline, &GpuWork::of(&timeline));
    // At 605 the second device is between its steps.
    assert_eq!((assignment.by_time, assignment.outside), (1, 1));
    assert_eq!(assignment.iteration, [1, Assignment::NONE]);
}

#[test]
fn steps_of_the_host_hold_the_work_that_they_launch_before_those_of_the_device() {
    let mut timeline = three(|trace, row, start| {
        trace.event(Category::Step, row, "train", start, start + 90);
    });
    let mut devices = Trace::new();
    device_steps(&mut devices);
    let mut devices = devices.build().capture;
    let moved = timeline.capture.rows.len();
    let mut derived = devices.events.remove(&Category::Derived).unwrap();
    for row in &mut derived.row {
        *row = RowId::from_index(row.index() + moved).unwrap();
    }
    timeline.capture.rows.extend(devices.rows);
    timeline.capture.events.insert(Category::Derived, derived);
    let iterations = of(&timeline, &IterationOptions::default());
    assert_eq!(
        (iterations.source, iterations.list.len()),
        (Some(IterationSource::Step), 3)
    );
}
