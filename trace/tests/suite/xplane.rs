//! XSpace messages of our own making.

use std::io::Write;

use flopwatch_model::{Capture, Category, ColumnId, Events, LossReason, MemoryKind, Track};
use flopwatch_trace::transform::{TransformOptions, transform};
use flopwatch_trace::{ReadLimits, xplane};

use crate::limits::limited;
use crate::message::{Message, new};
use crate::nsys::corpus;

impl Message {
    /// An entry of a table of names: of events (4) or of statistics (5).
    fn named(self, table: u64, id: u64, name: &str) -> Self {
        let value = new().number(1, id).text(2, name);
        self.message(table, &new().number(1, id).message(2, &value))
    }
}

const REGS: &str = "regs:40 static_shared:16 dynamic_shared:1024 grid:512,2,1 block:64,4,1 occ_pct:75";

fn event(kind: u64, offset_ps: u64, duration_ps: u64) -> Message {
    new().number(1, kind).number(2, offset_ps).number(3, duration_ps)
}

/// A GPU with a stream and a derived line, and a host; `name` is that of a range there.
pub(crate) fn space(name: &str) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(REGS.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let correlation = |id| new().number(1, 1).number(3, id);
    let by_reference = event(1, 5_000_500, 2_000_600)
        .message(4, &correlation(7))
        .message(4, &new().number(1, 2).number(7, 9));
    let by_gzip = event(1, 8_000_000, 1_000_000)
        .message(4, &correlation(8))
        .message(4, &new().number(1, 2).bytes(8, &packed));
    let copy = event(2, 9_000_000, 500_000).message(
        4,
        &new().number(1, 3).text(5, "kind_src:pageable size:4096 dest:0 async:1"),
    );
    let aggregated = new().number(1, 1).number(5, 12).number(3, 1000);
    let stream = new().number(1, 13).text(2, "Stream #13(Compute)").number(3, 1000);
    let stream = stream
        .message(4, &by_reference)
        .message(4, &by_gzip)
        .message(4, &copy)
        .message(4, &aggregated);
    let derived = new()
        .number(1, 14)
        .text(2, "XLA Ops")
        .number(3, 1000)
        .message(4, &event(3, 5_000_000, 4_000_000));
    let gpu = new()
        .number(1, 1)
        .text(2, "/device:GPU:1")
        .message(3, &stream)
        .message(3, &derived);
    let gpu = gpu.named(4, 1, "gemm").named(4, 2, "MemcpyH2D").named(4, 3, "fusion.1");
    let gpu = gpu
        .named(5, 1, "correlation_id")
        .named(5, 2, "kernel_details")
        .named(5, 3, "memcpy_details")
        .named(5, 9, REGS);
    let gpu = gpu
        .named(5, 10, "device_type_string")
        .message(6, &new().number(1, 10).text(5, "Big GPU"));
    let call = event(1, 100_000, 50_000).message(4, &correlation(7));
    let step = event(4, 0, 9_000_000).message(4, &new().number(1, 2).number(4, 12));
    let thread = new()
        .number(1, 4711)
        .text(2, "python")
        .text(11, "python main")
        .number(3, 1000);
    let thread = thread
        .message(4, &call)
        .message(4, &event(2, 0, 60_000))
        .message(4, &event(3, 0, 70_000))
        .message(4, &step);
    let host = new().text(2, "/host:CPU").message(3, &thread);
    let host = host
        .named(4, 1, "cuLaunchKernel")
        .named(4, 2, "$train.py:10 step")
        .named(4, 3, name)
        .named(4, 4, "train");
    let host = host.named(5, 1, "correlation_id").named(5, 2, "step_num");
    let environment = new().text(2, "Task Environment").named(5, 1, "profile_start_time");
    let environment = environment.message(6, &new().number(1, 1).number(3, 1_700_000_000_000_000_000));
    let space = new().message(1, &gpu).message(1, &host).message(1, &environment);
    space.text(2, "something failed").text(4, "worker-0").0
}

