//! The same events through both engines: what they give, and how long they take.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use flopwatch_model::{Capture, Category, Event, Events, NameId, Row, RowId, Track};
use flopwatch_trace::timeline_file;
use flopwatch_trace::transform::choice::DevicePreference;
use flopwatch_trace::transform::device::{on_gpu, sample, transform_on};
use flopwatch_trace::transform::engine::{Engine, Input, Output};
use flopwatch_trace::transform::{Cpu, TransformOptions};

use crate::report::{AutoResult, Compared, FilesResult, SizeResult};

/// Repetitions on the GPU after the first run, which loads the kernels.
const REPETITIONS: usize = 3;

/// Both engines on so many events; the GPU's times hold every copy to and from it.
pub(crate) fn check(events: u64, gpu: bool) -> Result<SizeResult> {
    let mut result = SizeResult {
        events,
        ..SizeResult::default()
    };
    let shapes: [(&str, Input); 2] = [
        ("kernels of eight streams", sample(events)),
        ("three categories", mixed(events)),
    ];
    for (shape, input) in shapes {
        let begin = Instant::now();
        let expected = Cpu.run(input.clone());
        let cpu = begin.elapsed();
        let mut gpu_times = Vec::new();
        let mut compared = Compared::Not;
        if gpu {
            let first = Instant::now();
            let made = on_gpu(&input).context("the GPU's engine")?;
            let first = first.elapsed();
            compared = differs(&made, &expected).map_or(Compared::Equal, Compared::Different);
            for _ in 0..REPETITIONS {
                let begin = Instant::now();
                drop(on_gpu(&input)?);
                gpu_times.push(begin.elapsed().as_secs_f64());
            }
            result.gpu_first_seconds = result.gpu_first_seconds.or(Some(first.as_secs_f64()));
        }
        result.add(shape, cpu, gpu_times, compared);
    }
    Ok(result)
}

/// Where two outcomes differ; nothing when they are equal.
fn differs(made: &Output, expected: &Output) -> Option<String> {
    if made == expected {
        return None;
    }
    for (category, expected) in &expected.categories {
        let Some(made) = made.categories.get(category) else {
            return Some(format!("{category:?} is missing"));
        };
        let parts = [
            ("order", made.order == expected.order),
            ("columns", made.columns == expected.columns),
            ("lanes", made.lane == expected.lane),
            ("levels of detail", made.lod == expected.lod),
            ("figures", made.figures == expected.figures),
        ];
        if let Some((part, _)) = parts.iter().find(|(_, same)| !same) {
            return Some(format!("{category:?}: {part}"));
        }
    }
    Some("categories that were not in the input".to_owned())
}

/// The sample with a third of its events in each of three categories that share rows, so that lanes
/// cross categories and more events overlap.
fn mixed(events: u64) -> Input {
    let mut input = sample(events / 3);
    let first = input.categories.values().next().cloned().unwrap_or_default();
    for (category, shift) in [(Category::CudaMemcpyH2d, 313), (Category::CudaMemset, 4_211)] {
        let mut columns = first.clone();
        for start in &mut columns.start_ns {
            *start += shift;
        }
        input.categories.insert(category, columns);
    }
    input
}

/// A capture of the sample's events, as a reader would give it.
fn capture(events: u64) -> Capture {
    let input = sample(events);
    let mut categories = BTreeMap::new();
    for (category, columns) in input.categories {
        let mut table = Events::new(category);
        table.names = (0..columns.names).map(|name| format!("kernel_{name}")).collect();
        let times = columns.start_ns.iter().zip(&columns.duration_ns);
        let places = columns.row.iter().zip(&columns.name);
        for (at, ((start_ns, duration_ns), (row, name))) in (1_u32..).zip(times.zip(places)) {
            let event = Event {
                start_ns: *start_ns,
                duration_ns: *duration_ns,
                row: RowId::new(*row),
                name: NameId::new(*name),
                correlation: at,
            };
            table.push(event, &[u64::from(at % 1024), 1, 1, 256, 1, 1, 32]);
        }
        categories.insert(category, table);
    }
    let row = |stream: u32| Row {
        capture: 0,
        machine: 0,
        process: 1,
        track: Track::GpuStream,
        device: Some(0),
        context: Some(1),
        stream: Some(u64::from(stream)),
        thread: None,
        label: String::new(),
    };
    Capture {
        events: categories,
        rows: (0..input.rows).map(row).collect(),
        ..Capture::default()
    }
}

/// The timeline files of both, byte by byte.
pub(crate) fn files(events: u64, gpu: bool) -> Result<FilesResult> {
    let folder = tempfile::tempdir()?;
    let write = |wanted: DevicePreference, path: &Path| -> Result<Vec<u8>> {
        let options = TransformOptions {
            session_id: "gpucheck".to_owned(),
        };
        let (timeline, _) = transform_on(wanted, capture(events), options)?;
        timeline_file::write(&timeline, path)?;
        Ok(std::fs::read(path)?)
    };
    let by_cpu = write(DevicePreference::Cpu, &folder.path().join("cpu.h5"))?;
    let equal = if gpu {
        Some(write(DevicePreference::Gpu, &folder.path().join("gpu.h5"))? == by_cpu)
    } else {
        None
    };
    Ok(FilesResult {
        events,
        bytes: u64::try_from(by_cpu.len())?,
        equal,
    })
}

/// What `Auto` picks for so many events, and why.
pub(crate) fn auto(events: u64) -> Result<AutoResult> {
    let options = TransformOptions {
        session_id: "gpucheck".to_owned(),
    };
    let (_, pick) = transform_on(DevicePreference::Auto, capture(events.min(20_000_000)), options)?;
    Ok(AutoResult {
        events: events.min(20_000_000),
        device: format!("{:?}", pick.device),
        reason: pick.reason.to_string(),
    })
}

/// One run on the GPU, for a profiler.
pub(crate) fn on_gpu_once(events: u64) -> Result<()> {
    drop(on_gpu(&sample(events))?);
    Ok(())
}

/// Seconds of a duration, for the results.
pub(crate) fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
