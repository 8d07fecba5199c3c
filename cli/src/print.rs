//! Tables, colours and the formats of objects.

use std::io::Write as _;

use flopwatch_report::page::names::apart;
use flopwatch_report::{Layout, Tone};
use serde::Serialize;

use crate::arguments::Format;
use crate::error::Error;

/// Blanks between two columns.
const GAP: usize = 3;
/// What is left at least of a name that has to be short.
const MIN_NAME: usize = 24;

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// A cell in a tone; an empty one reads `<none>`, as with kubectl.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        let text: String = text.into();
        let text = if text.is_empty() {
            "<none>".to_owned()
        } else {
            line(&text)
        };
        Self { text, tone }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Plain)
    }
}

/// A table whose last column holds names, such as those of kernels: they are shortened to the
/// terminal, so that those which differ still do.
pub fn table_of_names(header: &[&str], rows: &[Vec<Cell>], layout: Layout) -> String {
    let Some(columns) = layout.columns else {
        return table(header, rows, layout);
    };
    let last = header.len().saturating_sub(1);
    let width = |at: usize, head: &str| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        let cells = cells.map(|cell| cell.text.chars().count());
        cells.max().unwrap_or(0).max(head.chars().count())
    };
    let before = header.iter().take(last).enumerate();
    let taken: usize = before.map(|(at, head)| width(at, head) + GAP).sum();
    let room = columns.saturating_sub(taken).max(MIN_NAME);
    let names: Vec<&str> = rows
        .iter()
        .map(|row| row.get(last).map_or("", |cell| cell.text.as_str()))
        .collect();
    let mut rows = rows.to_vec();
    for (row, name) in rows.iter_mut().zip(apart(&names, room)) {
        if let Some(cell) = row.get_mut(last) {
            cell.text = name;
        }
    }
    table(header, &rows, layout)
}

/// Columns with three blanks between them, as kubectl has them.
pub fn table(header: &[&str], rows: &[Vec<Cell>], layout: Layout) -> String {
    let mut widths: Vec<usize> = header.iter().map(|name| name.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.text.chars().count());
        }
    }
    let mut text = String::new();
    let names: Vec<Cell> = header.iter().map(|name| Cell::from(*name)).collect();
    for row in std::iter::once(&names).chain(rows) {
        let mut written = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            written.push_str(&layout.paint(cell.tone, &cell.text));
            if column + 1 < row.len() {
                let gap = (width + GAP).saturating_sub(cell.text.chars().count());
                written.extend(std::iter::repeat_n(' ', gap));
            }
        }
        text.push_str(written.trim_end());
        text.push('\n');
    }
    text
}

/// Text of the cluster for a terminal: what would steer it is left out.
pub fn plain(text: &str) -> String {
    text.chars()
        .map(|letter| {
            if letter.is_control() && letter != '\n' {
                ' '
            } else {
                letter
            }
        })
        .collect()
}

/// Text of the cluster for one line of a terminal: every control character is a space.
pub fn line(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}

/// A time span as kubectl writes ages: `45s`, `12m`, `3h`, `8d`.
pub fn age(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7_200 => format!("{}m", seconds / 60),
        seconds @ 7_200..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// Bytes for people.
pub fn bytes(count: u64) -> String {
    indicatif::HumanBytes(count).to_string()
}

/// An object, or a list of them, as the API has it.
pub fn object(value: &impl Serialize, format: Format) -> Result<String, Error> {
    match format {
        Format::Yaml => serde_saphyr::to_string(value).map_err(|error| Error::Render(error.to_string())),
        _ => serde_json::to_string_pretty(value)
            .map(|text| text + "\n")
            .map_err(|error| Error::Render(error.to_string())),
    }
}

/// Writes to standard output. A reader that has gone, such as `head`, is no error.
pub fn say(text: &str) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLORED: Layout = Layout {
        columns: None,
        colors: true,
    };

    #[test]
    fn columns_stand_in_line_with_and_without_colours() {
        let rows = [
            vec![Cell::from("first"), Cell::toned("True", Tone::Good), Cell::from("")],
            vec![
                Cell::from("a-longer-name"),
                Cell::toned("False", Tone::Bad),
                Cell::from("x"),
            ],
        ];
        let header = ["NAME", "SUCCEEDED", "REASON"];
        let plain = table(&header, &rows, Layout::default());
        assert_eq!(
            plain,
            "NAME            SUCCEEDED   REASON\nfirst           True        <none>\na-longer-name   False       x\n"
        );
        let colored = table(&header, &rows, COLORED);
        assert!(colored.contains("\u{1b}[32mTrue\u{1b}[0m        <none>"), "{colored:?}");
    }

    #[test]
    fn names_fit_the_terminal_and_a_pipe_has_them_whole() {
        let name = |kind: &str| format!("void cutlass::Kernel<cutlass_80_tensorop_{kind}_align8_relu>(Params)");
        let rows = ["s1688", "h16816"].map(|kind| vec![Cell::from("1.500us"), Cell::from(name(kind))]);
        let header = ["TIME", "KERNEL"];
        let pipe = Layout::default();
        let terminal = Layout {
            columns: Some(40),
            ..pipe
        };
        let text = table_of_names(&header, &rows, terminal);
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_ne!(lines[0], lines[1], "what differs is left of the names");
        let whole = table_of_names(&header, &rows, pipe);
        assert!(whole.contains(&name("s1688")), "{whole}");
        assert_eq!(table_of_names(&header, &rows, terminal.wide(true)), whole);
    }

    #[test]
    fn what_would_steer_a_terminal_is_left_out() {
        let cell = Cell::from("a\u{1b}[31mb\nc");
        assert_eq!(table(&["X"], &[vec![cell]], COLORED), "X\na [31mb c\n");
        assert_eq!(plain("a\u{7}b\nc"), "a b\nc");
    }

    #[test]
    fn ages_read_as_kubectl_writes_them() {
        let rows = [
            (-3, "0s"),
            (7, "7s"),
            (119, "119s"),
            (120, "2m"),
            (7_200, "2h"),
            (200_000, "2d"),
        ];
        for (seconds, expected) in rows {
            assert_eq!(age(seconds), expected);
        }
    }
}
