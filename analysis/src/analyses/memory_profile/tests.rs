use flopwatch_model::{SampleKind, StackFrame, StackLabel, StackProfile, StackSample};

use super::*;

/// Samples of stacks of `f`, which is somebody's own, and of functions of a package; texts are
/// numbered as they stand here.
const TEXTS: [&str; 10] = [
    "",
    "f",
    "/home/a/model.py",
    "put",
    "/usr/site-packages/jax/api.py",
    "kind",
    "buffer",
    "device",
    "cuda:0",
    "executable",
];

fn kind(name: &str, unit: &str) -> SampleKind {
    SampleKind {
        name: name.to_owned(),
        unit: unit.to_owned(),
    }
}

fn sample(stack: &[u32], buffers: i64, bytes: i64, is_buffer: bool) -> StackSample {
    let label = |key, text| StackLabel { key, text, number: 0 };
    StackSample {
        stack: stack.to_vec(),
        values: vec![buffers, bytes],
        labels: if is_buffer {
            vec![label(5, 6), label(7, 8)]
        } else {
            vec![label(5, 9)]
        },
    }
}

fn timeline(samples: Vec<StackSample>) -> Timeline {
    let frame = |function, file, line| StackFrame { function, file, line };
    let mut timeline = Timeline::default();
    let profile = StackProfile {
        kinds: vec![kind("allocations", "count"), kind("space", "bytes")],
        texts: TEXTS.map(str::to_owned).to_vec(),
        frames: vec![frame(1, 2, 10), frame(1, 2, 20), frame(3, 4, 5)],
        samples,
        ..StackProfile::default()
    };
    assert!(profile.is_consistent());
    timeline.capture.stacks = Some(profile);
    timeline
}

/// `put` in `f`, twice; `f` in itself; a program.
fn before() -> Timeline {
    timeline(vec![
        sample(&[2, 0], 1, 100, true),
        sample(&[2, 0], 2, 50, true),
        sample(&[1, 0], 1, 30, true),
        sample(&[2], 1, 7, false),
    ])
}

#[test]
fn a_function_that_a_stack_holds_twice_counts_once() {
    let found = MemoryProfileResult::of(&before(), MemoryProfileParams::default());
    assert_eq!(
        (found.total_bytes, found.total_buffers, found.measured.as_str()),
        (187, Some(5), "space")
    );
    let functions: Vec<_> = found
        .functions
        .iter()
        .map(|of| (of.function.as_str(), of.flat_bytes, of.cumulative_bytes))
        .collect();
    assert_eq!(functions, [("put", 157, 157), ("f", 30, 180)]);
    let devices: Vec<_> = found
        .devices
        .iter()
        .map(|of| (of.device.as_deref(), of.kind.as_deref(), of.bytes, of.buffers))
        .collect();
    assert_eq!(
        devices,
        [
            (Some("cuda:0"), Some("buffer"), 180, Some(4)),
            (None, Some("executable"), 7, Some(1))
        ]
    );
    // The same stack twice is one; the own frame is not of the package.
    assert_eq!(
        (found.stacks.len(), found.stacks[0].bytes, found.stacks[0].buffers),
        (3, 150, Some(3))
    );
    assert_eq!(found.stacks[0].own_frame.as_ref().unwrap().shown(), "f (model.py:10)");
    assert_eq!(found.stacks[2].own_frame, None);
}

#[test]
fn a_difference_is_after_less_before() {
    let after = timeline(vec![sample(&[2, 0], 5, 250, true), sample(&[1, 0], 1, 30, true)]);
    let found = MemoryProfileChangesResult::of(&before(), &after, MemoryProfileParams::default());
    assert_eq!(
        (found.before_bytes, found.after_bytes, found.change_bytes),
        (187, 280, 93)
    );
    let functions: Vec<_> = found
        .functions
        .iter()
        .map(|of| (of.function.as_str(), of.flat_bytes, of.cumulative_bytes))
        .collect();
    assert_eq!(functions, [("put", 93, 93), ("f", 0, 100)]);
    let stacks: Vec<_> = found
        .stacks
        .iter()
        .map(|of| (of.change_bytes, of.change_buffers))
        .collect();
    assert_eq!(stacks, [(100, Some(2)), (-7, Some(-1))]);
    let same = MemoryProfileChangesResult::of(&before(), &before(), MemoryProfileParams::default());
    assert!(same.functions.is_empty() && same.stacks.is_empty() && same.change_bytes == 0);
}

#[test]
fn a_profile_of_the_cpu_is_none_of_memory() {
    let mut timeline = before();
    let profile = timeline.capture.stacks.as_mut().unwrap();
    profile.kinds = vec![kind("samples", "count"), kind("cpu", "nanoseconds")];
    let found = MemoryProfileResult::of(&timeline, MemoryProfileParams::default());
    assert!(found.not_captured[0].reason.contains("cpu in nanoseconds"), "{found:?}");
    let found = MemoryProfileChangesResult::of(&before(), &timeline, MemoryProfileParams::default());
    assert_eq!(found.not_captured.len(), 1);
}

#[test]
fn of_gos_heap_what_is_in_use_is_told() {
    let mut timeline = before();
    let profile = timeline.capture.stacks.as_mut().unwrap();
    let kinds = [
        ("alloc_objects", "count"),
        ("alloc_space", "bytes"),
        ("inuse_objects", "count"),
        ("inuse_space", "bytes"),
    ];
    profile.kinds = kinds.map(|(name, unit)| kind(name, unit)).to_vec();
    for sample in &mut profile.samples {
        sample.values = vec![9, 999, 1, 11];
    }
    let found = MemoryProfileResult::of(&timeline, MemoryProfileParams::default());
    assert_eq!(
        (found.measured.as_str(), found.total_bytes, found.total_buffers),
        ("inuse_space", 44, Some(4))
    );
}
