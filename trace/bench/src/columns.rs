//! Events as raw columns.

use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use flopwatch_model::{Capture, Category, Events, NameId, Row, RowId, Timeline, Track};
use flopwatch_trace::transform::{TransformOptions, transform};
use serde_json::json;

use crate::report;

const STREAMS: u32 = 16;
const NAMES: u32 = 400;
/// Bytes of an event's raw columns.
const EVENT_BYTES: usize = 24;

/// Writes `events` events: bursts on 16 streams, some of which overlap, with 400 names, in no
/// order.
pub(crate) fn make(out: &Path, events: u32) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(11);
    let mut clock = vec![0_u64; usize::try_from(STREAMS)?];
    let mut all = Vec::with_capacity(usize::try_from(events)?);
    for at in 0..events {
        let stream = random.u32(0..STREAMS);
        let now = clock.get_mut(usize::try_from(stream)?).context("a stream")?;
        let duration = if at % 97 == 0 {
            random.u64(20_000..400_000)
        } else {
            random.u64(900..12_000)
        };
        *now += if at % 1000 == 0 {
            3_000_000
        } else {
            random.u64(0..9_000)
        };
        all.push((*now, duration, stream, random.u32(0..NAMES)));
    }
    random.shuffle(&mut all);
    let mut file = BufWriter::new(std::fs::File::create(out)?);
    all.iter()
        .try_for_each(|event| file.write_all(&event.0.to_le_bytes()))?;
    all.iter()
        .try_for_each(|event| file.write_all(&event.1.to_le_bytes()))?;
    all.iter()
        .try_for_each(|event| file.write_all(&event.2.to_le_bytes()))?;
    all.iter()
        .try_for_each(|event| file.write_all(&event.3.to_le_bytes()))?;
    Ok(file.flush()?)
}

/// Reads raw columns into a capture; what is read is released column by column.
fn read(input: &Path) -> Result<Capture> {
    read_as(Category::CudaSync, Track::CudaSync, input)
}

/// Reads raw columns into a capture of kernels on streams.
pub(crate) fn kernels(input: &Path) -> Result<Capture> {
    let mut capture = read_as(Category::CudaKernel, Track::GpuStream, input)?;
    if let Some(events) = capture.events.get_mut(&Category::CudaKernel) {
        for column in &mut events.columns {
            let missing = column.id.missing();
            column.values.resize(events.start_ns.len(), missing);
        }
    }
    capture.captured.insert(Category::CudaKernel);
    Ok(capture)
}

/// Sum of the kernels' lengths in ns, by which the sides are held against each other.
pub(crate) fn total(timeline: &Timeline) -> u64 {
    let kernels = timeline.capture.events.get(&Category::CudaKernel);
    kernels.map_or(0, |kernels| kernels.duration_ns.iter().sum())
}

fn read_as(category: Category, track: Track, input: &Path) -> Result<Capture> {
    let mut file = std::fs::File::open(input)?;
    let count = usize::try_from(file.metadata()?.len())? / EVENT_BYTES;
    let mut events = Events::new(category);
    events.start_ns = words(&mut file, count)?;
    events.duration_ns = words(&mut file, count)?;
    events.row = RowId::from_numbers(halves(&mut file, count)?);
    events.name = NameId::from_numbers(halves(&mut file, count)?);
    events.lane = vec![0; count];
    events.correlation = vec![0; count];
    events.names = (0..NAMES).map(|name| format!("kernel_{name:03}")).collect();
    let row = |stream| Row {
        capture: 0,
        machine: 0,
        process: 1,
        track,
        device: Some(0),
        context: Some(1),
        stream: Some(u64::from(stream)),
        thread: None,
        label: String::new(),
    };
    Ok(Capture {
        events: [(category, events)].into(),
        rows: (0..STREAMS).map(row).collect(),
        ..Capture::default()
    })
}

const PIECE: usize = 1 << 16;

fn words(file: &mut std::fs::File, count: usize) -> Result<Vec<u64>> {
    let mut values = Vec::with_capacity(count);
    pieces(file, count, 8, |bytes| {
        values.extend(bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)));
    })?;
    Ok(values)
}

fn halves(file: &mut std::fs::File, count: usize) -> Result<Vec<u32>> {
    let mut values = Vec::with_capacity(count);
    pieces(file, count, 4, |bytes| {
        values.extend(bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)));
    })?;
    Ok(values)
}

fn pieces(file: &mut std::fs::File, count: usize, width: usize, mut take: impl FnMut(&[u8])) -> Result<()> {
    use std::io::Read as _;
    let mut buffer = vec![0; PIECE * width];
    let mut left = count * width;
    while left > 0 {
        let piece = buffer.get_mut(..left.min(PIECE * width)).context("a piece")?;
        file.read_exact(piece)?;
        take(piece);
        left -= piece.len();
    }
    Ok(())
}

/// Our side of the third bench.
pub(crate) fn transform_all(input: &Path) -> Result<()> {
    let capture = read(input)?;
    let clock = report::Clock::start()?;
    let timeline = transform(capture, TransformOptions::default());
    let took = clock.stop()?;
    let events = timeline.capture.events.get(&Category::CudaSync).context("events")?;
    let lod = timeline.lod.get(&Category::CudaSync).context("levels")?;
    let figures = timeline.figures.get(&Category::CudaSync).context("figures")?;
    report::print(
        took,
        json!({
            "events": events.len(),
            "raw_bytes": events.len() * EVENT_BYTES,
            "lanes": events.lane.iter().max().map(|lane| lane + 1),
            "lod_entries": lod.levels.iter().map(|level| level.row.len()).sum::<usize>(),
            "total_ns": u64::try_from(figures.iter().map(|figures| figures.total).sum::<u128>())?,
        }),
    )
}
