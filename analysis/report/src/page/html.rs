//! A document as one HTML file: it opens from a disk, asks for nothing, and prints.
//!
//! What a capture names is foreign. It is written as text alone, and the file's own policy admits
//! no style and no script but those that are in it.

mod chart;
mod flame;
mod roofline;

use std::fmt::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flopwatch_model::{approximate, count};
use sha2::{Digest, Sha256};

use super::document::{Document, Heading};
use super::figure::{number, shown, value_of};
use super::printable::{printable, shortened};
use super::{Block, Cell, Page, Table, TableColumn, TableRow, Tiles, Unit};

/// Most bytes of rows in a file. With what stands around them a file stays below 5 MB.
const MAX_ROW_BYTES: usize = 4 << 20;
/// Most rows of a table: more than people read, and few enough to be sorted at once.
const MAX_ROWS: usize = 5000;
/// Longest name in a cell: few lines of its column.
const CELL_CHARACTERS: usize = 120;
/// Longest sentence in a cell.
const SENTENCE_CHARACTERS: usize = 400;
/// Characters of a word, on average, beyond which a text is a name, such as that of a template, and
/// no sentence.
const WORD_CHARACTERS: usize = 9;
/// Longest text beside a cell that is shortened.
const WHOLE_CHARACTERS: usize = 600;
/// A table of more columns has a page across the paper.
const WIDE_COLUMNS: usize = 7;
/// A table of more columns is printed smaller, too.
const WIDEST_COLUMNS: usize = 15;
/// Longest paragraph.
const TEXT_CHARACTERS: usize = 100_000;

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/sort.js");

/// A self-contained HTML file: it loads nothing.
pub fn render(document: &Document) -> String {
    let page = &document.page;
    let mut out = String::new();
    let has_flame = page.blocks.iter().any(|block| matches!(block, Block::Flame(_)));
    head(&mut out, &page.title, has_flame);
    out.push_str("<header>\n<h1>");
    text(&mut out, &page.title);
    out.push_str("</h1>\n");
    paragraph(&mut out, "about", &page.about);
    captures(&mut out, &document.inputs);
    out.push_str("</header>\n<main>\n");
    not_captured(&mut out, page);
    let tables = page
        .blocks
        .iter()
        .filter(|block| matches!(block, Block::Table(_)))
        .count();
    let mut room = MAX_ROW_BYTES;
    let mut tables_left = tables;
    let lacks_all = page.lacks_all();
    for block in &page.blocks {
        match block {
            Block::Table(_) | Block::Bars(_) | Block::Flame(_) if lacks_all => {}
            Block::Text(paragraph) => {
                out.push_str("<section>");
                title(&mut out, &paragraph.title);
                out.push_str("<p class=\"text\">");
                for c in paragraph.text.chars().take(TEXT_CHARACTERS) {
                    escape(&mut out, if c == '\n' { c } else { printable(c) });
                }
                out.push_str("</p></section>\n");
            }
            Block::Tiles(tiles) => self::tiles(&mut out, tiles),
            Block::Table(table) => {
                // Each has its part of what is left, so that a long one does not take the room of
                // those behind it.
                let before = out.len();
                self::table(&mut out, table, document.inputs.len(), room / tables_left.max(1));
                room = room.saturating_sub(out.len() - before);
                tables_left -= 1;
            }
            Block::Bars(bars) => chart::bars(&mut out, bars),
            Block::Lines(lines) => chart::lines(&mut out, lines),
            Block::Flame(flame) => flame::flame(&mut out, flame),
            Block::Roofline(chart) => roofline::roofline(&mut out, chart),
        }
    }
    out.push_str("</main>\n");
    made_by(&mut out, document);
    out.push_str("<script>");
    out.push_str(SCRIPT);
    out.push_str("</script>\n");
    if has_flame {
        out.push_str("<script type=\"module\">");
        out.push_str(flame::SCRIPT);
        out.push_str("</script>\n");
    }
    out.push_str("</body>\n</html>\n");
    out
}

