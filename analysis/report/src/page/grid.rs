//! Cells in columns, as wide as there is room for.

use super::names::apart;
use super::printable::{printable, shortened};
use crate::layout::{Layout, Tone};

/// Blanks between two columns.
const GAP: usize = 2;
/// What is left at least of a text that has to be short.
const MIN_TEXT: usize = 24;
/// Widest column beside which others stand in line where nothing has to fit.
const MAX_ALIGNED: usize = 80;

/// Rows of cells below their heads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grid {
    /// The columns.
    pub columns: Vec<GridColumn>,
    /// The rows, each with a cell for each column.
    pub rows: Vec<Vec<String>>,
}

/// A column of a grid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GridColumn {
    /// Head of the column.
    pub head: String,
    /// Whether it holds numbers, which stand at the right and are never cut.
    pub is_number: bool,
}

/// A column as it is written.
struct Written {
    head: String,
    cells: Vec<String>,
    width: usize,
    is_number: bool,
}

impl Grid {
    /// Appends the grid to `out`, a line per row. Where it has to fit, names are shortened so that
    /// those which differ still do, and columns of numbers are left out from the right where there
    /// is no room for them. The answer is whether anything is missing.
    pub fn write(&self, out: &mut String, layout: Layout) -> bool {
        let natural: Vec<usize> = (0..self.columns.len()).map(|at| self.width(at)).collect();
        let widths = match layout.columns {
            Some(columns) => self.fitted(&natural, columns),
            None => natural.iter().copied().map(Some).collect(),
        };
        let is_missing = natural
            .iter()
            .zip(&widths)
            .any(|(natural, width)| *width != Some(*natural));
        let columns = self.columns.iter().zip(widths).enumerate();
        let columns = columns.filter_map(|(at, (column, width))| Some(self.written(at, column, width?, layout)));
        let columns: Vec<Written> = columns.collect();
        let heads = line(columns.iter().map(|column| (column, column.head.as_str())));
        out.push_str(&layout.paint(Tone::Heading, &heads));
        out.push('\n');
        for row in 0..self.rows.len() {
            let cells = columns
                .iter()
                .map(|column| (column, column.cells.get(row).map_or("", String::as_str)));
            out.push_str(&line(cells));
            out.push('\n');
        }
        is_missing
    }

    /// The cells of a column; a row that is too short has an empty one.
    fn cells(&self, at: usize) -> impl Iterator<Item = &str> {
        self.rows.iter().map(move |row| row.get(at).map_or("", String::as_str))
    }

    fn width(&self, at: usize) -> usize {
        let head = self.columns.get(at).map_or(0, |column| column.head.chars().count());
        let cells = self.cells(at).map(|cell| cell.chars().count());
        cells.max().unwrap_or(0).max(head)
    }

    fn written(&self, at: usize, column: &GridColumn, width: usize, layout: Layout) -> Written {
        let cells: Vec<&str> = self.cells(at).collect();
        let clean = |cell: &&str| -> String { cell.chars().map(printable).collect() };
        let (cells, longest, width) = match layout.columns {
            Some(_) => (apart(&cells, width), width, width),
            None => (cells.iter().map(clean).collect(), usize::MAX, width.min(MAX_ALIGNED)),
        };
        Written {
            head: shortened(&column.head, longest),
            cells,
            width,
            is_number: column.is_number,
        }
    }

