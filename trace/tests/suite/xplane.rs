//! XSpace messages of our own making.

use std::io::Write;

use flopwatch_model::{Capture, Category, ColumnId, Events, LossReason, MemoryKind, Track};
use flopwatch_trace::{ReadLimits, xplane};

use crate::capture::{counted, lost, read_as, spans, timeline_of};
use crate::limits::limited;
use crate::message::{Message, new};
use crate::nsys::corpus;

impl Message {
    /// An entry of a table of names: of events (4) or of statistics (5).
    fn named(self, table: u64, id: u64, name: &str) -> Self {
        let value = new().number(1, id).text(2, name);
        self.message(table, &new().number(1, id).message(2, &value))
    }

    /// Entries of these names, which are numbered from 1 on.
    fn names(self, table: u64, names: &[&str]) -> Self {
        let numbered = (1..).zip(names);
        numbered.fold(self, |plane, (id, name)| plane.named(table, id, name))
    }
}

/// A line of a plane with its events.
fn line(id: u64, name: &str, events: &[Message]) -> Message {
    let line = new().number(1, id).text(2, name).number(3, 1000);
    line.messages(4, events)
}

/// A statistic that is a text.
fn text(stat: u64, value: &str) -> Message {
    new().number(1, stat).text(5, value)
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
    let copy = text(3, "kind_src:pageable size:4096 dest:0 async:1");
    let copy = event(2, 9_000_000, 500_000).message(4, &copy);
    let aggregated = new().number(1, 1).number(5, 12).number(3, 1000);
    let work = [by_reference, by_gzip, copy, aggregated];
    let derived = line(14, "XLA Ops", &[event(3, 5_000_000, 4_000_000)]);
    let gpu = new().number(1, 1).text(2, "/device:GPU:1");
    let gpu = gpu
        .messages(3, &[line(13, "Stream #13(Compute)", &work), derived])
        .names(4, &["gemm", "MemcpyH2D", "fusion.1"])
        .names(5, &["correlation_id", "kernel_details", "memcpy_details"])
        .named(5, 9, REGS)
        .named(5, 10, "device_type_string")
        .message(6, &text(10, "Big GPU"));
    let call = event(1, 100_000, 50_000).message(4, &correlation(7));
    let step = event(4, 0, 9_000_000).message(4, &new().number(1, 2).number(4, 12));
    let calls = [call, event(2, 0, 60_000), event(3, 0, 70_000), step];
    let thread = line(4711, "python", &calls).text(11, "python main");
    let host = new().text(2, "/host:CPU").message(3, &thread);
    let host = host
        .names(4, &["cuLaunchKernel", "$train.py:10 step", name, "train"])
        .names(5, &["correlation_id", "step_num"]);
    let environment = new().text(2, "Task Environment").named(5, 1, "profile_start_time");
    let environment = environment.message(6, &new().number(1, 1).number(3, 1_700_000_000_000_000_000));
    let space = new().messages(1, &[gpu, host, environment]);
    space.text(2, "something failed").text(4, "worker-0").0
}

pub(crate) fn read_bytes(bytes: &[u8], limits: &ReadLimits) -> Result<Capture, String> {
    read_as("host.xplane.pb", bytes, |path| xplane::read(path, limits))
}

fn own(events: &Events, at: usize, id: ColumnId) -> Option<u64> {
    events.column(id).and_then(|values| values.get(at))
}

