//! How people read iterations.

use flopwatch_measures::iteration::IterationSource;
use flopwatch_model::approximate;
use flopwatch_report::page::{Bars, Page, Place, Series, Table, Unit};

use super::{Iterations, IterationsResult};
use crate::definition::Analysis;

/// Iterations that are drawn as bars.
const DRAWN: usize = 60;

pub(super) fn of(result: &IterationsResult) -> Page {
    let mut page = Page::new("Iterations", Iterations::ABOUT);
    page.not_captured.clone_from(&result.not_captured);
    let Some(source) = result.source else { return page };
    page.text("Where they come from", provenance(result, source));
    let parts = &result.parts;
    let median = result.time.map(|time| time.median_ns);
    page.tiles([
        ("Iterations", result.iterations.into(), Unit::None),
        ("Warm-up", result.warm_up_iterations.into(), Unit::None),
        ("Median", median.into(), Unit::Ns),
        ("95th percentile", result.time.map(|time| time.p95_ns).into(), Unit::Ns),
        ("Longest", result.time.map(|time| time.max_ns).into(), Unit::Ns),
        (
            "Median GPU span",
            result.gpu_span.map(|span| span.median_ns).into(),
            Unit::Ns,
        ),
        (
            "GPU idle inside",
            flopwatch_model::ratio(parts.idle_ns, parts.window_ns).into(),
            Unit::Ratio,
        ),
    ]);
    if parts.window_ns > 0 {
        page.bars(bars(result));
    }
    page.table(iterations(result));
    if !result.bubbles.is_empty() {
        page.table(bubbles(result));
    }
    for detail in &result.details {
        let columns = [
            ("Name", Unit::None),
            ("Class", Unit::None),
            ("Instances", Unit::None),
            ("Total", Unit::Ns),
            ("Longest", Unit::Ns),
        ];
        let mut table = Table::new(&format!("Iteration {} of row {}", detail.number, detail.row), &columns);
        table.about = format!("It took {:.2} times the median of its loop.", detail.of_median_ratio);
        table.left_out = detail.left_out;
        for kernel in &detail.kernels {
            let cells = [
                kernel.name.as_str().into(),
                kernel.class.name().into(),
                kernel.instances.into(),
                kernel.total_ns.into(),
                kernel.max_ns.into(),
            ];
            table.push_at(place(kernel.start_ns, kernel.end_ns, None), cells);
        }
        page.table(table);
    }
    page
}

fn place(start_ns: u64, end_ns: u64, row: Option<u32>) -> Place {
    Place {
        input: 0,
        start_ns,
        end_ns,
        row,
    }
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

fn bars(result: &IterationsResult) -> Bars {
    let drawn = || result.rows.iter().take(DRAWN);
    let part = |name: &str, of: fn(&super::IterationRow) -> u64| Series {
        name: name.to_owned(),
        values: drawn().map(|row| Some(approximate(of(row).into()))).collect(),
    };
    Bars {
        title: "GPU time of iterations".to_owned(),
        unit: Unit::Ns,
        stacked: true,
        labels: drawn()
            .map(|row| {
                if result.loops < 2 {
                    row.number.to_string()
                } else if drawn().any(|other| other.process == row.process && other.row != row.row) {
                    format!("process {} row {}: {}", row.process, row.row, row.number)
                } else {
                    format!("process {}: {}", row.process, row.number)
                }
            })
            .collect(),
        series: vec![
            part("Compute", |row| row.parts.compute_ns),
            part("Exposed communication", |row| row.parts.exposed_communication_ns),
            part("Exposed copies", |row| row.parts.exposed_memory_ns),
            part("Idle", |row| row.parts.idle_ns),
        ],
    }
}

fn iterations(result: &IterationsResult) -> Table {
    let columns = [
        ("Number", Unit::None),
        ("Process", Unit::None),
        ("Name", Unit::None),
        ("Time", Unit::Ns),
        ("Start to next start", Unit::Ns),
        ("GPU span", Unit::Ns),
        ("Compute", Unit::Ns),
        ("Exposed communication", Unit::Ns),
        ("Exposed copies", Unit::Ns),
        ("Idle", Unit::Ns),
        ("GPU gap before", Unit::Ns),
        ("Kernels", Unit::None),
        ("Whole graphs", Unit::None),
        ("Note", Unit::None),
    ];
    let mut table = Table::new("Iterations", &columns);
    table.left_out = result.left_out;
    for row in &result.rows {
        let note = match (row.warm_up, row.outlier) {
            (true, _) => "warm-up",
            (_, true) => "outlier",
            _ => "",
        };
        let cells = [
            row.number.into(),
            row.process.into(),
            row.name.as_str().into(),
            row.time_ns.into(),
            row.period_ns.into(),
            row.parts.window_ns.into(),
            row.parts.compute_ns.into(),
            row.parts.exposed_communication_ns.into(),
            row.parts.exposed_memory_ns.into(),
            row.parts.idle_ns.into(),
            row.gpu_gap_before_ns.into(),
            row.kernels.into(),
            row.graphs.into(),
            note.into(),
        ];
        table.push_at(place(row.start_ns, row.end_ns, Some(row.row)), cells);
    }
    table
}

fn bubbles(result: &IterationsResult) -> Table {
    let columns = [
        ("Machine", Unit::None),
        ("Device", Unit::None),
        ("Iterations", Unit::Ns),
        ("Busy", Unit::Ns),
        ("Waiting for others", Unit::Ns),
        ("All idle", Unit::Ns),
        ("Bubble", Unit::Ratio),
    ];
    let mut table = Table::new("Pipeline bubbles", &columns);
    "A bubble is time inside an iteration in which a device does nothing while another one works."
        .clone_into(&mut table.about);
    for of in &result.bubbles {
        table.push([
            of.machine.into(),
            of.device.into(),
            of.window_ns.into(),
            of.busy_ns.into(),
            of.bubble_ns.into(),
            of.all_idle_ns.into(),
            of.bubble_ratio.into(),
        ]);
    }
    table
}
