//! Analyses of a capture of ten million events, each timed alone once the capture is read.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use flopwatch_analysis::{Input, InputCount, Request, ResultType, catalogue};
use flopwatch_trace::model::{Capture, Category, ColumnId, Device, Event, Events, Row, Timeline, Track};
use flopwatch_trace::transform::{TransformOptions, transform};
use serde_json::{Map, json};

use crate::{columns, report};

const DEVICES: u32 = 2;
const STREAMS: u32 = 2;
const THREADS: u32 = 4;
const KERNEL_NAMES: u32 = 300;
/// Events of one turn of a thread: an operator in a range that calls the API six times, for five kernels and a copy.
const TURN: u32 = 14;
/// Turns of a thread that are one step.
const STEP: u32 = 500;

/// A training loop as a profiler sees it: four threads launch onto two GPUs of two streams each, in operators, ranges and steps.
fn training(events: u32) -> Result<Capture> {
    let mut random = fastrand::Rng::with_seed(29);
    let mut capture = Capture {
        devices: (0..DEVICES).map(device).collect(),
        ..Capture::default()
    };
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
    for thread in 0..u64::from(THREADS) {
        for track in [Track::CudaApi, Track::CpuOp, Track::Nvtx, Track::Annotation] {
            capture.rows.push(row(track, None, None, Some(100 + thread)));
        }
    }
    let first_stream = u32::try_from(capture.rows.len())?;
    for stream in 0..DEVICES * STREAMS {
        let number = Some(u64::from(7 + stream % STREAMS));
        capture
            .rows
            .push(row(Track::GpuStream, Some(stream / STREAMS), number, None));
    }
    let mut of = |category| {
        let mut events = Events::new(category);
        if category == Category::CpuOp {
            events.add_column(ColumnId::ForwardThread);
        }
        events
    };
    let [mut kernels, mut copies, mut calls, mut operators, mut ranges, mut steps] = [
        Category::CudaKernel,
        Category::CudaMemcpyH2d,
        Category::CudaApi,
        Category::CpuOp,
        Category::NvtxRange,
        Category::Step,
    ]
    .map(&mut of);
    kernels.names = (0..KERNEL_NAMES).map(kernel_name).collect();
    calls.names = ["cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize"]
        .map(str::to_owned)
        .into();
    copies.names = vec!["[CUDA memcpy Host-to-Device]".to_owned()];
    operators.names = (0..60).map(|name| format!("aten::operator_{name}")).collect();
    ranges.names = ["forward", "backward", "optimizer", "data"].map(str::to_owned).into();
    let turns = events / TURN;
    steps.names = (0..=turns / THREADS / STEP)
        .map(|step| format!("ProfilerStep#{step}"))
        .collect();
    let mut now = vec![0_u64; usize::try_from(THREADS)?];
    let mut free = vec![0_u64; usize::try_from(DEVICES * STREAMS)?];
    let mut begun = vec![0_u64; usize::try_from(THREADS)?];
    let mut correlation = 0;
    for turn in 0..turns {
        let (thread, round) = (turn % THREADS, turn / THREADS);
        let clock = now.get_mut(usize::try_from(thread)?).context("a thread")?;
        let begin = *clock;
        let event = |start_ns, duration_ns, row, name, correlation| Event {
            start_ns,
            duration_ns,
            row,
            name,
            correlation,
        };
        let rows = thread * 4;
        *clock += 1500;
        for call in 0..6_u32 {
            correlation += 1;
            let length = random.u64(2_000..6_000);
            calls.push(event(*clock, length, rows, u32::from(call == 5), correlation), &[]);
            *clock += length + 300;
            let stream = thread % (DEVICES * STREAMS);
            let busy = free.get_mut(usize::try_from(stream)?).context("a stream")?;
            let start = (*busy + 900).max(*clock);
            let row = first_stream + stream;
            if call == 5 {
                let (length, bytes) = (random.u64(1_000..9_000), random.u64(1..1 << 22));
                copies.push(event(start, length, row, 0, correlation), &[bytes]);
                *busy = start + length;
            } else {
                let (length, name) = (random.u64(1_500..9_000), random.u32(0..KERNEL_NAMES));
                let grid = [64, 1, 1, 256, 1, 1, 40, 0, 4096];
                kernels.push(event(start, length, row, name, correlation), &grid);
                *busy = start + length;
            }
        }
        *clock += 500;
        operators.push(
            event(begin + 400, *clock - begin - 600, rows + 1, turn % 60, 0),
            &[u64::from(turn), u64::MAX],
        );
        ranges.push(event(begin, *clock - begin, rows + 2, turn % 4, 0), &[0, 0]);
        if round % STEP == STEP - 1 {
            let from = begun.get_mut(usize::try_from(thread)?).context("a thread")?;
            let step = round / STEP;
            steps.push(event(*from, *clock - *from, rows + 3, step, 0), &[u64::from(step)]);
            *from = *clock;
        }
    }
    for (category, events) in [
        (Category::CudaKernel, kernels),
        (Category::CudaMemcpyH2d, copies),
        (Category::CudaApi, calls),
        (Category::CpuOp, operators),
        (Category::NvtxRange, ranges),
        (Category::Step, steps),
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
    Ok(capture)
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

/// Our side: every analysis of one capture, or the one that is named; `seconds` is their sum, `each` has them apart. Given a file of raw
/// columns, its events are the kernels.
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
        each.insert(definition.name.to_owned(), json!(run(definition.name, &timeline)?));
    }
    let took = clock.stop()?;
    if each.is_empty() {
        bail!("there is no such analysis");
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
