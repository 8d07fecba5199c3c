//! A page for a terminal.

use super::figure::{number, shown};
use super::printable::shortened;
use super::{Bars, Block, Cell, Lines, Page, Roofline, Table, Unit};

/// Longest cell that is shown.
const CELL_WIDTH: usize = 80;
/// Longest one of the last column.
const LAST_WIDTH: usize = 240;
/// Longest heading or sentence that is shown; sentences are not broken into lines.
const LINE_WIDTH: usize = 2000;
/// Width of the longest bar.
const BAR_WIDTH: f64 = 40.0;

/// The page as text: what was not captured first, then its blocks.
pub fn render(page: &Page) -> String {
    let mut out = String::new();
    line(&mut out, &page.title);
    if !page.about.is_empty() {
        line(&mut out, &page.about);
    }
    for missing in &page.not_captured {
        line(&mut out, &format!("Not captured: {}: {}", missing.what, missing.reason));
    }
    let lacks_all = page.lacks_all();
    for block in &page.blocks {
        if lacks_all && matches!(block, Block::Table(_) | Block::Bars(_) | Block::Flame(_)) {
            continue;
        }
        out.push('\n');
        match block {
            Block::Text(text) => {
                heading(&mut out, &text.title);
                text.text.lines().for_each(|text| line(&mut out, text));
            }
            Block::Tiles(tiles) => {
                let wide = |label: &str| label.chars().count();
                let width = tiles.tiles.iter().map(|tile| wide(&tile.label)).max().unwrap_or(0);
                for tile in &tiles.tiles {
                    let value = known(&tile.value, tile.unit);
                    line(&mut out, &format!("{:width$}  {value}", tile.label));
                }
            }
            Block::Table(table) => {
                heading(&mut out, &table.title);
                out.push_str(&self::table(table));
            }
            Block::Bars(bars) => {
                heading(&mut out, &bars.title);
                out.push_str(&self::bars(bars));
            }
            Block::Lines(lines) => {
                heading(&mut out, &lines.title);
                out.push_str(&self::lines(lines));
            }
            Block::Flame(flame) => {
                heading(&mut out, &flame.title);
                out.push_str(&flame.text());
            }
            Block::Roofline(chart) => {
                heading(&mut out, &chart.title);
                out.push_str(&roofs(chart));
                out.push_str(&table(&chart.table()));
            }
        }
    }
    out
}

/// A table in columns: numbers to the right, text to the left but for the last column, which is as long as it is.
pub fn table(table: &Table) -> String {
    let mut out = String::new();
    let columns = table.columns.len();
    let is_number = |at: usize| {
        let cells = table.rows.iter().filter_map(|row| row.cells.get(at));
        let mut known = cells.filter(|cell| !matches!(cell, Cell::Nothing)).peekable();
        known.peek().is_some() && known.all(|cell| matches!(cell, Cell::Integer(_) | Cell::Number(_)))
    };
    let numbers: Vec<bool> = (0..columns).map(is_number).collect();
    let heads = table
        .columns
        .iter()
        .map(|column| shortened(column.heading(), CELL_WIDTH));
    let mut lines: Vec<Vec<String>> = vec![heads.collect()];
    lines.extend(table.rows.iter().map(|row| {
        let cells = row.cells.iter().zip(&table.columns);
        let cells = cells.enumerate().map(|(at, (cell, column))| {
            let longest = if at + 1 == columns { LAST_WIDTH } else { CELL_WIDTH };
            shortened(&column.shown(cell), longest)
        });
        cells.collect()
    }));
    let widths: Vec<usize> = (0..columns)
        .map(|at| {
            let cells = lines.iter().filter_map(|line| line.get(at));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    for cells in lines {
        let mut text = String::new();
        for ((cell, width), is_number) in cells.iter().zip(&widths).zip(&numbers) {
            let cell = if *is_number {
                format!("{cell:>width$}  ")
            } else {
                format!("{cell:width$}  ")
            };
            text.push_str(&cell);
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    if table.rows.is_empty() {
        line(&mut out, "(no rows)");
    }
    if table.left_out > 0 {
        line(&mut out, &format!("... and {} more", table.left_out));
    }
    out
}

fn bars(bars: &Bars) -> String {
    let mut out = String::new();
    let values = || bars.series.iter().flat_map(|series| series.values.iter().flatten());
    let most = values().fold(0.0_f64, |most, value| most.max(value.abs()));
    let only = bars.series.len() == 1;
    let label = |at: usize, series: &str| {
        let label = bars.labels.get(at).map_or("", String::as_str);
        let text = if only {
            label.to_owned()
        } else {
            format!("{label}: {series}")
        };
        shortened(&text, CELL_WIDTH)
    };
    let mut rows = Vec::new();
    for at in 0..bars.labels.len() {
        for series in &bars.series {
            let value = series.values.get(at).copied().flatten();
            let shown = value.map_or_else(|| "not known".to_owned(), |value| number(value, bars.unit));
            let share = value.filter(|_| most > 0.0).map_or(0.0, |value| value.abs() / most);
            // Drawn by a loop: the width is a number of steps, not a cast.
            let mut bar = String::new();
            let mut step = 0.5;
            while step < share * BAR_WIDTH {
                bar.push('█');
                step += 1.0;
            }
            rows.push((label(at, &series.name), shown, bar));
        }
    }
    let wide = |of: fn(&(String, String, String)) -> &String| {
        let widths = rows.iter().map(|row| of(row).chars().count());
        widths.max().unwrap_or(0)
    };
    let (labels, figures) = (wide(|row| &row.0), wide(|row| &row.1));
    for (label, figure, bar) in &rows {
        out.push_str(format!("{label:labels$}  {figure:>figures$}  {bar}").trim_end());
        out.push('\n');
    }
    out
}

/// A terminal draws no curve: of each series its range and its last value.
fn lines(lines: &Lines) -> String {
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
        line(&mut out, &text);
    }
    out
}

/// A terminal draws no roofs: what each of them is.
fn roofs(chart: &Roofline) -> String {
    let mut out = String::new();
    let peaks = chart.peaks.iter().map(|roof| (roof, chart.unit));
    let bandwidths = chart.bandwidths.iter().map(|roof| (roof, Unit::BytesPerSecond));
    for (roof, unit) in peaks.chain(bandwidths) {
        line(
            &mut out,
            &format!("{}: at most {}", roof.name, number(roof.value, unit)),
        );
    }
    out
}

fn known(cell: &Cell, unit: Unit) -> String {
    match cell {
        Cell::Nothing => "not known".to_owned(),
        cell => shown(cell, unit),
    }
}

fn heading(out: &mut String, title: &str) {
    if !title.is_empty() {
        line(out, title);
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(shortened(text, LINE_WIDTH).trim_end());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::super::Series;
    use super::*;
    use crate::not_captured::NotCaptured;

    #[test]
    fn a_page_is_printed_with_what_is_missing_first() {
        let mut page = Page::new("Kernels", "What ran.");
        page.not_captured.push(NotCaptured::new("launches", "no API calls"));
        page.tiles([
            ("Window", Cell::from(1_500_u64), Unit::Ns),
            ("Overlap", Cell::Nothing, Unit::Ratio),
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
        assert_eq!(render(&page), expected);
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
        let text = render(&page);
        let lengths: Vec<usize> = text.lines().map(|line| line.matches('█').count()).collect();
        assert_eq!(lengths, [0, 0, 0, 40, 10], "{text}");
    }
}
