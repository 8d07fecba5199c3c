//! A flame graph in an HTML file: its frames as data, and the program that draws them, which the
//! viewer uses too.

use super::{put, text, title};
use crate::page::printable::shortened;
use crate::page::{Block, Flame};

/// Longest name: few lines beside the graph.
const NAME_CHARACTERS: usize = 160;

pub(super) const STYLE: &str = include_str!("flame.css");
pub(super) const SCRIPT: &str = concat!(
    include_str!("../../../../../web/src/document/flame.js"),
    "\nfor (const section of document.querySelectorAll(\"section.flame\")) {\n",
    "  flame(section.querySelector(\".flame-graph\"), JSON.parse(section.querySelector(\"script\").textContent));\n}\n"
);

pub(super) fn flame(out: &mut String, flame: &Flame) {
    out.push_str("<section class=\"flame\">");
    title(out, &flame.title);
    out.push_str("<div class=\"flame-graph\"></div>");
    if flame.left_out > 0 {
        let left_out = flame.left_out;
        put(
            out,
            format_args!("<p class=\"note\">{left_out} smaller frames are in the JSON.</p>"),
        );
    }
    out.push_str("<noscript><p class=\"note\">");
    text(
        out,
        "The graph is drawn by a script of this file. Its largest frames are in the table.",
    );
    out.push_str("</p></noscript>\n<script type=\"application/json\">");
    let short = Flame {
        names: flame
            .names
            .iter()
            .map(|name| shortened(name, NAME_CHARACTERS))
            .collect(),
        ..flame.clone()
    };
    let data = serde_json::to_string(&Block::Flame(short)).unwrap_or_default();
    // Data is no markup: nothing in it may end the element or begin a comment.
    for c in data.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            c => out.push(c),
        }
    }
    out.push_str("</script></section>\n");
}
