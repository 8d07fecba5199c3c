//! Analyses of a capture of ten million events, each timed alone once the capture is read.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use flopwatch_analysis::{Input, InputCount, Request, ResultType, catalogue};
use flopwatch_model::{Capture, Category, ColumnId, Device, Event, Events, NameId, Row, RowId, Timeline, Track};
use flopwatch_report::Format;
use flopwatch_trace::ReadLimits;
use flopwatch_trace::transform::{TransformOptions, transform};
use serde_json::{Map, json};

use crate::{columns, report};

const DEVICES: u32 = 2;
const STREAMS: u32 = 2;
const THREADS: u32 = 4;
const KERNEL_NAMES: u32 = 300;
/// Events of one turn of a thread: an operator in a range that calls the API six times, for five
/// kernels and a copy.
const EVENTS_PER_TURN: u32 = 14;
/// Turns of a thread that are one step.
const TURNS_PER_STEP: u32 = 500;

/// Rows of the threads: of each its API calls, operators, ranges and steps. The streams follow.
const ROWS_OF_THREADS: u32 = THREADS * 4;

fn rows() -> Vec<Row> {
    let row = |track, device: Option<u32>, stream: Option<u64>, thread: Option<u64>| Row {
        capture: 0,
        machine: 0,
        process: 1,
        track,
        device,
        context: device.map(|_| 1),
        stream,
        thread,
        label: String::new(),
    };
    let tracks = [Track::CudaApi, Track::CpuOp, Track::Nvtx, Track::Annotation];
    let threads = (0..u64::from(THREADS)).flat_map(|thread| tracks.map(|track| (track, thread)));
    let threads = threads.map(|(track, thread)| row(track, None, None, Some(100 + thread)));
    let streams = (0..DEVICES * STREAMS).map(|stream| {
        let number = Some(u64::from(7 + stream % STREAMS));
        row(Track::GpuStream, Some(stream / STREAMS), number, None)
    });
    threads.chain(streams).collect()
}

/// The events of the loop.
struct Loop {
    kernels: Events,
    copies: Events,
    calls: Events,
    operators: Events,
    ranges: Events,
    steps: Events,
}

impl Loop {
    /// None yet, with the names of all.
    fn new(turns: u32) -> Self {
        let named = |category, names: Vec<String>| {
            let mut events = Events::new(category);
            events.names = names;
            events
        };
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let steps = 0..=turns / THREADS / TURNS_PER_STEP;
        let mut operators = named(
            Category::CpuOp,
            (0..60).map(|name| format!("aten::operator_{name}")).collect(),
        );
        operators.add_column(ColumnId::ForwardThread);
        Self {
            kernels: named(Category::CudaKernel, (0..KERNEL_NAMES).map(kernel_name).collect()),
            copies: named(Category::CudaMemcpyH2d, texts(&["[CUDA memcpy Host-to-Device]"])),
            calls: named(Category::CudaApi, texts(&["cudaLaunchKernel", "cudaMemcpyAsync"])),
            operators,
            ranges: named(
                Category::NvtxRange,
                texts(&["forward", "backward", "optimizer", "data"]),
            ),
            steps: named(
                Category::Step,
                steps.map(|step| format!("ProfilerStep#{step}")).collect(),
            ),
        }
    }

    fn into_capture(self) -> Capture {
        let mut capture = Capture {
            devices: (0..DEVICES).map(device).collect(),
            rows: rows(),
            ..Capture::default()
        };
        for (category, events) in [
            (Category::CudaKernel, self.kernels),
            (Category::CudaMemcpyH2d, self.copies),
            (Category::CudaApi, self.calls),
            (Category::CpuOp, self.operators),
            (Category::NvtxRange, self.ranges),
            (Category::Step, self.steps),
        ] {
            capture.captured.insert(category);
            capture.events.insert(category, events);
        }
        capture.duration_ns = capture
            .events
            .values()
            .filter_map(Events::last_end_ns)
            .max()
            .unwrap_or(0);
        capture
    }
}

