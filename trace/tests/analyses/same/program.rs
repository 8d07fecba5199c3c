//! Random programs: two processes of two threads each, whose ranges nest, and whose calls launch
//! work on two streams of a GPU for each process. Many things happen at one time.

use flopwatch_model::{Allocation, Capture, Category, Event, Events, NameId, Row, RowId, Track};
use proptest::collection::vec;
use proptest::prelude::*;

/// What a call launches.
const WORK: [(Category, &str); 4] = [
    (Category::CudaKernel, "gemm"),
    (Category::CudaKernel, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
    (Category::CudaMemcpyH2d, "[CUDA memcpy Host-to-Device]"),
    (Category::CudaMemset, "[CUDA memset]"),
];
const RANGES: [(Category, Track, &str); 3] = [
    (Category::CpuOp, Track::CpuOp, "aten::mm"),
    (Category::NvtxRange, Track::Nvtx, "forward"),
    (Category::Annotation, Track::Annotation, "optimizer"),
];
/// Number of the first process; its threads and the other process have those behind it.
const FIRST_PROCESS: u32 = 40;
/// Number of the first stream.
const FIRST_STREAM: u64 = 7;

/// A call and the work that it launches.
#[derive(Debug, Clone, Copy)]
struct Launch {
    process: u32,
    thread: u64,
    stream: u64,
    work: usize,
    start: u64,
    call: u64,
    wait: u64,
    length: u64,
    is_recorded: bool,
}

/// A range of a thread: a whole node of a binary tree over 256 ns.
#[derive(Debug, Clone, Copy)]
struct Range {
    process: u32,
    thread: u64,
    kind: usize,
    level: u32,
    at: u64,
}

/// A program, which launches something; all of it ends within 512 ns.
#[derive(Debug, Clone)]
pub(super) struct Program {
    launches: Vec<Launch>,
    ranges: Vec<Range>,
    /// Times, and bytes that are given out then and taken back 20 ns later.
    allocations: Vec<(u64, i64)>,
}

pub(super) fn program() -> impl Strategy<Value = Program> {
    let place = || (0_u32..2, 0_u64..2);
    let times = (0_u64..200, 1_u64..6, 0_u64..30, 1_u64..30);
    let launch = (place(), 0_u64..2, 0..WORK.len(), times, any::<bool>());
    let launch = launch.prop_map(|((process, thread), stream, work, times, is_recorded)| {
        let (start, call, wait, length) = times;
        Launch {
            process,
            thread,
            stream,
            work,
            start,
            call,
            wait,
            length,
            is_recorded,
        }
    });
    let range = (place(), 0..RANGES.len(), 0_u32..5, 0_u64..256);
    let range = range.prop_map(|((process, thread), kind, level, at)| Range {
        process,
        thread,
        kind,
        level,
        at,
    });
    let parts = (
        vec(launch, 1..20),
        vec(range, 0..20),
        vec((0_u64..200, 1_i64..100), 0..6),
    );
    parts.prop_map(|(launches, ranges, allocations)| Program {
        launches,
        ranges,
        allocations,
    })
}

/// A capture of programs that run one after the other, each from its time on.
pub(super) fn capture_of(programs: &[(&Program, u64)]) -> Capture {
    let mut capture = Capture::default();
    let mut correlation = 0;
    for (program, begins) in programs {
        for launch in &program.launches {
            correlation += 1;
            add_launch(&mut capture, launch, *begins, correlation);
        }
        for range in &program.ranges {
            let (category, track, name) = RANGES[range.kind];
            let row = row_of(&mut capture, thread(range.process, range.thread, track));
            let width = 256_u64 >> range.level;
            let time = (begins + range.at / width * width, width);
            add(&mut capture, category, name, (row, time, 0), &[]);
        }
        for (time, bytes) in &program.allocations {
            for (t_ns, bytes) in [(*time, *bytes), (time + 20, -bytes)] {
                capture.allocations.push(Allocation {
                    t_ns: begins + t_ns,
                    process: FIRST_PROCESS,
                    device: Some(0),
                    address: begins + time + 1,
                    bytes,
                    ..Allocation::default()
                });
            }
        }
    }
    capture.captured.extend(RANGES.map(|(category, ..)| category));
    capture.captured.extend(WORK.map(|(category, _)| category));
    capture.captured.insert(Category::CudaApi);
    capture
}

fn add_launch(capture: &mut Capture, launch: &Launch, begins: u64, correlation: u32) {
    let (category, name) = WORK[launch.work];
    let start = begins + launch.start;
    if launch.is_recorded {
        let row = row_of(capture, thread(launch.process, launch.thread, Track::CudaApi));
        let time = (start, launch.call);
        add(
            capture,
            Category::CudaApi,
            "cudaLaunchKernel",
            (row, time, correlation),
            &[],
        );
    }
    let stream = Row {
        device: Some(launch.process),
        context: Some(1),
        stream: Some(FIRST_STREAM + launch.stream),
        ..row(launch.process, Track::GpuStream)
    };
    let row = row_of(capture, stream);
    let time = (start + launch.call + launch.wait, launch.length);
    // The first column of a copy and of a memset is its size; of kernels nothing is said.
    let own: &[u64] = if category == Category::CudaKernel { &[] } else { &[4096] };
    add(capture, category, name, (row, time, correlation), own);
}

/// Adds an event: its row, its start and length, and its correlation.
fn add(capture: &mut Capture, category: Category, name: &str, event: (RowId, (u64, u64), u32), own: &[u64]) {
    let events = capture.events.entry(category).or_insert_with(|| Events::new(category));
    let known = events.names.iter().position(|known| known == name);
    let place = known.unwrap_or_else(|| {
        events.names.push(name.to_owned());
        events.names.len() - 1
    });
    let (row, (start_ns, duration_ns), correlation) = event;
    let event = Event {
        start_ns,
        duration_ns,
        row,
        name: NameId::from_index(place).unwrap(),
        correlation,
    };
    events.push(event, own);
}

fn row(process: u32, track: Track) -> Row {
    Row::of(FIRST_PROCESS + process, track)
}

fn thread(process: u32, thread: u64, track: Track) -> Row {
    let own = row(process, track);
    Row {
        thread: Some(u64::from(own.process) * 10 + thread),
        ..own
    }
}

/// The id of a row, which is added where it is not there.
fn row_of(capture: &mut Capture, row: Row) -> RowId {
    let known = capture.rows.iter().position(|known| *known == row);
    let place = known.unwrap_or_else(|| {
        capture.rows.push(row);
        capture.rows.len() - 1
    });
    RowId::from_index(place).unwrap()
}