#[test]
fn a_profile_becomes_columns() {
    let capture = read_bytes(&space("forward"), &ReadLimits::default()).unwrap();
    assert_eq!(capture.session_start_utc_ns, Some(1_700_000_000_000_001_000));
    let kernels = &capture.events[&Category::CudaKernel];
    // Cut to whole nanoseconds at both ends: 5,000.5 to 7,001.1.
    assert_eq!(spans(kernels), [("gemm", 5000, 2001), ("gemm", 8000, 1000)]);
    assert_eq!(kernels.correlation, [7, 8]);
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
    let expected = [
        (LossReason::Dropped, "errors of the profiler"),
        (LossReason::Unsupported, "aggregated events"),
    ];
    let expected = expected.map(|(reason, what)| (reason, what.to_owned(), 1));
    assert_eq!(lost(&capture), expected);
    let timeline = timeline_of(capture);
    let kernels = &timeline.capture.events[&Category::CudaKernel];
    let launches = [0, 1].map(|at| own(kernels, at, ColumnId::Launch));
    assert_eq!(launches, [0, u64::from(ColumnId::NO_LAUNCH)].map(Some));
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
    let line = |id: u64, name: &str, event: Message| {
        let line = new().number(1, id).text(2, name).number(3, 5);
        line.message(4, &event)
    };
    let lines = [
        line(2, "XLA Ops", event(1, 1000, 3000)),
        line(3, "XLA Modules", event(1, 0, 9000)),
        line(4, "Steps", event(2, 1000, 8000)),
    ];
    let stats = |name, value| new().number(1, name).number(4, value);
    let kind = new().number(1, 1).text(2, "%fusion = f32[]").text(4, "fusion");
    let kind = kind.message(5, &stats(1, 640)).message(5, &stats(2, 128));
    let plane = new().text(2, "/device:TPU:3").messages(3, &lines).named(4, 2, "17");
    let plane = plane
        .message(4, &new().number(1, 1).message(2, &kind))
        .names(5, &["bytes_accessed", "flops"]);
    let capture = read_bytes(&new().message(1, &plane).0, &ReadLimits::default()).unwrap();
    let ops = &capture.events[&Category::DeviceOp];
    assert_eq!(spans(ops), [("fusion", 1, 3)]);
    let work = [ColumnId::Bytes, ColumnId::Flops].map(|id| own(ops, 0, id));
    assert_eq!(work, [Some(640), Some(128)]);
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
    let kernel = event(1, 5_000_000, 2_000_000)
        .message(4, &text(1, "fusion.3"))
        .message(4, &text(2, "jit_f"))
        .message(4, &text(3, "XlaModule:"))
        .message(4, &text(4, "jit(f)/dot_general"))
        .message(4, &new().number(1, 5).number(4, 15))
        .message(4, &text(6, "grid:1,1,1 block:32,1,1 occ_pct:37.5"));
    let bare = event(1, 8_000_000, 1_000_000).message(4, &text(6, "grid:1,1,1 block:32,1,1 occ_pct:0"));
    let copy = event(2, 9_000_000, 500_000).message(4, &text(7, "kind_src:pinned kind_dst:device size:4096"));
    let sample = |offset_ps, value: u64| event(3, offset_ps, 0).message(4, &new().number(1, 8).number(3, value));
    let samples = [sample(7_000_000, 30), sample(6_000_000, 20), event(3, 6_000_000, 0)];
    let gpu = new().text(2, "/device:GPU:0");
    let gpu = gpu
        .message(3, &line(13, "Stream #13", &[kernel, bare, copy]))
        .message(3, &line(99, "_counters_", &samples))
        .names(4, &["gemm", "MemcpyH2D", "SQ WAVES"])
        .names(5, &["hlo_op", "hlo_module", "tf_op", "name", "program_id"])
        .named(5, 6, "kernel_details")
        .named(5, 7, "memcpy_details")
        .named(5, 8, "counter_value");
    // An operation of a TPU says it with its kind.
    let kind = new()
        .number(1, 1)
        .text(2, "%fusion = f32[8] fusion(...)")
        .text(4, "fusion")
        .message(5, &text(1, "loop fusion"))
        .message(5, &new().number(1, 2).number(4, 77))
        .message(5, &new().number(1, 3).number(4, 88));
    let tpu = new().text(2, "/device:TPU:0");
    let tpu = tpu
        .message(3, &line(3, "XLA Ops", &[event(1, 5_000_000, 1_000_000)]))
        .message(4, &new().number(1, 1).message(2, &kind))
        .names(5, &["hlo_category", "flops", "bytes_accessed"])
        .named(5, 4, "peak_teraflops_per_second")
        .message(6, &new().number(1, 4).double(2, 918.0));
    let capture = read_bytes(&new().message(1, &gpu).message(1, &tpu).0, &ReadLimits::default()).unwrap();

    let kernels = &capture.events[&Category::CudaKernel];
    let reply = |id| [0, 1].map(|at| kernels.text(id, at));
    assert_eq!(reply(ColumnId::HloOp), [Some("fusion.3"), None]);
    assert_eq!(reply(ColumnId::HloModule), [Some("jit_f"), None]);
    assert_eq!(reply(ColumnId::TfOp), [Some("jit(f)/dot_general"), None]);
    let both = |id| [0, 1].map(|at| own(kernels, at, id).unwrap());
    assert_eq!(both(ColumnId::ProgramId), [15, 0]);
    let none = u64::from(ColumnId::UNKNOWN);
    assert_eq!(both(ColumnId::TheoreticalOccupancy), [375_000, none]);
    let copies = &capture.events[&Category::CudaMemcpyH2d];
    let kinds = [ColumnId::SrcMemoryKind, ColumnId::DstMemoryKind].map(|id| own(copies, 0, id));
    let kinds = kinds.map(|kind| kind.and_then(MemoryKind::from_number));
    assert_eq!(kinds, [MemoryKind::Pinned, MemoryKind::Device].map(Some));
    let operations = &capture.events[&Category::DeviceOp];
    assert_eq!(operations.text(ColumnId::HloCategory, 0), Some("loop fusion"));
    let work = [ColumnId::Flops, ColumnId::Bytes].map(|id| own(operations, 0, id));
    assert_eq!(work, [Some(77), Some(88)]);
    let tpu = capture.devices.iter().find(|device| !device.peak_flops.is_empty());
    assert_eq!(tpu.map(|device| device.peak_flops["any"]), Some(918_000_000_000_000));

    let series = &capture.counters[0];
    assert_eq!(
        (series.source.as_str(), series.device.as_str(), series.metric.as_str()),
        ("xplane", "gpu0", "SQ_WAVES")
    );
    assert_eq!(series.t_ns, [1000, 2000]);
    assert_eq!(series.value, [20.0, 30.0]);
    assert_eq!(counted(&capture), [("samples that are no numbers".to_owned(), 1)]);
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
    let what = "HLO modules with what looks like a secret".to_owned();
    assert!(counted(&capture).contains(&(what, 1)));
    let timeline = timeline_of(capture);
    let programs = timeline.capture.programs.iter();
    let programs = programs.map(|program| (program.name.as_str(), program.id, program.proto.as_slice()));
    let expected = [("jit_init", 7, &b"another"[..]), ("jit_step", 15, b"a message")];
    assert_eq!(programs.collect::<Vec<_>>(), expected);
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
        let mut programs = capture.programs.iter();
        let program = programs.find(|program| Some(program.id) == of(&at)).unwrap();
        assert_eq!(kernels.text(ColumnId::HloModule, at), Some(program.name.as_str()));
        assert!(kernels.text(ColumnId::HloOp, at).is_some());
    }
}