/// A training loop as a profiler sees it: four threads launch onto two GPUs of two streams each, in
/// operators, ranges and steps.
fn training(events: u32) -> Result<Capture> {
    let mut random = fastrand::Rng::with_seed(29);
    let turns = events / EVENTS_PER_TURN;
    let mut made = Loop::new(turns);
    let mut now = vec![0_u64; usize::try_from(THREADS)?];
    let mut free = vec![0_u64; usize::try_from(DEVICES * STREAMS)?];
    let mut step_starts = vec![0_u64; usize::try_from(THREADS)?];
    let mut correlation = 0;
    let event = |start_ns, duration_ns, row, name, correlation| Event {
        start_ns,
        duration_ns,
        row: RowId::new(row),
        name: NameId::new(name),
        correlation,
    };
    for turn in 0..turns {
        let (thread, round) = (turn % THREADS, turn / THREADS);
        let rows = thread * 4;
        let stream = thread % (DEVICES * STREAMS);
        let busy = free.get_mut(usize::try_from(stream)?).context("a stream")?;
        let clock = now.get_mut(usize::try_from(thread)?).context("a thread")?;
        let begin = *clock;
        *clock += 1500;
        for call in 0..6_u32 {
            correlation += 1;
            let length = random.u64(2_000..6_000);
            let name = u32::from(call == 5);
            made.calls.push(event(*clock, length, rows, name, correlation), &[]);
            *clock += length + 300;
            let (start, row) = ((*busy + 900).max(*clock), ROWS_OF_THREADS + stream);
            let length = random.u64(1_500..9_000);
            if call == 5 {
                let bytes = random.u64(1..1 << 22);
                made.copies.push(event(start, length, row, 0, correlation), &[bytes]);
            } else {
                let name = random.u32(0..KERNEL_NAMES);
                let own = [64, 1, 1, 256, 1, 1, 40, 0, 4096];
                made.kernels.push(event(start, length, row, name, correlation), &own);
            }
            *busy = start + length;
        }
        *clock += 500;
        let inner = event(begin + 400, *clock - begin - 600, rows + 1, turn % 60, 0);
        made.operators.push(inner, &[u64::from(turn), u64::MAX]);
        made.ranges
            .push(event(begin, *clock - begin, rows + 2, turn % 4, 0), &[0, 0]);
        if round % TURNS_PER_STEP == TURNS_PER_STEP - 1 {
            let from = step_starts.get_mut(usize::try_from(thread)?).context("a thread")?;
            let step = round / TURNS_PER_STEP;
            let whole = event(*from, *clock - *from, rows + 3, step, 0);
            made.steps.push(whole, &[u64::from(step)]);
            *from = *clock;
        }
    }
    Ok(made.into_capture())
}

fn device(id: u32) -> Device {
    Device {
        id,
        name: "NVIDIA H100 80GB HBM3".to_owned(),
        ..Device::default()
    }
}

fn kernel_name(name: u32) -> String {
    match name % 30 {
        0 => format!("ncclDevKernel_AllReduce_Sum_bf16_RING_{name}(ncclDevKernelArgsStorage<4096ul>)"),
        1..6 => format!("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize{name}x128x64"),
        _ => format!("void at::native::vectorized_elementwise_kernel<4, Functor_{name}>(int, Functor_{name})"),
    }
}

/// Our side: every analysis of one capture, or the one that is named; `seconds` is their sum,
/// `each` has them apart. Given a file of raw columns, its events are the kernels.
pub(crate) fn analyze(input: Option<&Path>, events: u32, only: Option<&str>) -> Result<()> {
    let capture = match input {
        Some(input) => columns::kernels(input)?,
        None => training(events)?,
    };
    let timeline = transform(capture, TransformOptions::default());
    let mut each = Map::new();
    let clock = report::Clock::start()?;
    for definition in catalogue::CATALOGUE {
        let wanted = only.is_none_or(|only| only == definition.name);
        let is_json = matches!(definition.result, ResultType::Json { .. });
        if !wanted || !is_json || definition.inputs == InputCount::Two {
            continue;
        }
        let seconds = run(definition.name, &timeline)?;
        each.insert(definition.name.to_owned(), json!({ "seconds": seconds }));
    }
    let took = clock.stop()?;
    if each.is_empty() {
        bail!("there is no such analysis");
    }
    for (name, figures) in &mut each {
        let page = json!(html_bytes(name, &timeline)?);
        figures
            .as_object_mut()
            .context("figures")?
            .insert("html_bytes".to_owned(), page);
    }
    report::print(
        took,
        json!({
            "events": timeline.total_events(),
            "total_ns": columns::total(&timeline),
            "each": each,
        }),
    )
}

/// Seconds that the analysis takes, its result written and thrown away.
fn run(name: &str, timeline: &Timeline) -> Result<f64> {
    let request = Request::parse(name, &json!(null))?;
    let begun = Instant::now();
    request.run(&[Input::whole(timeline)], &mut std::io::sink())?;
    Ok(begun.elapsed().as_secs_f64())
}

/// Length of the analysis' page as a file for people.
fn html_bytes(name: &str, timeline: &Timeline) -> Result<usize> {
    let request = Request::parse(name, &json!(null))?.written_as(Format::Html)?;
    let mut page = Vec::new();
    request.run(&[Input::whole(timeline)], &mut page)?;
    Ok(page.len())
}

/// Our side of the bench beside nsys-ai: an export's findings, as `flopwatch diagnose` prints them.
pub(crate) fn diagnose(input: &Path) -> Result<()> {
    let clock = report::Clock::start()?;
    let capture = flopwatch_trace::read(input, &ReadLimits::default())?;
    let timeline = transform(capture, TransformOptions::default());
    let request = Request::parse("advice", &json!(null))?.written_as(Format::Text)?;
    let mut text = Vec::new();
    request.run(&[Input::whole(&timeline)], &mut text)?;
    let took = clock.stop()?;
    report::print(
        took,
        json!({ "text_bytes": text.len(), "events_read": timeline.total_events() }),
    )
}
