//! A page as text, for a terminal or a pipe.

use super::figure::{number, shown};
use super::grid::{Grid, GridColumn};
use super::names::apart;
use super::printable::printable;
use super::{Bars, Block, Cell, Lines, Page, Roofline, Table, Unit};
use crate::layout::{Layout, Tone};

/// Steps of the longest bar.
const BAR_WIDTH: usize = 40;
/// The same on a terminal that is narrower than [`NARROW`].
const NARROW_BAR_WIDTH: usize = 20;
/// Columns below which bars are short.
const NARROW: usize = 100;
/// What is left at least of a label that has to be short.
const MIN_LABEL: usize = 16;
/// What is said where tables have no room for all that they hold.
const NO_ROOM: &str = "Tables are cut to the terminal's width: --wide shows all of them.";

/// The page as text: what was not captured first, then its blocks.
pub fn render(page: &Page, layout: Layout) -> String {
    let mut out = String::new();
    heading(&mut out, &page.title, layout);
    if !page.about.is_empty() {
        line(&mut out, &page.about, layout);
    }
    for missing in &page.not_captured {
        let text = format!("Not captured: {}: {}", missing.what, missing.reason);
        out.push_str(&layout.paint(Tone::Note, &layout.wrapped(&clean(&text), 2)));
        out.push('\n');
    }
    let lacks_all = page.lacks_all();
    let mut is_cut = false;
    for block in &page.blocks {
        if lacks_all && matches!(block, Block::Table(_) | Block::Bars(_) | Block::Flame(_)) {
            continue;
        }
        out.push('\n');
        match block {
            Block::Text(text) => {
                heading(&mut out, &text.title, layout);
                text.text.lines().for_each(|text| line(&mut out, text, layout));
            }
            Block::Tiles(tiles) => {
                let wide = |label: &str| label.chars().count();
                let width = tiles.tiles.iter().map(|tile| wide(&tile.label)).max().unwrap_or(0);
                for tile in &tiles.tiles {
                    let value = known(&tile.value, tile.unit);
                    let label = format!("{:width$}  {value}", tile.label);
                    line(&mut out, &label, layout);
                }
            }
            Block::Table(table) => {
                heading(&mut out, &table.title, layout);
                is_cut |= write_table(&mut out, table, layout);
            }
            Block::Bars(bars) => {
                heading(&mut out, &bars.title, layout);
                out.push_str(&self::bars(bars, layout));
            }
            Block::Lines(lines) => {
                heading(&mut out, &lines.title, layout);
                out.push_str(&self::lines(lines, layout));
            }
            Block::Flame(flame) => {
                heading(&mut out, &flame.title, layout);
                out.push_str(&flame.text(layout));
            }
            Block::Roofline(chart) => {
                heading(&mut out, &chart.title, layout);
                out.push_str(&roofs(chart, layout));
                is_cut |= write_table(&mut out, &chart.table(), layout);
            }
        }
    }
    if is_cut {
        out.push('\n');
        no_room(&mut out, layout);
    }
    out
}

/// A table in columns: numbers to the right, text to the left.
pub fn table(table: &Table, layout: Layout) -> String {
    let mut out = String::new();
    if write_table(&mut out, table, layout) {
        no_room(&mut out, layout);
    }
    out
}

/// Says that tables are cut, and how they are not.
pub fn no_room(out: &mut String, layout: Layout) {
    out.push_str(&layout.paint(Tone::Faint, &layout.wrapped(NO_ROOM, 0)));
    out.push('\n');
}

/// Whether anything of the table has no room.
fn write_table(out: &mut String, table: &Table, layout: Layout) -> bool {
    let is_number = |at: usize| {
        let cells = table.rows.iter().filter_map(|row| row.cells.get(at));
        let mut known = cells.filter(|cell| !matches!(cell, Cell::Nothing)).peekable();
        known.peek().is_some() && known.all(|cell| matches!(cell, Cell::Integer(_) | Cell::Number(_)))
    };
    let columns = table.columns.iter().enumerate().map(|(at, column)| GridColumn {
        head: clean(column.heading()),
        is_number: is_number(at),
    });
    let rows = table.rows.iter().map(|row| {
        let cells = row.cells.iter().zip(&table.columns);
        cells.map(|(cell, column)| column.shown(cell)).collect()
    });
    let grid = Grid {
        columns: columns.collect(),
        rows: rows.collect(),
    };
    let is_cut = grid.write(out, layout);
    if table.rows.is_empty() {
        line(out, "(no rows)", layout);
    }
    if table.left_out > 0 {
        line(out, &format!("... and {} more", table.left_out), layout);
    }
    is_cut
}