pub(crate) fn read_bytes(bytes: &[u8], limits: &ReadLimits) -> Result<Capture, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("host.xplane.pb");
    std::fs::write(&path, bytes).unwrap();
    xplane::read(&path, limits).map_err(|error| error.to_string())
}

fn own(events: &Events, at: usize, id: ColumnId) -> Option<u64> {
    events.column(id).and_then(|values| values.get(at))
}

#[test]
fn a_profile_becomes_columns() {
    let capture = read_bytes(&space("forward"), &ReadLimits::default()).unwrap();
    assert_eq!(capture.session_start_utc_ns, Some(1_700_000_000_000_001_000));
    let kernels = &capture.events[&Category::CudaKernel];
    assert_eq!(kernels.len(), 2);
    // Cut to whole nanoseconds at both ends: 5,000.5 to 7,001.1.
    assert_eq!(
        (kernels.start_ns[0], kernels.duration_ns[0], kernels.correlation[0]),
        (5000, 2001, 7)
    );
    for at in 0..2 {
        let columns = [
            ColumnId::GridX,
            ColumnId::BlockY,
            ColumnId::Registers,
            ColumnId::SharedStatic,
            ColumnId::SharedDynamic,
        ];
        assert_eq!(
            columns.map(|id| own(kernels, at, id)),
            [512, 4, 40, 16, 1024].map(Some),
            "a text by reference or in gzip"
        );
    }
    let copies = &capture.events[&Category::CudaMemcpyH2d];
    assert_eq!(own(copies, 0, ColumnId::Bytes), Some(4096));
    let row = &capture.rows[kernels.row[0].index()];
    assert_eq!(
        (row.track, row.device, row.stream, row.label.as_str()),
        (Track::GpuStream, Some(1), Some(13), "GPU 1 Stream #13(Compute)")
    );
    assert_eq!(own(&capture.events[&Category::Step], 0, ColumnId::StepNumber), Some(12));
    assert_eq!(
        capture.events[&Category::PythonFunction].name_of(0),
        "$train.py:10 step"
    );
    assert_eq!(capture.events[&Category::Annotation].name_of(0), "forward");
    assert_eq!(capture.devices[0].name, "Big GPU");
    let lost: Vec<_> = capture
        .losses
        .list()
        .into_iter()
        .map(|drop| (drop.reason, drop.what, drop.count))
        .collect();
    let expected = [
        (LossReason::Dropped, "errors of the profiler"),
        (LossReason::Unsupported, "aggregated events"),
    ];
    assert_eq!(lost, expected.map(|(reason, what)| (reason, what.to_owned(), 1)));
    let timeline = transform(capture, TransformOptions::default());
    let kernels = &timeline.capture.events[&Category::CudaKernel];
    assert_eq!(
        [0, 1].map(|at| own(kernels, at, ColumnId::Launch)),
        [Some(0), Some(u64::from(ColumnId::NO_LAUNCH))]
    );
}

#[test]
fn derived_lines_stand_apart_from_streams() {
    let capture = read_bytes(&space("forward"), &ReadLimits::default()).unwrap();
    let derived = &capture.events[&Category::Derived];
    assert_eq!((derived.len(), derived.name_of(0)), (1, "fusion.1"));
    assert!(Category::Derived.is_derived() && !Category::Derived.is_gpu_work());
    let row = &capture.rows[derived.row[0].index()];
    assert_eq!(
        (row.track, row.stream, row.label.as_str()),
        (Track::Derived, None, "GPU 1 XLA Ops")
    );
    assert!(!capture.events.contains_key(&Category::DeviceOp));
}

