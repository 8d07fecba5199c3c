//! Flame graphs of pages, made of those of captures, and as text.

use flopwatch_model::{approximate, index};

use super::figure::number;
use super::printable::shortened;
use super::{Flame, Unit};
use crate::measures::flame::{self as measured, FlameRow, FrameKind, Side};

/// Most frames of a page: a wide screen shows no more at once.
const MOST_FRAMES: usize = 20_000;
/// Frames that a terminal shows.
const MOST_LINES: usize = 60;
/// Longest name in a line.
const NAME_CHARACTERS: usize = 100;
/// Levels that are indented; those below say their level.
const INDENTED: u32 = 24;

impl Flame {
    /// Of a flame graph of one capture, or of the difference of two.
    pub(crate) fn of(title: &str, flame: &measured::Flame, is_difference: bool) -> Self {
        let value = |[before, after]: [u64; 2]| before.saturating_add(after);
        let mut own = Self {
            title: title.to_owned(),
            unit: Unit::Ns,
            ..Self::default()
        };
        let shortest = shortest_kept(flame.rows.iter().map(|row| value(row.total_ns)).collect(), MOST_FRAMES);
        let mut names: Vec<Option<u32>> = vec![None; flame.frames.len()];
        let mut kinds: Vec<FrameKind> = Vec::new();
        for row in &flame.rows {
            if value(row.total_ns) < shortest {
                own.left_out += 1;
                continue;
            }
            let name = own.number(flame, row, &mut names, &mut kinds);
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

    fn number(
        &mut self,
        flame: &measured::Flame,
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
            let place = kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
                kinds.push(kind);
                kinds.len() - 1
            });
            self.names
                .push(known.map(|frame| frame.name.clone()).unwrap_or_default());
            self.name_kind.push(u32::try_from(place).unwrap_or(0));
            u32::try_from(self.names.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// The largest frames as an indented tree, with their shares of all.
    pub(super) fn text(&self) -> String {
        let all = self.value.first().copied().unwrap_or(0);
        let shortest = shortest_kept(self.value.clone(), MOST_LINES);
        let mut out = String::new();
        let mut left_out = self.left_out;
        for (at, value) in self.value.iter().copied().enumerate() {
            if value < shortest || value == 0 {
                left_out += 1;
                continue;
            }
            let depth = self.depth.get(at).copied().unwrap_or(0);
            let name = self.name.get(at).and_then(|name| self.names.get(index(*name)));
            let name = shortened(name.map_or("", String::as_str), NAME_CHARACTERS);
            let indent = "  ".repeat(index(depth.min(INDENTED)));
            let level = if depth > INDENTED {
                format!("[{depth}] ")
            } else {
                String::new()
            };
            let share = approximate(value.into()) / approximate(all.max(1).into()) * 100.0;
            let figure = match self.before.get(at).copied() {
                Some(before) => {
                    let (before, after) = (
                        approximate(before.into()),
                        approximate(value.saturating_sub(before).into()),
                    );
                    let [was, is] = [before, after].map(|value| number(value, self.unit));
                    let change = number(after - before, self.unit);
                    let sign = if after > before { "+" } else { "" };
                    format!("{was:>10} {is:>10} {:>11}", format!("{sign}{change}"))
                }
                None => format!("{:>10} {share:>5.1} %", number(approximate(value.into()), self.unit)),
            };
            out.push_str(format!("{figure}  {indent}{level}{name}").trim_end());
            out.push('\n');
        }
        if left_out > 0 {
            out.push_str("... and ");
            out.push_str(&left_out.to_string());
            out.push_str(" smaller frames\n");
        }
        out
    }
}

/// The least value of `values` of which at most `most` are as large.
fn shortest_kept(mut values: Vec<u64>, most: usize) -> u64 {
    if values.len() <= most {
        return 0;
    }
    let (_, edge, _) = values.select_nth_unstable_by_key(most, |value| std::cmp::Reverse(*value));
    edge.saturating_add(1)
}
