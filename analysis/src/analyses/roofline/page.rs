//! The charts, and the figures behind them.

use flopwatch_measures::roofline::{Bound, DefinedBy, MemoryLevel, WorkKind};
use flopwatch_report::page::{Cell, Page, Roof, Roofline as Chart, RooflineArrow, RooflinePoint, Table, Unit};

use super::{LaunchPoint, Rooflines};

/// Which kinds of work are of a chart.
type Kinds = fn(WorkKind) -> bool;

pub(super) fn of(output: &Rooflines, title: &str, about: &str) -> Page {
    let mut page = Page::of(title, about, &output.not_captured);
    let charts: [(&str, &str, Unit, Kinds); 3] = [
        (
            "Floating-point operations",
            "FLOP per byte",
            Unit::FlopPerSecond,
            WorkKind::is_floating,
        ),
        (
            "Operations on whole numbers",
            "Operations per byte",
            Unit::InstructionsPerSecond,
            |kind| kind == WorkKind::Integer,
        ),
        (
            "Instructions of warps",
            "Warp instructions per byte",
            Unit::InstructionsPerSecond,
            |kind| kind == WorkKind::Instructions,
        ),
    ];
    for (title, intensity, unit, is_of) in charts {
        if output.points.iter().any(|point| is_of(point.work)) {
            page.roofline(chart(output, title, intensity, unit, is_of));
        }
    }
    if !output.unused.is_empty() {
        let kinds: Vec<&str> = output.unused.iter().map(|kind| kind.label()).collect();
        page.text(
            "Without work",
            format!("Measured, and no launch did any: {}.", kinds.join(", ")),
        );
    }
    page.table_unless_empty(launches(output));
    if !output.moves.is_empty() {
        page.table(moves(output));
    }
    page
}

fn chart(output: &Rooflines, title: &str, intensity: &str, unit: Unit, is_of: Kinds) -> Chart {
    let several = output.points.iter().any(|point| point.input > 0);
    let points = || output.points.iter().enumerate().filter(|(_, point)| is_of(point.work));
    let numbers: Vec<usize> = points().map(|(at, _)| at).collect();
    let at = |at_point: u32| {
        let at_point = usize::try_from(at_point).ok()?;
        u32::try_from(numbers.binary_search(&at_point).ok()?).ok()
    };
    let arrows = output.moves.iter().filter_map(|moved| {
        Some(RooflineArrow {
            from: at(moved.from)?,
            to: at(moved.to)?,
        })
    });
    Chart {
        title: title.to_owned(),
        about: "Both axes are logarithmic. Roofs are the highest that the clocks of any launch shown gave; a point left of where its roofs meet is bound by memory."
            .to_owned(),
        unit,
        intensity: intensity.to_owned(),
        peaks: peaks(output, is_of),
        bandwidths: bandwidths(output, is_of),
        points: points().map(|(_, point)| drawn(point, several)).collect(),
        arrows: arrows.collect(),
    }
}

fn drawn(point: &LaunchPoint, several: bool) -> RooflinePoint {
    let series = format!("{}, {}", point.work.label(), point.memory.label());
    RooflinePoint {
        name: format!("#{} {}", point.launch, point.name),
        series: if several {
            format!("{}: {series}", point.input + 1)
        } else {
            series
        },
        intensity: point.intensity,
        performance: point.work_per_second,
    }
}

fn peaks(output: &Rooflines, is_of: Kinds) -> Vec<Roof> {
    let kinds = WorkKind::ALL.iter().copied().filter(|kind| is_of(*kind));
    let roofs = kinds.filter_map(|kind| {
        let points = output.points.iter().filter(|point| point.work == kind);
        let value = points.map(|point| point.peak_work_per_second).reduce(f64::max)?;
        let name = kind.label().to_owned();
        Some(Roof { name, value })
    });
    roofs.collect()
}

fn bandwidths(output: &Rooflines, is_of: Kinds) -> Vec<Roof> {
    let roofs = MemoryLevel::ALL.into_iter().filter_map(|level| {
        let points = output
            .points
            .iter()
            .filter(|point| is_of(point.work) && point.memory == level);
        let value = points.map(|point| point.peak_bytes_per_second).reduce(f64::max)?;
        let name = level.label().to_owned();
        Some(Roof { name, value })
    });
    roofs.collect()
}

/// Work per second in its own unit: a table has one unit per column, so that the figure is text.
fn performance(kind: WorkKind, value: f64) -> Cell {
    let unit = if kind.is_floating() {
        Unit::FlopPerSecond
    } else {
        Unit::InstructionsPerSecond
    };
    Cell::Text(flopwatch_report::page::figure::number(value, unit))
}

fn launches(output: &Rooflines) -> impl Into<Table> {
    Table::of("Launches", &output.points)
        .about(
            "At most is the lower roof at the launch's intensity, at its own clocks. Formulas are those \
             of the charts that the report defines, else ours.",
        )
        .left_out(output.launches_left_out)
        .column("Capture", |point| point.input + 1)
        .column("Launch", |point| point.launch)
        .column("Kernel", |point| point.name.as_str())
        .column("Work", |point| point.work.label())
        .column("Memory", |point| point.memory.label())
        .column("Per byte", |point| point.intensity)
        .column("Reached", |point| performance(point.work, point.work_per_second))
        .column("At most", |point| performance(point.work, point.attainable_per_second))
        .figure("Of that", Unit::Ratio, |point| point.reached_ratio)
        .figure("Traffic", Unit::BytesPerSecond, |point| point.bytes_per_second)
        .figure("Of its peak", Unit::Ratio, |point| {
            point.bytes_per_second / point.peak_bytes_per_second
        })
        .column("Bound by", |point| match point.bound {
            Bound::Compute => "compute",
            Bound::Memory => "memory",
        })
        .column("Formulas of", formulas)
}

fn formulas(point: &LaunchPoint) -> &'static str {
    match (point.work_defined_by, point.bytes_defined_by) {
        (DefinedBy::Report, DefinedBy::Report) => "the report",
        (DefinedBy::Report, DefinedBy::Flopwatch) => "the report; bytes ours",
        (DefinedBy::Flopwatch, DefinedBy::Report) => "ours; bytes of the report",
        (DefinedBy::Flopwatch, DefinedBy::Flopwatch) => "ours",
    }
}

fn moves(output: &Rooflines) -> impl Into<Table> {
    let point = |at: u32| usize::try_from(at).ok().and_then(|at| output.points.get(at));
    let moves = output.moves.iter();
    let moves = moves.filter_map(|moved| Some((moved, point(moved.from)?, point(moved.to)?)));
    Table::of("What changed", moves)
        .about("Launches of equal name, grid, block and order; after, of before.")
        .column("Kernel", |(_, _, to)| to.name.as_str())
        .column("Launch before", |(_, from, _)| from.launch)
        .column("Launch after", |(_, _, to)| to.launch)
        .column("Work", |(_, _, to)| to.work.label())
        .column("Memory", |(_, _, to)| to.memory.label())
        .figure("Work per second", Unit::Ratio, |(moved, ..)| moved.work_ratio)
        .figure("Work per byte", Unit::Ratio, |(moved, ..)| moved.intensity_ratio)
}
