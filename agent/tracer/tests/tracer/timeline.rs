//! What programs do in the stand-ins, as a capture and as a timeline.

use std::os::unix::fs::FileExt as _;

use flopwatch_model::{Capture, Category, ColumnId, Events, MemoryKind, Timeline, Track};
use flopwatch_trace::tracer::{self, Tracing};
use flopwatch_trace::transform::{TransformOptions, transform};
use flopwatch_trace::{ReadLimits, read};
use flopwatch_tracer_file::wanted::{GraphLevel, Kinds, Wanted};

use super::agent::{Agent, now_ns, window};
use super::rig::Rig;

/// How many events of a category a capture has.
fn count(capture: &Capture, category: Category) -> usize {
    capture.events.get(&category).map_or(0, Events::len)
}

/// The timeline of what was read.
pub(crate) fn timeline(capture: Capture) -> Timeline {
    let session_id = "tracer".to_owned();
    transform(capture, TransformOptions { session_id })
}

#[test]
fn kernels_copies_waits_and_calls_become_a_timeline_with_launches_joined() {
    let (rig, mut program, mut agent) = Agent::anew();
    let before = now_ns();
    agent.begin(Kinds::ALL);
    for kind in 0..6 {
        program.recorded(&format!("launch 100 {kind}"));
    }
    agent.end();
    // The format is found by content.
    let capture = read(&rig.trace(), &ReadLimits::default()).unwrap();
    let start = capture.session_start_utc_ns.unwrap();
    assert!(before < start && start + capture.duration_ns < now_ns() + 1_000_000_000);
    assert_eq!(capture.losses.list(), []);
    for (category, expected) in [
        (Category::CudaKernel, 100),
        (Category::CudaMemcpyH2d, 100),
        (Category::CudaMemcpyP2p, 100),
        (Category::CudaMemset, 100),
        (Category::CudaGraph, 100),
        (Category::CudaSync, 100),
        (Category::CudaApi, 1200),
    ] {
        assert_eq!(count(&capture, category), expected, "{category:?}");
        assert!(capture.captured.contains(&category), "{category:?}");
    }
    let [device] = &capture.devices[..] else {
        panic!("{:?}", capture.devices);
    };
    assert_eq!(
        (device.name.as_str(), device.multiprocessors),
        ("Simulated GPU", Some(132))
    );
    // No record of a device has its peak rates, and nothing stands in for them.
    assert_eq!((device.peak_bandwidth, device.peak_flops.len()), (None, 0));
    assert_eq!(
        (device.compute_capability, device.memory_bytes),
        (Some((9, 0)), Some(85_899_345_920))
    );

    let capture = timeline(capture).capture;
    let of = |category| &capture.events[&category];
    let (kernels, calls) = (of(Category::CudaKernel), of(Category::CudaApi));
    assert_eq!(kernels.names.len(), 50);
    assert!(
        calls
            .names
            .iter()
            .all(|name| ["cudaLaunchKernel", "cuLaunchKernel"].contains(&name.as_str()))
    );
    for category in [
        Category::CudaKernel,
        Category::CudaMemcpyH2d,
        Category::CudaMemset,
        Category::CudaGraph,
    ] {
        let events = of(category);
        for at in 0..events.len() {
            let launch = usize::try_from(events.number(ColumnId::Launch, at).unwrap()).unwrap();
            assert_eq!(events.correlation[at], calls.correlation[launch], "{category:?} {at}");
            assert!(calls.start_ns[launch] < events.start_ns[at]);
        }
    }
    let column = |category, id| of(category).number(id, 0);
    assert_eq!(column(Category::CudaKernel, ColumnId::GridX), Some(108));
    assert_eq!(column(Category::CudaKernel, ColumnId::Registers), Some(40));
    assert_eq!(column(Category::CudaMemcpyH2d, ColumnId::Bytes), Some(4096));
    assert_eq!(column(Category::CudaMemset, ColumnId::Bytes), Some(8192));
    assert_eq!(column(Category::CudaGraph, ColumnId::GraphId), Some(5));
    let unknown = u64::from(MemoryKind::Unknown.number());
    assert_eq!(column(Category::CudaMemcpyH2d, ColumnId::SrcMemoryKind), Some(unknown));
    assert_eq!(of(Category::CudaGraph).name_of(0), "[CUDA graph 5]");
    assert_eq!(of(Category::CudaSync).name_of(0), "Stream sync");
    let streams = capture.rows.iter().filter(|row| row.track == Track::GpuStream);
    assert_eq!(streams.count(), 4);
    assert!(capture.rows.iter().all(|row| row.process == program.child.id()));
}

#[test]
fn nodes_of_graphs_are_kernels_with_their_node() {
    let (rig, mut program, mut agent) = Agent::anew();
    agent.order(Wanted {
        graphs: GraphLevel::Nodes,
        ..window(Kinds::KERNELS)
    });
    agent.settle(0);
    assert_eq!(program.recorded("launch 10 4"), 30);
    agent.end();
    let capture = tracer::read(&rig.trace(), &ReadLimits::default()).unwrap();
    let kernels = &capture.events[&Category::CudaKernel];
    let mut nodes: Vec<u64> = (0..30)
        .map(|at| kernels.number(ColumnId::GraphNode, at).unwrap())
        .collect();
    nodes.sort_unstable();
    assert_eq!(nodes, [[1; 10], [2; 10], [3; 10]].concat());
    assert!(!capture.captured.contains(&Category::CudaGraph));
}

