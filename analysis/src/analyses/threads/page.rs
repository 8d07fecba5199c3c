//! How people read what threads did.

use flopwatch_model::approximate;
use flopwatch_report::page::{Bars, Lines, Page, Series, Table, Unit};

use super::{ThreadRow, ThreadsResult};

/// Threads in the chart of parts.
const CHARTED: usize = 20;

pub(super) fn page(about: &str, result: &ThreadsResult) -> Page {
    let mut page = Page::new("Threads of the host", about);
    page.not_captured.clone_from(&result.not_captured);
    page.tiles([
        ("Threads", result.threads.into(), Unit::None),
        ("Window", result.window_ns.into(), Unit::Ns),
        ("Working on average", result.mean_working_threads.into(), Unit::None),
    ]);
    page.bars(bars(result));
    page.table(rows(result));
    page.lines(Lines {
        title: "Working, over time".to_owned(),
        unit: Unit::Ratio,
        times_ns: result.bin_starts_ns.clone(),
        series: result
            .utilisation
            .iter()
            .map(|one| Series {
                name: format!("process {} thread {}", one.process, one.thread),
                values: one.working_ratio.clone(),
            })
            .collect(),
    });
    let mut functions = Table::new(
        "Functions of the operating system",
        &[
            ("Function", Unit::None),
            ("Kind", Unit::None),
            ("Calls", Unit::None),
            ("Total", Unit::Ns),
            ("Longest", Unit::Ns),
        ],
    );
    for row in &result.os_functions {
        functions.push([
            row.name.as_str().into(),
            row.kind.name().replace('_', " ").into(),
            row.calls.into(),
            row.total_ns.into(),
            row.max_ns.into(),
        ]);
    }
    if !result.os_functions.is_empty() {
        page.table(functions);
    }
    page
}

fn bars(result: &ThreadsResult) -> Bars {
    let threads = || result.rows.iter().take(CHARTED);
    let part = |name: &str, of: fn(&ThreadRow) -> u64| Series {
        name: name.to_owned(),
        values: threads().map(|row| Some(approximate(of(row).into()))).collect(),
    };
    Bars {
        title: "Threads that worked longest".to_owned(),
        unit: Unit::Ns,
        stacked: true,
        labels: threads()
            .map(|row| format!("process {} thread {}", row.process, row.thread))
            .collect(),
        series: vec![
            part("working", |row| row.working_ns),
            part("waiting", |row| row.waiting_ns),
            part("nothing recorded", |row| row.unrecorded_ns),
        ],
    }
}

fn rows(result: &ThreadsResult) -> Table {
    const TRACKS: [(&str, &str); 7] = [
        ("cuda_api", "CUDA API"),
        ("nvtx", "NVTX"),
        ("os_runtime", "OS runtime"),
        ("cpu_op", "Operators"),
        ("annotation", "Annotations"),
        ("python", "Python"),
        ("overhead", "Profiler"),
    ];
    let mut columns = vec![
        ("Process", Unit::None),
        ("Thread", Unit::None),
        ("Name", Unit::None),
        ("Working", Unit::Ns),
        ("Working share", Unit::Ratio),
        ("Waiting", Unit::Ns),
        ("for the OS", Unit::Ns),
        ("for the GPU", Unit::Ns),
        ("Nothing recorded", Unit::Ns),
    ];
    columns.extend(TRACKS.map(|(_, title)| (title, Unit::Ns)));
    let mut table = Table::new("Threads", &columns);
    "Working, waiting and nothing recorded add up to the window. Tracks overlap each other."
        .clone_into(&mut table.about);
    table.left_out = result.left_out;
    for row in &result.rows {
        let of_tracks = TRACKS.iter().map(|(name, _)| {
            let track = row.tracks.iter().find(|track| track.track == *name);
            track.map(|track| track.busy_ns).into()
        });
        let cells = [
            row.process.into(),
            row.thread.into(),
            row.label.as_str().into(),
            row.working_ns.into(),
            row.working_ratio.into(),
            row.waiting_ns.into(),
            row.os_waiting_ns.into(),
            row.gpu_waiting_ns.into(),
            row.unrecorded_ns.into(),
        ];
        table.push(cells.into_iter().chain(of_tracks));
    }
    table
}
