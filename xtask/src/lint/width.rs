//! Lines of prose and of comments end by column 100.
//!
//! Code blocks, tables, headings and lines with an address are as long as they are, and so is a
//! line that a piece of code in it makes longer. What the crate `api` says of the fields of its
//! resources is not looked at: it stands in the custom resources' schemas, line by line.

use super::tracked;
use anyhow::{Result, bail};
use std::ffi::OsStr;
use std::path::Path;

/// Characters of a line.
const MAX_WIDTH: usize = 100;
/// The crate whose comments are descriptions in the custom resources.
const RESOURCES: &str = "api/";
/// What begins and ends a code block.
const FENCE: &str = "```";

/// What kind of text a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Markdown,
    Rust,
}

/// Fails on a line that is too long.
pub(super) fn check() -> Result<()> {
    let mut long = Vec::new();
    for (file, content) in tracked(&["*.md", "*.rs"])? {
        let is_page = Path::new(&file).extension() == Some(OsStr::new("md"));
        let text = if is_page { Text::Markdown } else { Text::Rust };
        if !file.starts_with(RESOURCES) {
            long.extend(too_long(text, &content).map(|number| format!("{file}:{number}")));
        }
    }
    if long.is_empty() {
        return Ok(());
    }
    bail!("lines of prose above {MAX_WIDTH} columns:\n{}", long.join("\n"))
}

/// Numbers of the lines that are too long, from 1.
fn too_long(text: Text, content: &str) -> impl Iterator<Item = usize> {
    let mut in_block = false;
    (1..).zip(content.lines()).filter_map(move |(number, line)| {
        let prose = prose(text, line)?;
        if prose.trim_start().starts_with(FENCE) {
            in_block = !in_block;
        }
        (!in_block && line.chars().count() > MAX_WIDTH && !may_be_long(text, line, prose)).then_some(number)
    })
}

/// What a line says to people; none where it is code.
fn prose(text: Text, line: &str) -> Option<&str> {
    match text {
        Text::Markdown => Some(line),
        Text::Rust => {
            let comment = line.trim_start().strip_prefix("//")?;
            Some(comment.strip_prefix(['/', '!']).unwrap_or(comment))
        }
    }
}

fn may_be_long(text: Text, line: &str, prose: &str) -> bool {
    let is_indented_code = text == Text::Markdown && line.starts_with("    ");
    let begin: String = line.chars().take(MAX_WIDTH).collect();
    let is_within_code = begin.matches('`').count() % 2 == 1;
    is_indented_code || is_within_code || prose.trim_start().starts_with(['|', '#', '<']) || line.contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: Text, content: &str) -> Vec<usize> {
        too_long(text, content).collect()
    }

    #[test]
    fn prose_and_comments_that_are_too_long_are_found_and_no_code_or_table_is() {
        let long = "word ".repeat(21);
        let page = format!("short\n{long}\n| {long} |\n```\n{long}\n```\n# {long}\n    {long}\nhttps://{long}\n{long}");
        assert_eq!(found(Text::Markdown, &page), [2, 10]);
        let source = format!("/// {long}\nlet a = \"{long}\";\n//! ```\n//! {long}\n//! ```\n    // {long}");
        assert_eq!(found(Text::Rust, &source), [1, 6]);
    }

    #[test]
    fn a_line_that_its_code_makes_longer_is_as_long_as_it_is() {
        let code = format!("`{}`", "a ".repeat(60));
        assert!(found(Text::Markdown, &code).is_empty());
        assert_eq!(found(Text::Markdown, &format!("`a` {}", "b ".repeat(60))), [1]);
    }
}
