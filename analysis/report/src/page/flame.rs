//! Flame graphs of pages as text.

use flopwatch_model::{approximate, index};

use super::Flame;
use super::figure::number;
use super::printable::shortened;
use crate::layout::Layout;

/// Frames that a terminal shows.
const MAX_LINES: usize = 60;
/// What is left at least of a name that has to be short.
const MIN_NAME: usize = 20;
/// Levels that are indented; those below say their level.
const MAX_INDENTED_LEVEL: u32 = 24;

impl Flame {
    /// The largest frames as an indented tree, with their shares of all.
    pub(super) fn text(&self, layout: Layout) -> String {
        let all = self.value.first().copied().unwrap_or(0);
        let shortest = shortest_kept(self.value.clone(), MAX_LINES);
        let mut out = String::new();
        let mut left_out = self.left_out;
        for (at, value) in self.value.iter().copied().enumerate() {
            if value < shortest || value == 0 {
                left_out += 1;
                continue;
            }
            let depth = self.depth.get(at).copied().unwrap_or(0);
            let name = self.name.get(at).and_then(|name| self.names.get(index(*name)));
            let name = name.map_or("", String::as_str);
            let indent = "  ".repeat(index(depth.min(MAX_INDENTED_LEVEL)));
            let level = if depth > MAX_INDENTED_LEVEL {
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
            let before = format!("{figure}  {indent}{level}");
            let taken = before.chars().count();
            let room = layout
                .columns
                .map(|columns| columns.saturating_sub(taken).max(MIN_NAME));
            let name = shortened(name, room.unwrap_or(usize::MAX));
            out.push_str(format!("{before}{name}").trim_end());
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

/// The least value of `values` of which at most `max` are as large.
pub fn shortest_kept(mut values: Vec<u64>, max: usize) -> u64 {
    if values.len() <= max {
        return 0;
    }
    let (_, edge, _) = values.select_nth_unstable_by_key(max, |value| std::cmp::Reverse(*value));
    edge.saturating_add(1)
}
