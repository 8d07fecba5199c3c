//! Tables, colours and the formats of objects.

use std::io::{IsTerminal as _, Write as _};

use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;

use crate::arguments::Format;
use crate::error::Error;

/// What a cell or a line says beside its words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// No colour.
    #[default]
    Plain,
    /// It is as it should be.
    Good,
    /// It is not as it should be.
    Bad,
    /// Look at it.
    Note,
}

/// Colours where they are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// Colours, or none.
    pub const fn new(on: bool) -> Self {
        Self { on }
    }

    /// Colours on a terminal that has them, unless the user does not want any (<https://no-color.org>).
    pub fn of_stdout() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
        Self::new(!refused && !dumb && std::io::stdout().is_terminal())
    }

    /// The text in its tone.
    pub fn tone(self, tone: Tone, text: &str) -> String {
        let colour = match tone {
            Tone::Good => AnsiColor::Green,
            Tone::Bad => AnsiColor::Red,
            Tone::Note => AnsiColor::Yellow,
            Tone::Plain => return text.to_owned(),
        };
        if !self.on {
            return text.to_owned();
        }
        let style = Style::new().fg_color(Some(colour.into()));
        format!("{style}{text}{style:#}")
    }
}

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

/// Columns with three blanks between them, as kubectl has them.
pub fn table(header: &[&str], rows: &[Vec<Cell>], paint: Paint) -> String {
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
            written.push_str(&paint.tone(cell.tone, &cell.text));
            if column + 1 < row.len() {
                let gap = (width + 3).saturating_sub(cell.text.chars().count());
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

/// The same on one line.
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
        let plain = table(&header, &rows, Paint::new(false));
        assert_eq!(
            plain,
            "NAME            SUCCEEDED   REASON\nfirst           True        <none>\na-longer-name   False       x\n"
        );
        let coloured = table(&header, &rows, Paint::new(true));
        assert!(
            coloured.contains("\u{1b}[32mTrue\u{1b}[0m        <none>"),
            "{coloured:?}"
        );
    }

    #[test]
    fn what_would_steer_a_terminal_is_left_out() {
        let cell = Cell::from("a\u{1b}[31mb\nc");
        assert_eq!(table(&["X"], &[vec![cell]], Paint::new(true)), "X\na [31mb c\n");
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
