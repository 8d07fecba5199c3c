//! What a text is written on: a terminal, or a pipe or file.

use anstyle::{AnsiColor, Style};
use serde::{Deserialize, Serialize};

/// What a text is written on. The default is a pipe or a file: lines are as long as they are, and
/// have no colors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Columns of a terminal, in which lines are to fit.
    pub columns: Option<usize>,
    /// Whether words have colors.
    pub colors: bool,
}

/// What a word says by its color.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    /// Says nothing beside its letters.
    #[default]
    Plain,
    /// Is as it should be.
    Good,
    /// Heads what follows.
    Heading,
    /// Is grave.
    Bad,
    /// Is to be looked at.
    Note,
    /// Stands behind the rest.
    Faint,
}

impl Layout {
    /// What standard output is: a terminal of some width, or a pipe or file. `NO_COLOR`, `TERM`,
    /// `CLICOLOR` and `CLICOLOR_FORCE` are heard.
    #[cfg(feature = "terminal")]
    pub fn of_stdout() -> Self {
        let out = std::io::stdout();
        let size = terminal_size::terminal_size_of(&out);
        Self {
            columns: size.map(|(width, _)| usize::from(width.0)),
            colors: anstream::AutoStream::choice(&out) != anstream::ColorChoice::Never,
        }
    }

    /// The same with lines as long as they are, where `is_wide` says so.
    #[must_use]
    pub const fn wide(self, is_wide: bool) -> Self {
        if is_wide { Self { columns: None, ..self } } else { self }
    }

    /// The text in the color of `tone`, where there are colors.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        if !self.colors || text.is_empty() {
            return text.to_owned();
        }
        let style = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Good => AnsiColor::Green.on_default(),
            Tone::Heading => Style::new().bold(),
            Tone::Bad => AnsiColor::Red.on_default().bold(),
            Tone::Note => AnsiColor::Yellow.on_default(),
            Tone::Faint => Style::new().dimmed(),
        };
        format!("{style}{text}{style:#}")
    }

    /// `text` broken at blanks into lines that fit; lines behind the first are indented by `hang`
    /// columns. A word that is longer than a line has one of its own.
    pub fn wrapped(self, text: &str, hang: usize) -> String {
        let width = |text: &str| text.chars().count();
        let Some(columns) = self.columns.filter(|columns| width(text) > *columns) else {
            return text.to_owned();
        };
        let blanks = text.chars().take_while(|letter| *letter == ' ').count();
        let mut line = " ".repeat(blanks);
        let mut lines = Vec::new();
        let mut is_empty = true;
        for word in text.split(' ').filter(|word| !word.is_empty()) {
            if !is_empty && width(&line) + 1 + width(word) > columns {
                lines.push(std::mem::replace(&mut line, " ".repeat(hang)));
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(word);
            is_empty = false;
        }
        lines.push(line);
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: Layout = Layout {
        columns: Some(12),
        colors: false,
    };

    #[test]
    fn a_sentence_is_broken_between_words_and_nothing_of_it_is_lost() {
        let text = "  > use pinned memory";
        assert_eq!(NARROW.wrapped(text, 4), "  > use\n    pinned\n    memory");
        assert_eq!(
            NARROW.wrapped("a_word_that_is_long and more", 0),
            "a_word_that_is_long\nand more"
        );
        assert_eq!(NARROW.wrapped("short", 4), "short");
        assert_eq!(Layout::default().wrapped(text, 4), text);
    }

    #[test]
    fn words_have_colors_where_the_terminal_has_them() {
        assert_eq!(NARROW.paint(Tone::Bad, "high"), "high");
        let colored = Layout { colors: true, ..NARROW };
        assert_eq!(colored.paint(Tone::Note, "medium"), "\u{1b}[33mmedium\u{1b}[0m");
        assert_eq!(colored.paint(Tone::Plain, "low"), "low");
        assert_eq!(colored.paint(Tone::Heading, ""), "");
    }
}