#[test]
fn an_accelerator_without_streams_has_operations() {
    let ops = new()
        .number(1, 2)
        .text(2, "XLA Ops")
        .number(3, 5)
        .message(4, &event(1, 1000, 3000));
    let modules = new()
        .number(1, 3)
        .text(2, "XLA Modules")
        .number(3, 5)
        .message(4, &event(1, 0, 9000));
    let steps = new()
        .number(1, 4)
        .text(2, "Steps")
        .number(3, 5)
        .message(4, &event(2, 1000, 8000));
    let stats = |name, value| new().number(1, name).number(4, value);
    let kind = new().number(1, 1).text(2, "%fusion = f32[]").text(4, "fusion");
    let kind = kind.message(5, &stats(1, 640)).message(5, &stats(2, 128));
    let plane = new().text(2, "/device:TPU:3").message(3, &ops).message(3, &modules);
    let plane = plane.message(3, &steps).named(4, 2, "17");
    let plane = plane
        .message(4, &new().number(1, 1).message(2, &kind))
        .named(5, 1, "bytes_accessed")
        .named(5, 2, "flops");
    let capture = read_bytes(&new().message(1, &plane).0, &ReadLimits::default()).unwrap();
    let ops = &capture.events[&Category::DeviceOp];
    assert_eq!((ops.name_of(0), ops.start_ns[0], ops.duration_ns[0]), ("fusion", 1, 3));
    assert_eq!(
        [ColumnId::Bytes, ColumnId::Flops].map(|id| own(ops, 0, id)),
        [Some(640), Some(128)]
    );
    // Analyses know the line of steps by the end of its label, and a step's number by its name.
    let derived = &capture.events[&Category::Derived];
    let of_step = (0..derived.len()).find(|at| derived.name_of(*at) == "17").unwrap();
    let row = &capture.rows[derived.row[of_step].index()];
    assert_eq!(
        (row.track, row.device, row.label.as_str()),
        (Track::Derived, Some(3), "/device:TPU:3 Steps")
    );
    assert_eq!(derived.len(), 2);
    assert!(!capture.events.contains_key(&Category::CudaKernel));
}

#[test]
fn a_profile_that_is_cut_off_names_the_place() {
    let whole = space("forward");
    for end in 1..whole.len() {
        match read_bytes(&whole[..end], &ReadLimits::default()) {
            // Between two planes a message may end.
            Ok(_) => {}
            Err(error) => {
                let known = error.contains("damaged at byte") || error.contains("is no XSpace message");
                assert!(error.contains("host.xplane.pb") && known, "{end}: {error}");
            }
        }
    }
    let error = read_bytes(&whole[..whole.len() / 3], &ReadLimits::default()).unwrap_err();
    assert!(error.contains("damaged at byte 0"), "{error}");
    for other in [
        &b""[..],
        b"hello",
        b"\x1f\x8b\x08",
        b"{\"traceEvents\": []}",
        &[0x0a, 2, 8, 1],
    ] {
        let error = read_bytes(other, &ReadLimits::default()).unwrap_err();
        assert!(error.contains("is no XSpace message"), "{error}");
    }
}

#[test]
fn limits_end_in_errors_that_name_them() {
    let whole = space("forward");
    for (limits, says) in [
        (limited(|of| of.max_text_bytes = 100), "100 bytes"),
        (limited(|of| of.max_events = 3), "3 events"),
        (limited(|of| of.max_rows = 1), "1 streams and threads"),
        (limited(|of| of.max_string_bytes = 30), "30 bytes of strings"),
    ] {
        let error = read_bytes(&whole, &limits).unwrap_err();
        assert!(error.contains("host.xplane.pb") && error.contains(says), "{error}");
    }
}

/// A warning of the profiler, as a field of the space.
pub(crate) fn warning(text: &str) -> Vec<u8> {
    new().text(3, text).0
}

