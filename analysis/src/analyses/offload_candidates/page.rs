//! How people read it.

use flopwatch_measures::kernel_name::short;
use flopwatch_report::page::{Bars, Page, Table, Tile, Unit};

use super::OffloadCandidatesResult;

/// Most bars.
const MAX_BARS: usize = 10;

pub(super) fn of(title: &str, about: &str, result: &OffloadCandidatesResult) -> Page {
    let mut page = Page::of(title, about, &result.not_captured);
    if result.kernel_ns == 0 {
        return page;
    }
    page.tiles([
        Tile::figure("Kernel time that memory bounds", Unit::Ratio, result.memory_bound_ratio),
        Tile::figure(
            "Of that estimated",
            Unit::Ratio,
            flopwatch_model::ratio(result.estimated_ns, result.memory_bound_ns),
        ),
        Tile::figure("Bound not known", Unit::Ns, result.unknown_ns),
        Tile::figure(
            "Copies of host and device",
            Unit::Ns,
            (result.transfer_ns > 0).then_some(result.transfer_ns),
        ),
        Tile::figure("Largest working set", Unit::Bytes, result.on_chip_bytes),
        Tile::new("Balance of the device, FLOP/byte", result.ridge_flop_per_byte),
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
    let shown = result.candidates.iter().take(MAX_BARS);
    page.bars(
        Bars::of("Time of candidates", Unit::Ns, shown, |one| {
            short(&one.kernel).to_owned()
        })
        .series("time", |one| one.total_ns),
    );
    let some = |bytes: Option<u64>| bytes.filter(|bytes| *bytes > 0);
    page.table(
        Table::of("Candidates", &result.candidates)
            .left_out(result.candidates_left_out)
            .column("Kernel", |one| one.kernel.as_str())
            .column("Known from", |one| one.basis.label())
            .column("Launches", |one| one.launches)
            .figure("Time", Unit::Ns, |one| one.total_ns)
            .figure("Of kernel time", Unit::Ratio, |one| one.time_ratio)
            .figure("Bytes per launch", Unit::Bytes, |one| one.bytes_per_launch)
            .number("FLOP/byte", 2, |one| one.intensity_flop_per_byte)
            .figure("Bandwidth", Unit::BytesPerSecond, |one| one.bandwidth_bytes_per_second)
            .figure("Of the peak", Unit::Ratio, |one| one.bandwidth_ratio)
            .figure("Working set", Unit::Bytes, |one| one.working_set_bytes)
            .figure("Copied in", Unit::Bytes, |one| some(one.copied_in_bytes))
            .figure("Copied out", Unit::Bytes, |one| some(one.copied_out_bytes))
            .figure("Link", Unit::BytesPerSecond, |one| one.link_bytes_per_second)
            .at(|one| one.longest)
            .without_unknown(),
    );
    page
}
