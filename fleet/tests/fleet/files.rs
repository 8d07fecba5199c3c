//! What is written is what is read, byte for byte.

use flopwatch_fleet::{
    CaptureRow, Limits, Row, Sketch, name_hash, read_captures, read_rows, write_captures, write_rows,
};
use proptest::prelude::*;

use crate::records::{capture, row};

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{0,8}", "\\PC{0,20}"]
}

fn captures() -> impl Strategy<Value = Vec<CaptureRow>> {
    let one = (
        prop::array::uniform8(text()),
        prop::array::uniform8(prop::option::of(text())),
        prop::array::uniform4(prop::option::of(0_i64..=i64::MAX)),
        prop::array::uniform3(prop::option::of(any::<i64>())),
        prop::collection::vec(text(), 0..5),
        (any::<i64>(), 0_i64..=i64::MAX, 1_i64..=1_000_000_000, any::<bool>()),
    );
    let one = one.prop_map(
        |(texts, maybe, counts, points, categories, (start, window, probability, succeeded))| {
            let [
                cluster,
                namespace,
                session,
                session_id,
                capture,
                capture_uid,
                pod,
                image,
            ] = texts;
            let [
                schedule,
                gpu_model,
                workload_kind,
                workload,
                image_digest,
                version,
                profiler,
                verdict,
            ] = maybe;
            let [gpus, gpu_busy_ns, events, dropped] = counts;
            CaptureRow {
                cluster,
                namespace,
                schedule,
                session,
                session_id,
                capture,
                capture_uid,
                gpu_model,
                gpus,
                pod,
                workload_kind,
                workload,
                image,
                image_digest,
                version,
                profiler,
                window_start: start,
                window_ns: window,
                probability_per_billion: probability,
                succeeded,
                categories,
                gpu_busy_ns,
                events,
                dropped,
                overhead_verdict: verdict,
                overhead_slowdown_basis_points: points[0],
                overhead_low_basis_points: points[1],
                overhead_high_basis_points: points[2],
                ..CaptureRow::default()
            }
        },
    );
    prop::collection::vec(one, 0..30)
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let one = (
        text(),
        prop::option::of(text()),
        prop::option::of(0_i64..8),
        prop::collection::vec(any::<u32>(), 1..20),
        any::<bool>(),
    );
    let one = one.prop_map(|(name, version, device, durations, with_sketch)| {
        let mut sketch = Sketch::default();
        for duration in &durations {
            sketch.add(u64::from(*duration));
        }
        let values = || durations.iter().map(|duration| i64::from(*duration));
        Row {
            name_hash: name_hash(&name),
            name,
            version,
            device,
            calls: i64::try_from(durations.len()).unwrap(),
            total_ns: values().sum(),
            min_ns: values().min().unwrap(),
            median_ns: values().min().unwrap(),
            max_ns: values().max().unwrap(),
            sketch: with_sketch.then_some(sketch),
            ..row(&capture("uid", 0.5), "cuda_kernel", "", 1, 1)
        }
    });
    prop::collection::vec(one, 0..40)
}

proptest! {
    // Parquet's writer is not optimised in tests.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn captures_come_back_as_they_were(captures in captures()) {
        let bytes = write_captures(&captures).unwrap();
        prop_assert_eq!(&bytes, &write_captures(&captures).unwrap());
        prop_assert_eq!(read_captures(bytes, &Limits::default()).unwrap(), captures);
    }

    #[test]
    fn rows_come_back_as_they_were(rows in rows()) {
        let bytes = write_rows(&rows).unwrap();
        prop_assert_eq!(&bytes, &write_rows(&rows).unwrap());
        prop_assert_eq!(read_rows(bytes, &Limits::default()).unwrap(), rows);
    }
}

#[test]
fn many_rows_are_read_over_many_pages() {
    let capture = capture("uid", 1.0);
    let rows: Vec<Row> = (0..45_000)
        .map(|n| row(&capture, "cuda_kernel", &format!("k{n}"), 1 + n % 3, n))
        .collect();
    let bytes = write_rows(&rows).unwrap();
    println!("{} rows take {} bytes", rows.len(), bytes.len());
    assert_eq!(read_rows(bytes, &Limits::default()).unwrap(), rows);
}

#[test]
fn a_capture_takes_a_few_kilobytes() {
    let capture = capture("5a3e9c1e-0b7d-4c2a-9d8e-1f2a3b4c5d6e", 0.01);
    let name = |n: i64| {
        format!("void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_{n}x128_32x6_tn_align8>(Params)")
    };
    let rows: Vec<Row> = (0..60)
        .map(|n| row(&capture, "cuda_kernel", &name(n), 5, 1_000 + n * 977))
        .collect();
    let (captures, rows) = (
        write_captures(&[capture]).unwrap().len(),
        write_rows(&rows).unwrap().len(),
    );
    println!("a capture takes {captures} bytes, its 60 rows {rows}");
    assert!(captures < 12_000 && rows < 16_000, "{captures}, {rows}");
}