#[test]
fn work_says_its_program_and_counters_become_series() {
    let text = |stat: u64, value: &str| new().number(1, stat).text(5, value);
    let kernel = event(1, 5_000_000, 2_000_000)
        .message(4, &text(1, "fusion.3"))
        .message(4, &text(2, "jit_f"))
        .message(4, &text(3, "XlaModule:"))
        .message(4, &text(4, "jit(f)/dot_general"))
        .message(4, &new().number(1, 5).number(4, 15))
        .message(4, &text(6, "grid:1,1,1 block:32,1,1 occ_pct:37.5"));
    let bare = event(1, 8_000_000, 1_000_000).message(4, &text(6, "grid:1,1,1 block:32,1,1 occ_pct:0"));
    let copy = event(2, 9_000_000, 500_000).message(4, &text(7, "kind_src:pinned kind_dst:device size:4096"));
    let stream = new().number(1, 13).text(2, "Stream #13").number(3, 1000);
    let stream = stream.message(4, &kernel).message(4, &bare).message(4, &copy);
    let sample = |offset_ps, value: u64| event(3, offset_ps, 0).message(4, &new().number(1, 8).number(3, value));
    let counters = new().number(1, 99).text(2, "_counters_").number(3, 1000);
    let counters = counters
        .message(4, &sample(7_000_000, 30))
        .message(4, &sample(6_000_000, 20))
        .message(4, &event(3, 6_000_000, 0));
    let gpu = new().text(2, "/device:GPU:0").message(3, &stream).message(3, &counters);
    let gpu = gpu.named(4, 1, "gemm").named(4, 2, "MemcpyH2D").named(4, 3, "SQ WAVES");
    let gpu = gpu
        .named(5, 1, "hlo_op")
        .named(5, 2, "hlo_module")
        .named(5, 3, "tf_op")
        .named(5, 4, "name");
    let gpu = gpu.named(5, 5, "program_id").named(5, 6, "kernel_details");
    let gpu = gpu.named(5, 7, "memcpy_details").named(5, 8, "counter_value");
    // An operation of a TPU says it with its kind.
    let kind = new()
        .number(1, 1)
        .text(2, "%fusion = f32[8] fusion(...)")
        .text(4, "fusion")
        .message(5, &text(1, "loop fusion"))
        .message(5, &new().number(1, 2).number(4, 77))
        .message(5, &new().number(1, 3).number(4, 88));
    let operations = new()
        .number(1, 3)
        .text(2, "XLA Ops")
        .number(3, 1000)
        .message(4, &event(1, 5_000_000, 1_000_000));
    let rate = new().number(1, 4).double(2, 918.0);
    let tpu = new().text(2, "/device:TPU:0").message(3, &operations);
    let tpu = tpu.message(4, &new().number(1, 1).message(2, &kind));
    let tpu = tpu
        .named(5, 1, "hlo_category")
        .named(5, 2, "flops")
        .named(5, 3, "bytes_accessed");
    let tpu = tpu.named(5, 4, "peak_teraflops_per_second").message(6, &rate);
    let capture = read_bytes(&new().message(1, &gpu).message(1, &tpu).0, &ReadLimits::default()).unwrap();

    let kernels = &capture.events[&Category::CudaKernel];
    let reply = |id| [0, 1].map(|at| kernels.text(id, at));
    assert_eq!(reply(ColumnId::HloOp), [Some("fusion.3"), None]);
    assert_eq!(reply(ColumnId::HloModule), [Some("jit_f"), None]);
    assert_eq!(reply(ColumnId::TfOp), [Some("jit(f)/dot_general"), None]);
    assert_eq!(
        [0, 1].map(|at| own(kernels, at, ColumnId::ProgramId)),
        [Some(15), Some(0)]
    );
    let none = u64::from(ColumnId::UNKNOWN);
    assert_eq!(
        [0, 1].map(|at| own(kernels, at, ColumnId::TheoreticalOccupancy)),
        [Some(375_000), Some(none)]
    );
    let copies = &capture.events[&Category::CudaMemcpyH2d];
    let kinds = [ColumnId::SrcMemoryKind, ColumnId::DstMemoryKind].map(|id| own(copies, 0, id));
    assert_eq!(
        kinds.map(|kind| kind.and_then(MemoryKind::from_number)),
        [Some(MemoryKind::Pinned), Some(MemoryKind::Device)]
    );
    let operations = &capture.events[&Category::DeviceOp];
    assert_eq!(operations.text(ColumnId::HloCategory, 0), Some("loop fusion"));
    assert_eq!(
        [ColumnId::Flops, ColumnId::Bytes].map(|id| own(operations, 0, id)),
        [Some(77), Some(88)]
    );
    let tpu = capture.devices.iter().find(|device| !device.peak_flops.is_empty());
    assert_eq!(tpu.map(|device| device.peak_flops["any"]), Some(918_000_000_000_000));

    let series = &capture.counters[0];
    assert_eq!(
        (series.source.as_str(), series.device.as_str(), series.metric.as_str()),
        ("xplane", "gpu0", "SQ_WAVES")
    );
    assert_eq!(
        (series.t_ns.as_slice(), series.value.as_slice()),
        (&[1000, 2000][..], &[20.0, 30.0][..])
    );
    let losses: Vec<_> = capture
        .losses
        .list()
        .into_iter()
        .map(|drop| (drop.what, drop.count))
        .collect();
    assert_eq!(losses, [("samples that are no numbers".to_owned(), 1)]);
}

