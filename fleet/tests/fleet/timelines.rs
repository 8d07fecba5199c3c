//! Rows of captures whose figures can be added up by hand.

use flopwatch_fleet::{CaptureRow, PROFILED_KERNEL, Row, rows, write_captures, write_rows};
use flopwatch_model::{
    Capture, Category, Device, Event, Events, KernelProfile, LossReason, Metric, NameId, Row as TimelineRow, RowId,
    Timeline, Track,
};
use flopwatch_summary::{Overhead, summarise};

use crate::records::capture;

fn line(device: Option<u32>, track: Track) -> TimelineRow {
    TimelineRow {
        capture: 0,
        machine: 0,
        process: 1,
        thread: None,
        device,
        context: None,
        stream: device.map(|_| 7),
        track,
        label: String::new(),
    }
}

fn events(category: Category, names: &[&str], events: &[(u32, u32, u64, u64)]) -> (Category, Events) {
    let mut found = Events::new(category);
    found.names = names.iter().map(|name| (*name).to_owned()).collect();
    for (row, name, start_ns, duration_ns) in events {
        let event = Event {
            start_ns: *start_ns,
            duration_ns: *duration_ns,
            row: RowId::new(*row),
            name: NameId::new(*name),
            correlation: 0,
        };
        found.push(event, &[]);
    }
    (category, found)
}

/// Two GPUs of two models, ranges, and a profiled launch.
fn timeline() -> Timeline {
    let device = |id, name: &str| Device {
        id,
        name: name.to_owned(),
        ..Device::default()
    };
    let profile = KernelProfile {
        name: "gemm".to_owned(),
        metrics: [(
            "gpu__time_duration.sum".to_owned(),
            Metric {
                value: 40.0.into(),
                unit: "ns".to_owned(),
            },
        )]
        .into(),
        ..KernelProfile::default()
    };
    let mut capture = Capture {
        duration_ns: 1_000,
        rows: vec![
            line(Some(0), Track::GpuStream),
            line(Some(1), Track::GpuStream),
            line(None, Track::Nvtx),
        ],
        devices: vec![device(0, "A100"), device(1, "H100")],
        events: [
            events(
                Category::CudaKernel,
                &["add", "gemm"],
                &[(0, 1, 0, 10), (0, 1, 20, 31), (0, 0, 60, 5), (1, 1, 0, 100)],
            ),
            events(Category::CudaMemcpyH2d, &["copy"], &[(1, 0, 200, 50)]),
            events(Category::NvtxRange, &["step"], &[(2, 0, 0, 300), (2, 0, 400, 500)]),
            events(Category::Step, &["step"], &[(2, 0, 0, 300)]),
        ]
        .into(),
        captured: [
            Category::CudaKernel,
            Category::CudaMemcpyH2d,
            Category::NvtxRange,
            Category::CudaApi,
        ]
        .into(),
        profiles: vec![profile],
        ..Capture::default()
    };
    capture.losses.add(LossReason::Dropped, "buffers", 3);
    Timeline {
        capture,
        ..Timeline::default()
    }
}

#[test]
fn rows_are_of_each_device_category_and_name() {
    let timeline = timeline();
    let capture = capture("uid", 0.25);
    let found = rows(&timeline, &summarise(&timeline), &capture);
    let figures = |row: &Row| {
        (
            row.category.clone(),
            row.device,
            row.name.clone(),
            row.gpu_model.clone().unwrap(),
            [row.calls, row.total_ns, row.min_ns, row.median_ns, row.max_ns],
            row.sketch.as_ref().map(flopwatch_fleet::Sketch::count),
        )
    };
    let row = |category: &str, device, name: &str, model: &str, figures, count| {
        (
            category.to_owned(),
            device,
            name.to_owned(),
            model.to_owned(),
            figures,
            count,
        )
    };
    let expected = [
        row("cuda_kernel", Some(0), "gemm", "A100", [2, 41, 10, 20, 31], Some(2)),
        row("cuda_kernel", Some(0), "add", "A100", [1, 5, 5, 5, 5], Some(1)),
        row("cuda_kernel", Some(1), "gemm", "H100", [1, 100, 100, 100, 100], Some(1)),
        row("cuda_memcpy_h2d", Some(1), "copy", "H100", [1, 50, 50, 50, 50], Some(1)),
        row(
            "nvtx_range",
            None,
            "step",
            "NVIDIA H100",
            [2, 800, 300, 400, 500],
            Some(2),
        ),
        row(PROFILED_KERNEL, None, "gemm", "NVIDIA H100", [1, 40, 40, 40, 40], None),
    ];
    assert_eq!(found.iter().map(figures).collect::<Vec<_>>(), expected);
    assert!(
        found
            .iter()
            .all(|row| row.capture_uid == "uid" && row.probability_per_billion == 250_000_000)
    );
    write_rows(&found).unwrap();
}

#[test]
fn a_capture_says_what_its_summary_says() {
    let mut summary = summarise(&timeline());
    summary.overhead = Some(Overhead {
        verdict: "Within".to_owned(),
        reason: "UpperEndWithin".to_owned(),
        message: String::new(),
        signal: None,
        slowdown_basis_points: Some(-12),
        low_basis_points: Some(-40),
        high_basis_points: Some(30),
        stall_ms: None,
    });
    let before = CaptureRow {
        gpu_model: None,
        ..capture("uid", 1.0)
    };
    let found = before.clone().with_summary(&summary);
    assert_eq!(found.gpu_model.as_deref(), Some("A100, H100"));
    assert_eq!(
        found.categories,
        [
            "cuda_kernel",
            "cuda_memcpy_h2d",
            "cuda_api",
            "nvtx_range",
            PROFILED_KERNEL
        ]
    );
    // 46 ns on one device, 150 on the other.
    assert_eq!(
        (found.gpu_busy_ns, found.events, found.dropped),
        (Some(196), Some(8), Some(3))
    );
    assert_eq!(
        (found.window_ns, found.overhead_verdict.as_deref()),
        (1_000, Some("Within"))
    );
    let points = [
        found.overhead_slowdown_basis_points,
        found.overhead_low_basis_points,
        found.overhead_high_basis_points,
    ];
    assert_eq!(points, [Some(-12), Some(-40), Some(30)]);
    write_captures(&[found]).unwrap();

    let nothing = before.with_summary(&summarise(&Timeline::default()));
    assert_eq!(
        (nothing.gpu_busy_ns, nothing.events, nothing.dropped),
        (None, Some(0), Some(0))
    );
    assert!(nothing.categories.is_empty());
}

#[test]
fn what_a_child_is_told_of_its_capture_survives_json() {
    let capture = capture("uid", 0.125);
    let text = serde_json::to_string(&capture).unwrap();
    assert_eq!(serde_json::from_str::<CaptureRow>(&text).unwrap(), capture);
}
