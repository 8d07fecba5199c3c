use flopwatch_analysis_testing::Trace;
use flopwatch_model::{Allocation, Category, Device, Track};

use super::*;

/// A GPU of 1000 bytes: 100 before the capture, then 300 for `aten::conv2d`, 200 for `aten::add`,
/// of which the peak of 600 is made.
fn trace() -> Timeline {
    let mut trace = Trace::new();
    let operators = trace.thread(1, 7, Track::CpuOp);
    trace.event(Category::CpuOp, operators, "aten::conv2d", 0, 20);
    trace.event(Category::CpuOp, operators, "aten::add", 20, 40);
    trace.event(Category::CpuOp, operators, "aten::relu", 90, 100);
    trace.device(Device {
        id: 0,
        memory_bytes: Some(1000),
        ..Device::default()
    });
    let mut timeline = trace.build();
    let one = |t_ns, address, bytes, allocated| Allocation {
        t_ns,
        process: 1,
        thread: Some(7),
        device: Some(0),
        address,
        bytes,
        allocated: Some(allocated),
        reserved: Some(800),
        ..Allocation::default()
    };
    timeline.capture.allocations = vec![
        one(10, 0x10, 300, 400),
        one(30, 0x20, 200, 600),
        one(50, 0x10, -300, 300),
        one(95, 0x10, 250, 550),
    ];
    timeline
}

#[test]
fn a_peak_says_what_is_alive_and_who_asked() {
    let result = MemoryResult::of(&trace(), MemoryParams { limit: 1, points: 10 });
    let pool = &result.pools[0];
    assert_eq!((pool.peak_bytes, pool.peak_ns, pool.peak_ratio), (600, 30, Some(0.6)));
    assert_eq!((pool.before_bytes, pool.end_bytes), (100, 550));
    assert_eq!((pool.alive_bytes, pool.from_before_bytes), (Some(500), Some(100)));
    assert_eq!(
        (pool.unused_at_peak_bytes, pool.most_unused_bytes),
        (Some(200), Some(500))
    );
    assert_eq!(
        (pool.alive.len(), pool.alive_left_out, pool.alive_by_requester_left_out),
        (1, 1, 1)
    );
    let largest = &pool.alive[0];
    assert_eq!((largest.bytes, largest.given_ns, largest.lifetime_ns), (300, 10, 40));
    assert_eq!((largest.release, largest.address.as_str()), (Release::Recorded, "0x10"));
    assert_eq!(largest.requester.operator.as_deref(), Some("aten::conv2d"));
    let levels: Vec<u64> = pool.over_time.iter().map(|point| point.allocated_bytes).collect();
    assert_eq!(levels, [100, 400, 400, 600, 600, 300, 300, 300, 300, 550]);
    assert_eq!(result.not_captured, []);
    assert_eq!(result.notes, Vec::<String>::new());
}

#[test]
fn a_capture_without_memory_says_so() {
    let result = MemoryResult::of(&Timeline::default(), MemoryParams::default());
    assert!(result.pools.is_empty() && result.series.is_empty());
    assert_eq!(result.not_captured, [without_allocations()]);
}

#[test]
fn samples_of_nvml_stand_beside_and_are_explained() {
    let mut timeline = trace();
    timeline.capture.counters = vec![
        CounterSeries {
            source: "nvml".to_owned(),
            device: "gpu0".to_owned(),
            metric: "memory_used".to_owned(),
            unit: "bytes".to_owned(),
            t_ns: vec![0, 35, 60],
            value: vec![900.0, 950.0, 910.0],
        },
        CounterSeries {
            source: "kineto".to_owned(),
            device: "gpu0".to_owned(),
            metric: "memory_allocated".to_owned(),
            unit: "bytes".to_owned(),
            t_ns: vec![10],
            value: vec![400.0],
        },
    ];
    let result = MemoryResult::of(&timeline, MemoryParams { limit: 5, points: 10 });
    let [series] = result.series.as_slice() else {
        panic!("{:?}", result.series)
    };
    assert_eq!(
        (series.min, series.max, series.max_ns, series.last),
        (900.0, 950.0, 35, 910.0)
    );
    let values: Vec<u64> = series
        .over_time
        .iter()
        .map(|point| format!("{:.0}", point.value).parse().unwrap())
        .collect();
    assert_eq!(values, [900, 900, 900, 950, 950, 950, 910, 910, 910, 910]);
    assert!(
        result
            .notes
            .iter()
            .any(|note| note.contains("NVML") && note.contains("90 % of it"))
    );
}