#[test]
fn compiled_programs_are_kept_unless_they_may_hold_a_secret() {
    let module = |id: u64, name: &str, proto: &str| {
        let stat = new().number(1, 1).bytes(6, proto.as_bytes());
        let kind = new().number(1, id).text(2, name).message(5, &stat);
        new().number(1, id).message(2, &kind)
    };
    let metadata = new()
        .text(2, "/host:metadata")
        .message(4, &module(1, "jit_step(15)", "a message"))
        .message(4, &module(2, "jit_init(7)", "another"))
        .message(4, &module(3, "jit_leak(8)", "op_name=MY_TOKEN=t0ps3cret"))
        .named(5, 1, "Hlo Proto");
    let mut bytes = space("forward");
    bytes.extend_from_slice(&new().message(1, &metadata).0);
    let capture = read_bytes(&bytes, &ReadLimits::default()).unwrap();
    let what = "HLO modules with what looks like a secret";
    assert!(
        capture
            .losses
            .list()
            .iter()
            .any(|drop| drop.what == what && drop.count == 1)
    );
    let timeline = transform(capture, TransformOptions::default());
    let found: Vec<_> = timeline
        .capture
        .programs
        .iter()
        .map(|program| (program.name.as_str(), program.id, program.proto.as_slice()))
        .collect();
    assert_eq!(
        found,
        [("jit_init", 7, &b"another"[..]), ("jit_step", 15, &b"a message"[..])]
    );
    crate::columns::through_a_file(&timeline);
}

#[test]
fn profiles_of_the_corpus_say_the_programs_of_their_kernels() {
    let Some(path) = corpus("tracelens-jax/jax_conv_minimal_08.xplane.pb") else {
        return;
    };
    let capture = xplane::read(&path, &ReadLimits::default()).unwrap();
    let kernels = &capture.events[&Category::CudaKernel];
    let of = |at: &usize| own(kernels, *at, ColumnId::ProgramId).filter(|id| *id != 0);
    let told: Vec<usize> = (0..kernels.len()).filter(|at| of(at).is_some()).collect();
    assert_eq!(told.len(), 23 + 7 * 25);
    for at in told {
        let program = capture
            .programs
            .iter()
            .find(|program| Some(program.id) == of(&at))
            .unwrap();
        assert_eq!(kernels.text(ColumnId::HloModule, at), Some(program.name.as_str()));
        assert!(kernels.text(ColumnId::HloOp, at).is_some());
    }
}
