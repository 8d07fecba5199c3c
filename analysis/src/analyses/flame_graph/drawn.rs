//! The flame graph of a page.

use flopwatch_measures::flame::{Flame, FlameRow, FrameKind, Side};
use flopwatch_model::index;
use flopwatch_report::page::{self, Unit, shortest_kept};

/// Most frames of a page: a wide screen shows no more at once.
const MAX_FRAMES: usize = 20_000;

/// The picture of a flame graph of one capture, or of the difference of two, with values of that
/// unit.
pub(crate) fn drawn(title: &str, flame: &Flame, unit: Unit, is_difference: bool) -> page::Flame {
    let value = |[before, after]: [u64; 2]| before.saturating_add(after);
    let mut own = page::Flame {
        title: title.to_owned(),
        unit,
        ..page::Flame::default()
    };
    let shortest = shortest_kept(flame.rows.iter().map(|row| value(row.total_ns)).collect(), MAX_FRAMES);
    let mut names: Vec<Option<u32>> = vec![None; flame.frames.len()];
    let mut kinds: Vec<FrameKind> = Vec::new();
    for row in &flame.rows {
        if value(row.total_ns) < shortest {
            own.left_out += 1;
            continue;
        }
        let name = number(&mut own, flame, row, &mut names, &mut kinds);
        own.name.push(name);
        own.depth.push(row.depth);
        own.value.push(value(row.total_ns));
        own.own.push(value(row.own_ns));
        if is_difference {
            own.before.push(Side::Before.of(row.total_ns));
        } else {
            let time = row.first.map(|(_, time)| time).unwrap_or_default();
            own.start_ns.push(time.start);
            own.end_ns.push(time.end);
        }
    }
    own.kinds = kinds.into_iter().map(|kind| kind.label().to_owned()).collect();
    own
}

/// The place of a row's frame among the names of the picture, which it is added to the first time.
fn number(
    own: &mut page::Flame,
    flame: &Flame,
    row: &FlameRow,
    names: &mut [Option<u32>],
    kinds: &mut Vec<FrameKind>,
) -> u32 {
    let Some(slot) = names.get_mut(index(row.frame)) else {
        return 0;
    };
    *slot.get_or_insert_with(|| {
        let known = flame.frame(row);
        let kind = known.map_or(FrameKind::Rest, |frame| frame.kind);
        let slot = kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
            kinds.push(kind);
            kinds.len() - 1
        });
        own.names
            .push(known.map(|frame| frame.name.clone()).unwrap_or_default());
        own.name_kind.push(u32::try_from(slot).unwrap_or(0));
        u32::try_from(own.names.len() - 1).unwrap_or(u32::MAX)
    })
}
