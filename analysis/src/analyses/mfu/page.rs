//! How people read model FLOP utilisation.

use flopwatch_report::page::{Page, Place, Table, Unit};

use super::{Mfu, MfuResult};
use crate::definition::Analysis;

pub(super) fn of(result: &MfuResult) -> Page {
    let mut page = Page::new("Model FLOP utilisation", Mfu::ABOUT);
    page.not_captured.clone_from(&result.not_captured);
    let Some(source) = result.flops_source else { return page };
    let region = if result.iterations == 0 {
        "The region is the whole capture.".to_owned()
    } else {
        format!(
            "The region is {} iterations {}.",
            result.iterations, result.iteration_name
        )
    };
    let mut text = format!("Operations: {}. {region}", source.label());
    for caution in &result.cautions {
        text.push(' ');
        text.push_str(caution);
    }
    page.text("Region", text);
    page.tiles([
        ("MFU", result.mfu_ratio.into(), Unit::Ratio),
        (
            "MFU of the median iteration",
            result.median_mfu_ratio.into(),
            Unit::Ratio,
        ),
        ("Per device", result.flops_per_second.into(), Unit::FlopPerSecond),
        ("Operations", result.flops.into(), Unit::None),
        ("Time of all devices", result.device_time_ns.into(), Unit::Ns),
        ("Kernel time that is counted", result.coverage_ratio.into(), Unit::Ratio),
    ]);
    page.table(iterations(result));
    page.table(operations(result));
    page
}

fn iterations(result: &MfuResult) -> Table {
    let columns = [
        ("Number", Unit::None),
        ("Time", Unit::Ns),
        ("Devices", Unit::None),
        ("Operations", Unit::None),
        ("Per device", Unit::FlopPerSecond),
        ("MFU", Unit::Ratio),
    ];
    let mut table = Table::new("Iterations", &columns);
    table.left_out = result.iterations_left_out;
    for iteration in &result.by_iteration {
        let place = Place {
            input: 0,
            start_ns: iteration.start_ns,
            end_ns: iteration.end_ns,
            row: Some(iteration.row),
        };
        let cells = [
            iteration.number.into(),
            iteration.time_ns.into(),
            iteration.devices.into(),
            iteration.flops.into(),
            iteration.flops_per_second.into(),
            iteration.mfu_ratio.into(),
        ];
        table.push_at(place, cells);
    }
    table
}

fn operations(result: &MfuResult) -> Table {
    let columns = [
        ("Operation", Unit::None),
        ("Shapes", Unit::None),
        ("Type", Unit::None),
        ("Calls", Unit::None),
        ("Operations", Unit::None),
        ("GPU time", Unit::Ns),
        ("Rate", Unit::FlopPerSecond),
        ("Of peak", Unit::Ratio),
    ];
    let mut table = Table::new("Operations that are counted", &columns);
    table.left_out = result.left_out;
    for row in &result.rows {
        let cells = [
            row.name.as_str().into(),
            row.shapes.as_str().into(),
            row.element_type.as_deref().into(),
            row.calls.into(),
            row.flops.into(),
            row.gpu_time_ns.into(),
            row.flops_per_second.into(),
            row.peak_ratio.into(),
        ];
        match row.start_ns.zip(row.end_ns) {
            Some((start_ns, end_ns)) => {
                let place = Place {
                    input: 0,
                    start_ns,
                    end_ns,
                    row: row.row,
                };
                table.push_at(place, cells);
            }
            None => table.push(cells),
        }
    }
    table
}