fn head(out: &mut String, page_title: &str, has_flame: bool) {
    out.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    let digest = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let (mut styles, mut scripts) = (digest(STYLE), digest(SCRIPT));
    if has_flame {
        styles = format!("{styles} {}", digest(flame::STYLE));
        scripts = format!("{scripts} {}", digest(flame::SCRIPT));
    }
    let policy = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; form-action 'none'; \
         style-src {styles}; script-src {scripts}\">\n"
    );
    out.push_str(&policy);
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.push_str("<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
    text(out, page_title);
    out.push_str(" · Flopwatch</title>\n<style>");
    out.push_str(STYLE);
    out.push_str("</style>\n");
    if has_flame {
        out.push_str("<style>");
        out.push_str(flame::STYLE);
        out.push_str("</style>\n");
    }
    out.push_str("</head>\n<body>\n");
}

fn captures(out: &mut String, inputs: &[Heading]) {
    if inputs.is_empty() {
        return;
    }
    out.push_str(
        "<section class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Captures\"><table>\n<thead><tr>",
    );
    let numbered = inputs.len() > 1;
    let heads = ["Capture", "Profiler", "GPU", "Window", "Events", "Lost or changed"];
    for (at, head) in heads.into_iter().enumerate() {
        let class = if at == 3 || at == 4 { " class=\"n\"" } else { "" };
        put(out, format_args!("<th scope=\"col\"{class}>{head}</th>"));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (at, input) in inputs.iter().enumerate() {
        out.push_str("<tr><th scope=\"row\" class=\"name\">");
        if numbered {
            put(out, format_args!("{}: ", at + 1));
        }
        text(out, &input.session);
        out.push_str("</th><td>");
        text(out, format!("{} {}", input.tool, input.tool_version).trim());
        out.push_str("</td><td>");
        text(out, &input.gpus.join(", "));
        let (window, events) = if input.has_no_time() {
            ("–".to_owned(), "–".to_owned())
        } else {
            let window = number(approximate(input.window_ns.into()), Unit::Ns);
            (window, input.events.to_string())
        };
        put(
            out,
            format_args!("</td><td class=\"n\">{window}</td><td class=\"n\">{events}</td><td>"),
        );
        text(out, &lost(input));
        out.push_str("</td></tr>\n");
    }
    out.push_str("</tbody></table></section>\n");
}

/// What is missing of a capture; most kinds are counted, not named.
fn lost(input: &Heading) -> String {
    let mut parts: Vec<String> = Vec::new();
    let shown = 8;
    for loss in input.drops.iter().take(shown) {
        let reason = format!("{:?}", loss.reason).to_lowercase();
        parts.push(format!("{} {} {reason}", loss.count, loss.what));
    }
    if input.drops.len() > shown {
        parts.push(format!("{} kinds more", input.drops.len() - shown));
    }
    if input.redactions > 0 {
        parts.push(format!("{} secrets redacted", input.redactions));
    }
    if parts.is_empty() {
        "nothing".to_owned()
    } else {
        parts.join("; ")
    }
}

fn not_captured(out: &mut String, page: &Page) {
    if page.not_captured.is_empty() {
        return;
    }
    out.push_str("<aside role=\"note\" aria-label=\"Not captured\"><h2>Not captured</h2><ul>\n");
    for missing in &page.not_captured {
        out.push_str("<li><strong>");
        text(out, &missing.what);
        out.push_str("</strong>: ");
        text(out, &missing.reason);
        out.push_str("</li>\n");
    }
    out.push_str("</ul></aside>\n");
}

fn tiles(out: &mut String, tiles: &Tiles) {
    out.push_str("<section><dl class=\"tiles\">\n");
    for tile in &tiles.tiles {
        out.push_str("<div><dt>");
        text(out, &tile.label);
        out.push_str("</dt><dd");
        if let Some(value) = value_of(&tile.value) {
            put(out, format_args!(" title=\"{value}\""));
        }
        out.push('>');
        match &tile.value {
            Cell::Nothing => out.push_str("not known"),
            value => text(out, &shortened(&shown(value, tile.unit), CELL_CHARACTERS)),
        }
        out.push_str("</dd>");
        if !tile.about.is_empty() {
            out.push_str("<dd class=\"small\">");
            text(out, &tile.about);
            out.push_str("</dd>");
        }
        out.push_str("</div>\n");
    }
    out.push_str("</dl></section>\n");
}

/// A table of at most `room` bytes; one that is folded is closed.
fn table(out: &mut String, table: &Table, inputs: usize, room: usize) {
    out.push_str(match table.columns.len() {
        columns if columns > WIDEST_COLUMNS => "<section class=\"wide widest\">",
        columns if columns > WIDE_COLUMNS => "<section class=\"wide\">",
        _ => "<section>",
    });
    if table.folded {
        out.push_str("<details><summary><strong>");
        text(out, &table.title);
        let rows = table.left_out.saturating_add(count(table.rows.len()));
        put(out, format_args!(" ({rows})</strong></summary>\n"));
    } else {
        title(out, &table.title);
    }
    paragraph(out, "about", &table.about);
    if table.rows.is_empty() {
        paragraph(out, "note", "No rows.");
    } else {
        rows(out, table, inputs, room);
    }
    out.push_str(if table.folded {
        "</details></section>\n"
    } else {
        "</section>\n"
    });
}

/// The heads and rows of a table, in at most `room` bytes.
fn rows(out: &mut String, table: &Table, inputs: usize, room: usize) {
    let begin = out.len();
    out.push_str("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
    text(out, if table.title.is_empty() { "Table" } else { &table.title });
    out.push_str("\"><table>\n<thead><tr>");
    let look: Vec<CellStyle> = (0..table.columns.len()).map(|at| CellStyle::of(table, at)).collect();
    let is_number = |at: usize| look.get(at) == Some(&CellStyle::Number);
    let first_text = (0..table.columns.len()).find(|at| !is_number(*at));
    for (at, column) in table.columns.iter().enumerate() {
        out.push_str("<th scope=\"col\"");
        if is_number(at) {
            out.push_str(" class=\"n\"");
        }
        if !column.about.is_empty() {
            out.push_str(" title=\"");
            text(out, &column.about);
            out.push('"');
        }
        out.push_str("><button type=\"button\">");
        text(out, column.heading());
        out.push_str("</button></th>");
    }
    let says_where = table.rows.iter().any(|row| row.place.is_some()) && !has_start(table);
    if says_where {
        out.push_str("<th scope=\"col\" class=\"n\"><button type=\"button\">At</button></th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    let mut written = 0;
    for row in table.rows.iter().take(MAX_ROWS) {
        if out.len() - begin > room {
            break;
        }
        written += 1;
        out.push_str("<tr>");
        for (at, ((cell, column), look)) in row.cells.iter().zip(&table.columns).zip(&look).enumerate() {
            self::cell(out, cell, column, *look, first_text == Some(at));
        }
        if says_where {
            location(out, row, inputs);
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>");
    let unwritten = u64::try_from(table.rows.len() - written).unwrap_or(u64::MAX);
    let left_out = table.left_out.saturating_add(unwritten);
    if left_out > 0 {
        let words = if unwritten > 0 {
            format!("{left_out} more rows; {unwritten} of them are in the JSON and CSV of this page.")
        } else {
            format!("{left_out} more rows; a larger limit shows them.")
        };
        paragraph(out, "note", &words);
    }
}

/// How the cells of a column are laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CellStyle {
    /// To the right, with the exact number for sorting.
    Number,
    /// Words that stay on one line.
    Word,
    /// Names that need room and break.
    Name,
}

impl CellStyle {
    /// Longest text that is no name.
    const MAX_WORD_CHARACTERS: usize = 28;

    fn of(table: &Table, at: usize) -> Self {
        let has_unit = table.columns.get(at).is_some_and(|column| column.unit != Unit::None);
        let cells = || table.rows.iter().filter_map(|row| row.cells.get(at));
        let mut known = cells().filter(|cell| !matches!(cell, Cell::Nothing)).peekable();
        if (has_unit || known.peek().is_some()) && known.all(|cell| value_of(cell).is_some()) {
            return Self::Number;
        }
        let is_long =
            |cell: &Cell| matches!(cell, Cell::Text(text) if text.chars().nth(Self::MAX_WORD_CHARACTERS).is_some());
        if cells().any(is_long) { Self::Name } else { Self::Word }
    }

    const fn class(self) -> &'static str {
        match self {
            Self::Number => "n",
            Self::Word => "w",
            Self::Name => "name",
        }
    }
}

/// Longest text of a cell that holds `shown`.
fn longest(shown: &str) -> usize {
    let words = shown.split(' ').count();
    if shown.chars().count() > words.saturating_mul(WORD_CHARACTERS) {
        CELL_CHARACTERS
    } else {
        SENTENCE_CHARACTERS
    }
}

/// Whether a column says when a row began.
fn has_start(table: &Table) -> bool {
    let mut titles = table.columns.iter().map(|column| column.heading().to_lowercase());
    titles.any(|title| title.starts_with("start") || title == "at" || title == "begin")
}

fn cell(out: &mut String, cell: &Cell, column: &TableColumn, look: CellStyle, is_name: bool) {
    let shown = column.shown(cell);
    let longest = longest(&shown);
    let (tag, scope) = if is_name { ("th", " scope=\"row\"") } else { ("td", "") };
    put(out, format_args!("<{tag}{scope} class=\"{}\"", look.class()));
    if look == CellStyle::Number {
        match value_of(cell).map(|value| value.to_string()) {
            Some(exact) if exact == shown => {}
            exact => put(out, format_args!(" data-v=\"{}\"", exact.unwrap_or_default())),
        }
    } else if shown.chars().nth(longest).is_some() {
        out.push_str(" title=\"");
        text(out, &shortened(&shown, WHOLE_CHARACTERS));
        out.push('"');
    }
    out.push('>');
    match cell {
        Cell::Nothing => out.push('–'),
        _ => text(out, &shortened(&shown, longest)),
    }
    put(out, format_args!("</{tag}>"));
}

fn location(out: &mut String, row: &TableRow, inputs: usize) {
    let Some(location) = row.place else {
        out.push_str("<td class=\"n\" data-v=\"\">–</td>");
        return;
    };
    let start = number(approximate(location.start_ns.into()), Unit::Instant);
    let length = number(
        approximate(location.end_ns.saturating_sub(location.start_ns).into()),
        Unit::Ns,
    );
    let of = if inputs > 1 {
        format!(" of {}", location.input.saturating_add(1))
    } else {
        String::new()
    };
    put(
        out,
        format_args!(
            "<td class=\"n\" data-v=\"{}\" title=\"{} to {} ns\">{start} + {length}{of}</td>",
            location.start_ns, location.start_ns, location.end_ns
        ),
    );
}

fn made_by(out: &mut String, document: &Document) {
    out.push_str("<footer class=\"made\">Made by Flopwatch ");
    out.push_str(env!("CARGO_PKG_VERSION"));
    out.push_str(", analysis ");
    text(out, &document.analysis);
    put(out, format_args!(" version {}", document.version));
    let given = document.parameters.iter().filter(|setting| setting.value != "null");
    for (at, setting) in given.enumerate() {
        out.push_str(if at == 0 { ", with " } else { ", " });
        text(out, &shortened(&setting.name, CELL_CHARACTERS));
        out.push_str(" = ");
        let value = if setting.value.is_empty() {
            "\"\""
        } else {
            &setting.value
        };
        text(out, &shortened(value, CELL_CHARACTERS));
    }
    out.push_str(". Figures are rounded; JSON and CSV have them exactly.</footer>\n");
}

fn title(out: &mut String, title: &str) {
    if !title.is_empty() {
        out.push_str("<h2>");
        text(out, title);
        out.push_str("</h2>");
    }
}

fn paragraph(out: &mut String, class: &str, words: &str) {
    if !words.is_empty() {
        put(out, format_args!("<p class=\"{class}\">"));
        text(out, words);
        out.push_str("</p>\n");
    }
}

/// Writing to a text does not fail.
fn put(out: &mut String, words: fmt::Arguments<'_>) {
    out.write_fmt(words).ok();
}

/// Text, in an element or in a quoted attribute.
fn text(out: &mut String, text: &str) {
    for c in text.chars() {
        escape(out, printable(c));
    }
}

fn escape(out: &mut String, c: char) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests;
