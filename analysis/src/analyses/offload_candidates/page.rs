//! How people read it.

use flopwatch_measures::kernel_name::short;
use flopwatch_model::approximate;
use flopwatch_report::page::{Bars, Page, Series, Table, Unit};

use super::OffloadCandidatesResult;

/// Most bars.
const MOST_BARS: usize = 10;

pub(super) fn of(about: &str, result: &OffloadCandidatesResult) -> Page {
    let mut page = Page::new("Offload candidates", about);
    page.not_captured.clone_from(&result.not_captured);
    if result.kernel_ns == 0 {
        return page;
    }
    page.tiles([
        (
            "Kernel time that memory bounds",
            result.memory_bound_ratio.into(),
            Unit::Ratio,
        ),
        (
            "Of that estimated",
            flopwatch_model::ratio(result.estimated_ns, result.memory_bound_ns).into(),
            Unit::Ratio,
        ),
        ("Bound not known", result.unknown_ns.into(), Unit::Ns),
        (
            "Copies of host and device",
            (result.transfer_ns > 0).then_some(result.transfer_ns).into(),
            Unit::Ns,
        ),
        ("Largest working set", result.on_chip_bytes.into(), Unit::Bytes),
        (
            "Balance of the device, FLOP/byte",
            result.ridge_flop_per_byte.into(),
            Unit::None,
        ),
    ]);
    if result.candidates.is_empty() {
        page.text("", "No kernel is known that memory bounds.");
        return page;
    }
    page.text(
        "What an accelerator would need",
        "To take a candidate without being slower: memory of its bandwidth, the working set on chip, and, where its data does not stay there, a link of the last column. The copies are \
         those that stand between the kernel and the ones before and behind it today.",
    );
    let shown = || result.candidates.iter().take(MOST_BARS);
    page.bars(Bars {
        title: "Time of candidates".to_owned(),
        unit: Unit::Ns,
        stacked: false,
        labels: shown().map(|one| short(&one.kernel).to_owned()).collect(),
        series: vec![Series {
            name: "time".to_owned(),
            values: shown().map(|one| Some(approximate(one.total_ns.into()))).collect(),
        }],
    });
    let columns = [
        ("Kernel", Unit::None),
        ("Known from", Unit::None),
        ("Launches", Unit::None),
        ("Time", Unit::Ns),
        ("Of kernel time", Unit::Ratio),
        ("Bytes per launch", Unit::Bytes),
        ("FLOP/byte", Unit::None),
        ("Bandwidth", Unit::BytesPerSecond),
        ("Of the peak", Unit::Ratio),
        ("Working set", Unit::Bytes),
        ("Copied in", Unit::Bytes),
        ("Copied out", Unit::Bytes),
        ("Link", Unit::BytesPerSecond),
    ];
    let mut table = Table::new("Candidates", &columns);
    table.left_out = result.candidates_left_out;
    if let Some(column) = table.columns.iter_mut().find(|column| column.title == "FLOP/byte") {
        column.decimals = Some(2);
    }
    for one in &result.candidates {
        let some = |bytes: Option<u64>| bytes.filter(|bytes| *bytes > 0);
        let cells = [
            one.kernel.as_str().into(),
            one.basis.label().into(),
            one.launches.into(),
            one.total_ns.into(),
            one.time_ratio.into(),
            one.bytes_per_launch.into(),
            one.intensity_flop_per_byte.into(),
            one.bandwidth_bytes_per_second.into(),
            one.bandwidth_ratio.into(),
            one.working_set_bytes.into(),
            some(one.copied_in_bytes).into(),
            some(one.copied_out_bytes).into(),
            one.link_bytes_per_second.into(),
        ];
        match one.longest {
            Some(place) => table.push_at(place, cells),
            None => table.push(cells),
        }
    }
    table.without_unknown();
    page.table(table);
    page
}