/// Bars of values; those of 0 are counted, for there is nothing to draw.
fn bars(bars: &Bars, layout: Layout) -> String {
    let mut out = String::new();
    let values = || bars.series.iter().flat_map(|series| series.values.iter().flatten());
    let max = values().fold(0.0_f64, |max, value| max.max(value.abs()));
    let only = bars.series.len() == 1;
    let is_narrow = layout.columns.is_some_and(|columns| columns < NARROW);
    let steps = if is_narrow { NARROW_BAR_WIDTH } else { BAR_WIDTH };
    let mut rows = Vec::new();
    let mut zeros: u64 = 0;
    for (at, label) in bars.labels.iter().enumerate() {
        for series in &bars.series {
            let value = series.values.get(at).copied().flatten();
            if value == Some(0.0) {
                zeros += 1;
                continue;
            }
            let label = if only {
                label.clone()
            } else {
                format!("{label}: {}", series.name)
            };
            let shown = value.map_or_else(|| "not known".to_owned(), |value| number(value, bars.unit));
            let share = value.filter(|_| max > 0.0).map_or(0.0, |value| value.abs() / max);
            rows.push((label, shown, bar(share, steps)));
        }
    }
    let figures = rows
        .iter()
        .map(|(_, shown, _)| shown.chars().count())
        .max()
        .unwrap_or(0);
    let names: Vec<&str> = rows.iter().map(|(label, _, _)| label.as_str()).collect();
    let room = layout
        .columns
        .map(|columns| columns.saturating_sub(figures + steps + 4).max(MIN_LABEL));
    let names = match room {
        Some(room) => apart(&names, room),
        None => names.into_iter().map(clean).collect(),
    };
    let labels = names.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    for (label, (_, figure, bar)) in names.iter().zip(&rows) {
        out.push_str(format!("{label:labels$}  {figure:>figures$}  {bar}").trim_end());
        out.push('\n');
    }
    if zeros > 0 {
        let more = if rows.is_empty() { "" } else { " more" };
        line(
            &mut out,
            &format!("({zeros}{more} of {})", number(0.0, bars.unit)),
            layout,
        );
    }
    out
}

/// A bar of so many steps of `steps` as `share` is of 1.
fn bar(share: f64, steps: usize) -> String {
    // Counted, not cast: the middle of a step decides whether it is drawn.
    let all = flopwatch_model::approximate(u128::try_from(steps).unwrap_or(0));
    let mut bar = String::new();
    let mut step = 0.5;
    while step < share * all {
        bar.push('█');
        step += 1.0;
    }
    bar
}

/// A terminal draws no curve: of each series its range and its last value.
fn lines(lines: &Lines, layout: Layout) -> String {
    let mut out = String::new();
    for series in &lines.series {
        let values = || series.values.iter().flatten().copied();
        let (low, high) = (values().reduce(f64::min), values().reduce(f64::max));
        let text = match (low, high, values().next_back()) {
            (Some(low), Some(high), Some(end)) => {
                let [low, high, end] = [low, high, end].map(|value| number(value, lines.unit));
                format!(
                    "{}: {} values from {low} to {high}, at last {end}",
                    series.name,
                    values().count()
                )
            }
            _ => format!("{}: not known", series.name),
        };
        line(&mut out, &text, layout);
    }
    out
}

/// A terminal draws no roofs: what each of them is.
fn roofs(chart: &Roofline, layout: Layout) -> String {
    let mut out = String::new();
    let peaks = chart.peaks.iter().map(|roof| (roof, chart.unit));
    let bandwidths = chart.bandwidths.iter().map(|roof| (roof, Unit::BytesPerSecond));
    for (roof, unit) in peaks.chain(bandwidths) {
        let text = format!("{}: at most {}", roof.name, number(roof.value, unit));
        line(&mut out, &text, layout);
    }
    out
}

fn known(cell: &Cell, unit: Unit) -> String {
    match cell {
        Cell::Nothing => "not known".to_owned(),
        cell => shown(cell, unit),
    }
}

fn heading(out: &mut String, title: &str, layout: Layout) {
    if !title.is_empty() {
        out.push_str(&layout.paint(Tone::Heading, clean(title).trim_end()));
        out.push('\n');
    }
}

