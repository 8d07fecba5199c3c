//! Flame graphs of pages as text.

use flopwatch_model::{approximate, index};

use super::Flame;
use super::figure::number;
use super::printable::shortened;

/// Frames that a terminal shows.
const MOST_LINES: usize = 60;
/// Longest name in a line.
const NAME_CHARACTERS: usize = 100;
/// Levels that are indented; those below say their level.
const INDENTED: u32 = 24;

impl Flame {
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
pub fn shortest_kept(mut values: Vec<u64>, most: usize) -> u64 {
    if values.len() <= most {
        return 0;
    }
    let (_, edge, _) = values.select_nth_unstable_by_key(most, |value| std::cmp::Reverse(*value));
    edge.saturating_add(1)
}
