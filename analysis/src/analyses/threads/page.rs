//! How people read what threads did.

use flopwatch_report::page::{Bars, Lines, Page, Series, Table, Tile, Unit};

use super::ThreadsResult;

/// Threads in the chart of parts.
const MAX_CHARTED_THREADS: usize = 20;

pub(super) fn page(title: &str, about: &str, result: &ThreadsResult) -> Page {
    let mut page = Page::of(title, about, &result.not_captured);
    page.tiles([
        Tile::new("Threads", result.threads),
        Tile::figure("Window", Unit::Ns, result.window_ns),
        Tile::new("Avg working threads", result.mean_working_threads),
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
    page.table_unless_empty(
        Table::of("Functions of the operating system", &result.os_functions)
            .column("Function", |row| row.name.as_str())
            .column("Kind", |row| row.kind.name().replace('_', " "))
            .column("Calls", |row| row.calls)
            .figure("Total", Unit::Ns, |row| row.total_ns)
            .figure("Max", Unit::Ns, |row| row.max_ns),
    );
    page
}

fn bars(result: &ThreadsResult) -> impl Into<Bars> {
    let threads = result.rows.iter().take(MAX_CHARTED_THREADS);
    Bars::of("Threads that worked longest", Unit::Ns, threads, |row| {
        format!("process {} thread {}", row.process, row.thread)
    })
    .series("working", |row| row.working_ns)
    .series("waiting", |row| row.waiting_ns)
    .series("nothing recorded", |row| row.unrecorded_ns)
    .stacked()
}

fn rows(result: &ThreadsResult) -> Table {
    const TRACKS: [(&str, &str); 9] = [
        ("cpu_running", "On a CPU"),
        ("cuda_api", "CUDA API"),
        ("library", "Libraries"),
        ("nvtx", "NVTX"),
        ("os_runtime", "OS runtime"),
        ("cpu_op", "Operators"),
        ("annotation", "Annotations"),
        ("python", "Python"),
        ("overhead", "Profiler"),
    ];
    let mut table = Table::of("Threads", &result.rows)
        .about("Working, waiting and nothing recorded add up to the window. Tracks overlap each other.")
        .left_out(result.left_out)
        .column("Process", |row| row.process)
        .column("Thread", |row| row.thread)
        .column("Name", |row| row.label.as_str())
        .figure("Working", Unit::Ns, |row| row.working_ns)
        .figure("Working share", Unit::Ratio, |row| row.working_ratio)
        .figure("Waiting", Unit::Ns, |row| row.waiting_ns)
        .figure("for the OS", Unit::Ns, |row| row.os_waiting_ns)
        .figure("for the GPU", Unit::Ns, |row| row.gpu_waiting_ns)
        .figure("Nothing recorded", Unit::Ns, |row| row.unrecorded_ns);
    for (name, title) in TRACKS {
        table = table.figure(title, Unit::Ns, |row| {
            let track = row.tracks.iter().find(|track| track.track == name);
            track.map(|track| track.busy_ns)
        });
    }
    table.build()
}
