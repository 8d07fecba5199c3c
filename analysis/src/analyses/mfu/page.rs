//! How people read model FLOP utilisation.

use flopwatch_measures::iteration::IterationUnit;
use flopwatch_report::page::{Page, Table, Tile, TimelineLocation, Unit};

use super::{Mfu, MfuResult};
use crate::advice::count;
use crate::definition::Analysis;

pub(super) fn of(result: &MfuResult) -> Page {
    let mut page = Page::of(Mfu::TITLE, Mfu::ABOUT, &result.not_captured);
    let Some(source) = result.flops_source else { return page };
    let region = if result.iterations == 0 {
        "The region is the whole capture.".to_owned()
    } else {
        let unit = IterationUnit::by(result.iteration_source, &result.iteration_name);
        let what = count(result.iterations, unit.one, unit.many);
        if result.iteration_name.is_empty() {
            format!("The region is {what}.")
        } else {
            format!("The region is {what}, `{}`.", result.iteration_name)
        }
    };
    let mut text = format!("Operations: {}. {region}", source.label());
    for caution in &result.cautions {
        text.push(' ');
        text.push_str(caution);
    }
    page.text("Region", text);
    page.tiles([
        Tile::figure("MFU", Unit::Ratio, result.mfu_ratio),
        Tile::figure("MFU of the median iteration", Unit::Ratio, result.median_mfu_ratio),
        Tile::figure("Per device", Unit::FlopPerSecond, result.flops_per_second),
        Tile::figure("Operations", Unit::Count, result.flops),
        Tile::figure("Time of all devices", Unit::Ns, result.device_time_ns),
        Tile::figure("Kernel time that is counted", Unit::Ratio, result.coverage_ratio),
    ]);
    page.table(iterations(result));
    page.table(operations(result));
    page
}

fn iterations(result: &MfuResult) -> impl Into<Table> {
    Table::of("Iterations", &result.by_iteration)
        .left_out(result.iterations_left_out)
        .column("Number", |iteration| iteration.number)
        .figure("Time", Unit::Ns, |iteration| iteration.time_ns)
        .column("Devices", |iteration| iteration.devices)
        .figure("Operations", Unit::Count, |iteration| iteration.flops)
        .figure("Per device", Unit::FlopPerSecond, |iteration| {
            iteration.flops_per_second
        })
        .figure("MFU", Unit::Ratio, |iteration| iteration.mfu_ratio)
        .at(|of| TimelineLocation::new(of.start_ns, of.end_ns, Some(of.row)))
}

fn operations(result: &MfuResult) -> impl Into<Table> {
    Table::of("Operations that are counted", &result.rows)
        .left_out(result.left_out)
        .column("Operation", |row| row.name.as_str())
        .column("Shapes", |row| row.shapes.as_str())
        .column("Type", |row| row.element_type.as_deref())
        .column("Calls", |row| row.calls)
        .figure("Operations", Unit::Count, |row| row.flops)
        .figure("GPU time", Unit::Ns, |row| row.gpu_time_ns)
        .figure("Rate", Unit::FlopPerSecond, |row| row.flops_per_second)
        .figure("Of peak", Unit::Ratio, |row| row.peak_ratio)
        .at(|row| Some(TimelineLocation::new(row.start_ns?, row.end_ns?, row.row)))
}
