//! Folded stacks: a line per stack, its frames from the outermost on, and its time.
//! <https://github.com/brendangregg/FlameGraph>

use std::io::{self, Write};

use flopwatch_measures::flame::{Flame, Side};

pub(super) fn write(flame: &Flame, out: &mut dyn Write) -> io::Result<()> {
    let folded: Vec<String> = flame.frames.iter().map(|frame| folded(&frame.name)).collect();
    flame.stacks(|stack, row| {
        let rows = stack.iter().filter_map(|at| flame.rows.get(*at));
        let names = rows.filter_map(|row| folded.get(flopwatch_model::index(row.frame)));
        for (at, name) in names.enumerate() {
            if at > 0 {
                out.write_all(b";")?;
            }
            out.write_all(name.as_bytes())?;
        }
        writeln!(out, " {}", Side::Before.of(row.own_ns))
    })
}

/// A name without what parts frames and lines.
fn folded(name: &str) -> String {
    let kept = |c: char| match c {
        ';' => ':',
        c if c.is_control() => ' ',
        c => c,
    };
    let name: String = name.chars().map(kept).collect();
    if name.is_empty() { "(no name)".to_owned() } else { name }
}
