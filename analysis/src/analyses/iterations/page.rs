//! How people read iterations.

use flopwatch_measures::iteration::IterationSource;
use flopwatch_report::page::{Bars, Page, Table, Tile, TimelineLocation, Unit};

use super::{Iterations, IterationsResult};
use crate::definition::Analysis;

/// Iterations that are drawn as bars.
const MAX_BARS: usize = 60;

pub(super) fn of(result: &IterationsResult) -> Page {
    let mut page = Page::of(Iterations::TITLE, Iterations::ABOUT, &result.not_captured);
    let Some(source) = result.source else { return page };
    page.text("Where they come from", provenance(result, source));
    let parts = &result.parts;
    let median = result.time.map(|time| time.median_ns);
    page.tiles([
        Tile::new("Iterations", result.iterations),
        Tile::new("Warm-up", result.warm_up_iterations),
        Tile::figure("Med", Unit::Ns, median),
        Tile::figure("95th percentile", Unit::Ns, result.time.map(|time| time.p95_ns)),
        Tile::figure("Max", Unit::Ns, result.time.map(|time| time.max_ns)),
        Tile::figure("Med GPU span", Unit::Ns, result.gpu_span.map(|span| span.median_ns)),
        Tile::figure(
            "GPU idle inside",
            Unit::Ratio,
            flopwatch_model::ratio(parts.idle_ns, parts.window_ns),
        ),
    ]);
    if parts.window_ns > 0 {
        page.bars(bars(result));
    }
    page.table(iterations(result));
    page.table_unless_empty(bubbles(result));
    for detail in &result.details {
        page.table(
            Table::of(
                &format!("Iteration {} of row {}", detail.number, detail.row),
                &detail.kernels,
            )
            .about(format!(
                "It took {:.2} times the median of its loop.",
                detail.of_median_ratio
            ))
            .left_out(detail.left_out)
            .column("Name", |kernel| kernel.name.as_str())
            .column("Class", |kernel| kernel.class.name())
            .column("Instances", |kernel| kernel.instances)
            .figure("Total", Unit::Ns, |kernel| kernel.total_ns)
            .figure("Max", Unit::Ns, |kernel| kernel.max_ns)
            .at(|kernel| TimelineLocation::new(kernel.start_ns, kernel.end_ns, None)),
        );
    }
    page
}

fn provenance(result: &IterationsResult, source: IterationSource) -> String {
    let name = &result.name;
    let mut text = match source {
        IterationSource::Step => format!("The profiler marked steps: `{name}`."),
        IterationSource::DeviceStep => format!("The profiler derived the devices' line `{name}`."),
        IterationSource::Range => format!("Each range `{name}` is an iteration."),
        IterationSource::RangeToNext => format!("Each iteration begins with the range `{name}`."),
        IterationSource::KernelPeriod => "The sequence of kernels repeats.".to_owned(),
    };
    let assigned = result.assigned;
    let all = assigned.by_thread + assigned.by_process + assigned.by_time + assigned.outside;
    let assignment = format!(
        " Confidence {:.2}. Of {all} pieces of GPU work {} belong to an iteration by a launch of its thread, {} by a launch of another thread of its process, {} by their time, {} to none.",
        result.confidence_ratio, assigned.by_thread, assigned.by_process, assigned.by_time, assigned.outside
    );
    text.push_str(&assignment);
    for caution in &result.cautions {
        text.push(' ');
        text.push_str(caution);
    }
    text
}

fn bars(result: &IterationsResult) -> impl Into<Bars> {
    let drawn = || result.rows.iter().take(MAX_BARS);
    Bars::of("GPU time of iterations", Unit::Ns, drawn(), |row| {
        if result.loops < 2 {
            row.number.to_string()
        } else if drawn().any(|other| other.process == row.process && other.row != row.row) {
            format!("process {} row {}: {}", row.process, row.row, row.number)
        } else {
            format!("process {}: {}", row.process, row.number)
        }
    })
    .series("Compute", |row| row.parts.compute_ns)
    .series("Exposed communication", |row| row.parts.exposed_communication_ns)
    .series("Exposed copies", |row| row.parts.exposed_memory_ns)
    .series("Idle", |row| row.parts.idle_ns)
    .stacked()
}

fn iterations(result: &IterationsResult) -> impl Into<Table> {
    Table::of("Iterations", &result.rows)
        .left_out(result.left_out)
        .column("Number", |row| row.number)
        .column("Process", |row| row.process)
        .column("Name", |row| row.name.as_str())
        .figure("Time", Unit::Ns, |row| row.time_ns)
        .figure("Start to next start", Unit::Ns, |row| row.period_ns)
        .figure("GPU span", Unit::Ns, |row| row.parts.window_ns)
        .figure("Compute", Unit::Ns, |row| row.parts.compute_ns)
        .figure("Exposed communication", Unit::Ns, |row| {
            row.parts.exposed_communication_ns
        })
        .figure("Exposed copies", Unit::Ns, |row| row.parts.exposed_memory_ns)
        .figure("Idle", Unit::Ns, |row| row.parts.idle_ns)
        .figure("GPU gap before", Unit::Ns, |row| row.gpu_gap_before_ns)
        .column("Kernels", |row| row.kernels)
        .column("Whole graphs", |row| row.graphs)
        .column("Note", |row| match (row.warm_up, row.outlier) {
            (true, _) => "warm-up",
            (_, true) => "outlier",
            _ => "",
        })
        .at(|row| TimelineLocation::new(row.start_ns, row.end_ns, Some(row.row)))
}

fn bubbles(result: &IterationsResult) -> impl Into<Table> {
    Table::of("Pipeline bubbles", &result.bubbles)
        .about("A bubble is time inside an iteration in which a device does nothing while another one works.")
        .column("Machine", |of| of.machine)
        .column("Device", |of| of.device)
        .figure("Iterations", Unit::Ns, |of| of.window_ns)
        .figure("Busy", Unit::Ns, |of| of.busy_ns)
        .figure("Waiting for others", Unit::Ns, |of| of.bubble_ns)
        .figure("All idle", Unit::Ns, |of| of.all_idle_ns)
        .figure("Bubble", Unit::Ratio, |of| of.bubble_ratio)
}