/// Appends a sentence; on a terminal it is broken between words.
fn line(out: &mut String, text: &str, layout: Layout) {
    out.push_str(layout.wrapped(&clean(text), 0).trim_end());
    out.push('\n');
}

/// The text without what would steer a terminal.
fn clean(text: &str) -> String {
    text.chars().map(printable).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Series, Tile};
    use super::*;
    use crate::not_captured::NotCaptured;

    #[test]
    fn a_page_is_printed_with_what_is_missing_first() {
        let mut page = Page::new("Kernels", "What ran.");
        page.not_captured.push(NotCaptured::new("launches", "no API calls"));
        page.tiles([
            Tile::figure("Window", Unit::Ns, 1_500_u64),
            Tile::figure("Overlap", Unit::Ratio, Cell::Nothing),
        ]);
        let mut table = Table::new(
            "By name",
            &[("Calls", Unit::None), ("Busy", Unit::Ns), ("Name", Unit::None)],
        );
        table.push([12_u64.into(), 5_u64.into(), "gemm".into()]);
        table.push([3_u64.into(), 2_000_000_u64.into(), "a\u{1b}[2J\u{202e}b".into()]);
        table.left_out = 7;
        page.table(table);
        let expected = "Kernels\nWhat ran.\nNot captured: launches: no API calls\n\nWindow   1.50 µs\nOverlap  not known\n\nBy name\n\
                        Calls     Busy  Name\n   12     5 ns  gemm\n    3  2.00 ms  a\u{fffd}[2J\u{fffd}b\n... and 7 more\n";
        assert_eq!(render(&page, Layout::default()), expected);
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let mut page = Page::new("t", "");
        page.bars(Bars {
            title: "Time".to_owned(),
            unit: Unit::Ns,
            stacked: false,
            labels: vec!["gpu 0".to_owned(), "gpu 1".to_owned()],
            series: vec![Series {
                name: "busy".to_owned(),
                values: vec![Some(4_000.0), Some(1_000.0)],
            }],
        });
        let text = render(&page, Layout::default());
        let lengths: Vec<usize> = text.lines().map(|line| line.matches('█').count()).collect();
        assert_eq!(lengths, [0, 0, 0, 40, 10], "{text}");
    }

    #[test]
    fn bars_of_nothing_are_counted_and_those_that_are_not_known_are_shown() {
        let mut page = Page::new("t", "");
        let bars = |values: Vec<Option<f64>>| Bars {
            title: "Time".to_owned(),
            unit: Unit::Ns,
            stacked: false,
            labels: (0..values.len()).map(|at| format!("gpu {at}")).collect(),
            series: vec![Series {
                name: "busy".to_owned(),
                values,
            }],
        };
        page.bars(bars(vec![Some(0.0), Some(5.0), None, Some(0.0)]));
        page.bars(bars(vec![Some(0.0)]));
        let expected = format!(
            "t\n\nTime\ngpu 1       5 ns  {}\ngpu 2  not known\n(2 more of 0 ns)\n\nTime\n(1 of 0 ns)\n",
            "█".repeat(40)
        );
        assert_eq!(render(&page, Layout::default()), expected);
    }

    #[test]
    fn a_page_fits_the_terminal_and_says_once_that_its_tables_are_cut() {
        let long = "a_kernel_with_a_name_that_is_long_".repeat(4);
        let mut page = Page::new(
            "Kernels",
            "What ran, in a sentence that is longer than the lines of a terminal are.",
        );
        for number in 0..2 {
            let mut table = Table::new("By name", &[("Name", Unit::None), ("Busy", Unit::Ns)]);
            table.push([format!("{long}{number}").into(), 5_u64.into()]);
            page.table(table);
        }
        let layout = Layout {
            columns: Some(40),
            colors: false,
        };
        let text = render(&page, layout);
        let tables = text.split("\n\n").filter(|block| block.starts_with("By name"));
        assert!(
            tables.flat_map(str::lines).all(|line| line.chars().count() <= 40),
            "{text}"
        );
        assert_eq!(text.matches("--wide").count(), 1, "{text}");
        let whole = render(&page, Layout::default());
        assert!(whole.contains(&long) && !whole.contains("--wide"), "{whole}");
        let colored = render(&page, Layout { colors: true, ..layout });
        assert!(colored.contains("\u{1b}[1mBy name\u{1b}[0m"), "{colored:?}");
    }
}