    /// The width of each column where all of them have `room` together; `None` of one that is left
    /// out.
    fn fitted(&self, natural: &[usize], room: usize) -> Vec<Option<usize>> {
        let is_number = |at: usize| self.columns.get(at).is_some_and(|column| column.is_number);
        let width = |at: usize| natural.get(at).copied().unwrap_or(0);
        let least = |at: usize| {
            if is_number(at) {
                width(at)
            } else {
                width(at).min(MIN_TEXT)
            }
        };
        let gaps = |shown: &[usize]| GAP * shown.len().saturating_sub(1);
        let mut shown: Vec<usize> = (0..natural.len()).collect();
        while shown.len() > 1 && shown.iter().map(|at| least(*at)).sum::<usize>() + gaps(&shown) > room {
            let number = shown.iter().rposition(|at| is_number(*at));
            shown.remove(number.unwrap_or(shown.len() - 1));
        }
        let (numbers, mut texts): (Vec<usize>, Vec<usize>) = shown.iter().copied().partition(|at| is_number(*at));
        let taken = numbers.iter().map(|at| width(*at)).sum::<usize>() + gaps(&shown);
        let mut left = room.saturating_sub(taken);
        let mut widths = vec![None; natural.len()];
        let mut set = |at: usize, width: usize| {
            if let Some(place) = widths.get_mut(at) {
                *place = Some(width);
            }
        };
        for at in numbers {
            set(at, width(at));
        }
        // What a short text does not need, longer ones have.
        texts.sort_by_key(|at| width(*at));
        for (done, at) in texts.iter().enumerate() {
            let share = left / (texts.len() - done).max(1);
            let taken = width(*at).min(share.max(1));
            set(*at, taken);
            left = left.saturating_sub(taken);
        }
        widths
    }
}

/// A line of these cells, without blanks at its end.
fn line<'a>(cells: impl Iterator<Item = (&'a Written, &'a str)>) -> String {
    let mut text = String::new();
    for (at, (column, cell)) in cells.enumerate() {
        if at > 0 {
            text.push_str("  ");
        }
        let width = column.width;
        let cell = if column.is_number {
            format!("{cell:>width$}")
        } else {
            format!("{cell:width$}")
        };
        text.push_str(&cell);
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let column = |head: &str, is_number| GridColumn {
            head: head.to_owned(),
            is_number,
        };
        let row = |kernel: &str| {
            let name = format!("void cutlass::Kernel<cutlass_80_tensorop_{kernel}_align8_relu>(Params)");
            vec![name, "1.50 ms".to_owned(), "12".to_owned()]
        };
        Grid {
            columns: vec![column("Name", false), column("Total", true), column("Calls", true)],
            rows: vec![row("s1688"), row("h16816")],
        }
    }

    fn written(columns: Option<usize>) -> (String, bool) {
        let mut out = String::new();
        let is_missing = grid().write(&mut out, Layout { columns, colors: false });
        (out, is_missing)
    }

    #[test]
    fn every_line_fits_the_terminal_and_names_that_differ_still_do() {
        for columns in [40, 60, 80, 100] {
            let (text, _) = written(Some(columns));
            assert!(
                text.lines().all(|line| line.chars().count() <= columns),
                "{columns}: {text}"
            );
            assert!(text.contains("s16") && text.contains("h16"), "{columns}: {text}");
        }
    }

    #[test]
    fn numbers_are_left_out_whole_from_the_right_where_there_is_no_room_and_it_is_told() {
        let (text, is_missing) = written(Some(36));
        assert!(
            is_missing && text.contains("1.50 ms") && !text.contains("Calls"),
            "{text}"
        );
        let (text, is_missing) = written(Some(24));
        assert!(is_missing && !text.contains("Total"), "{text}");
    }

    #[test]
    fn a_pipe_gets_everything() {
        let (text, is_missing) = written(None);
        let [name, total, calls] = grid().rows[1].clone().try_into().unwrap();
        assert!(!is_missing);
        assert!(text.ends_with(&format!("{name}  {total}     {calls}\n")), "{text}");
        let mut grid = grid();
        grid.rows[0][0] = "x".repeat(500);
        let mut out = String::new();
        assert!(!grid.write(&mut out, Layout::default()));
        assert!(out.contains(&"x".repeat(500)));
        assert!(out.lines().all(|line| line.chars().count() <= 500 + 20), "{out}");
    }
}