#[test]
fn two_programs_are_on_one_axis_and_a_window_cuts_both() {
    let rig = Rig::new(1304);
    let (mut one, mut other) = (rig.start(), rig.start());
    let mut agent = Agent::of(&rig);
    agent.begin(Kinds::KERNELS);
    agent.settle(1);
    one.recorded("launch 100");
    other.recorded("launch 100");
    let middle = now_ns();
    one.recorded("launch 50");
    other.recorded("launch 50");
    agent.end();
    agent.settle(1);
    let whole = tracer::read(&rig.trace(), &ReadLimits::default()).unwrap();
    assert_eq!(count(&whole, Category::CudaKernel), 300);
    let processes: Vec<u32> = whole.rows.iter().map(|row| row.process).collect();
    assert!(
        [&one, &other]
            .iter()
            .all(|program| processes.contains(&program.child.id()))
    );
    // Kernels wait for those before them: some that were launched before the middle end behind it.
    let begin = whole.session_start_utc_ns.unwrap();
    let kernels = &whole.events[&Category::CudaKernel];
    let behind = (0..300).filter(|at| begin + kernels.end_ns(*at) > middle).count();
    assert!((100..200).contains(&behind), "{behind}");
    let late = tracer::read_between(&rig.trace(), &ReadLimits::default(), middle..now_ns()).unwrap();
    assert_eq!(late.session_start_utc_ns, Some(middle));
    assert_eq!(count(&late, Category::CudaKernel), behind);
    let nothing = tracer::read_between(&rig.trace(), &ReadLimits::default(), 1..2).unwrap();
    assert_eq!(count(&nothing, Category::CudaKernel), 0);
    assert!(nothing.captured.contains(&Category::CudaKernel));
}

#[test]
fn a_window_longer_than_the_file_is_drained_while_it_runs() {
    let (rig, mut program, mut agent) = Agent::anew();
    let mut tracing = Tracing::open(&rig.trace(), &ReadLimits::default()).unwrap();
    agent.begin(Kinds::KERNELS);
    // A file of 8 MiB holds 55,000 kernels.
    for _ in 0..10 {
        assert_eq!(program.recorded("launch 20000"), 20_000);
        tracing.drain().unwrap();
    }
    agent.end();
    tracing.drain().unwrap();
    let capture = tracing.finish(None).unwrap();
    assert_eq!(count(&capture, Category::CudaKernel), 200_000);
    assert_eq!(capture.losses.list(), []);
    // Whoever comes behind it gets what is there, and is told of the rest.
    let late = tracer::read(&rig.trace(), &ReadLimits::default()).unwrap();
    let losses = late.losses.list();
    let [lost] = &losses[..] else { panic!("{losses:?}") };
    assert_eq!(lost.what, "CUDA records that the file no longer holds");
    let held = u64::try_from(count(&late, Category::CudaKernel)).unwrap();
    assert_eq!(held + lost.count, 200_000);
}

#[test]
fn limits_hold_and_rubbish_is_left_out() {
    let (rig, mut program, mut agent) = Agent::anew();
    agent.begin(Kinds::ALL);
    program.ask("work 2000");
    agent.end();
    for (what, limits) in [
        (
            "events",
            ReadLimits {
                max_events: 100,
                ..ReadLimits::default()
            },
        ),
        (
            "rows",
            ReadLimits {
                max_rows: 1,
                ..ReadLimits::default()
            },
        ),
        (
            "bytes of strings",
            ReadLimits {
                max_string_bytes: 100,
                ..ReadLimits::default()
            },
        ),
    ] {
        let error = tracer::read(&rig.trace(), &limits).unwrap_err().to_string();
        assert!(error.contains("holds more than") && error.ends_with(what), "{error}");
    }
    let file = std::fs::OpenOptions::new().write(true).open(rig.trace()).unwrap();
    let length = file.metadata().unwrap().len();
    let mut random = 88_172_645_463_325_252_u64;
    for _ in 0..30 {
        for _ in 0..500 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let at = 24 + random % (length - 32);
            file.write_all_at(&random.rotate_left(31).to_le_bytes(), at).unwrap();
        }
        let capture = tracer::read(&rig.trace(), &ReadLimits::default()).unwrap();
        let bound = usize::try_from(length / 64).unwrap();
        assert!(capture.events.values().map(Events::len).sum::<usize>() <= bound);
        drop(timeline(capture));
    }
    file.set_len(100_000).unwrap();
    assert!(tracer::read(&rig.trace(), &ReadLimits::default()).is_err());
    std::fs::write(rig.path("none"), "FLPWCUDA").unwrap();
    assert!(tracer::read(&rig.path("none"), &ReadLimits::default()).is_err());
}
