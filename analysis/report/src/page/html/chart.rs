//! Charts as inline SVG.

use flopwatch_model::approximate;

use super::{escape, paragraph, put, text, title};
use crate::page::figure::number;
use crate::page::printable::{printable, shortened};
use crate::page::{Bars, Lines, Series, Unit};

/// Colours there are; further series take them anew.
pub(super) const COLOUR_COUNT: usize = 8;
/// Most bars in a chart.
const MAX_BARS: usize = 100;
/// Characters of a label before its bar.
const LABEL_CHARACTERS: usize = 38;
/// Characters of a name in a legend.
const LEGEND_CHARACTERS: usize = 90;
/// Most points of a line: more than a screen has columns.
const MAX_POINTS: usize = 1000;

pub(super) const WIDTH: f64 = 1000.0;
const LABELS: f64 = 290.0;
const FIGURES: f64 = 110.0;
const BAR: f64 = 16.0;
const GAP: f64 = 8.0;
const PLOT: f64 = 200.0;

fn precise(count: usize) -> f64 {
    u128::try_from(count).map_or(0.0, approximate)
}

/// Bars to the right of their labels; those of negative values go to the left of the line at zero.
pub(super) fn bars(out: &mut String, bars: &Bars) {
    out.push_str("<section>");
    title(out, &bars.title);
    legend(out, &bars.series);
    let shown = bars.labels.len().min(MAX_BARS);
    let per_label = if bars.stacked { 1 } else { bars.series.len().max(1) };
    let (min, max) = span(bars, shown);
    let width = WIDTH - LABELS - FIGURES;
    let at = |value: f64| LABELS + (value - min) / (max - min) * width;
    let row = precise(per_label) * BAR + GAP;
    let height = precise(shown) * row + GAP;
    open(out, height, &bars.title);
    for (category, label) in bars.labels.iter().take(MAX_BARS).enumerate() {
        let top = precise(category) * row + GAP;
        put(
            out,
            format_args!(
                "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">",
                LABELS - 8.0,
                top + 12.0
            ),
        );
        text(out, &shortened(label, LABEL_CHARACTERS));
        out.push_str("</text>");
        if bars.stacked {
            stack(out, bars, category, top, &at);
        } else {
            side_by_side(out, bars, category, top, &at);
        }
    }
    let zero = at(0.0);
    put(
        out,
        format_args!("<line x1=\"{zero:.1}\" x2=\"{zero:.1}\" y1=\"0\" y2=\"{height:.1}\"/></svg>"),
    );
    if bars.labels.len() > shown {
        paragraph(
            out,
            "note",
            &format!("{} more bars are in the JSON of this page.", bars.labels.len() - shown),
        );
    }
    out.push_str("</section>\n");
}

/// The least and the most value that bars reach; zero lies between them.
fn span(bars: &Bars, shown: usize) -> (f64, f64) {
    let (mut min, mut max) = (0.0_f64, 0.0_f64);
    for category in 0..shown {
        let values = bars
            .series
            .iter()
            .filter_map(|series| series.values.get(category).copied().flatten());
        if bars.stacked {
            max = max.max(values.map(|value| value.max(0.0)).sum());
        } else {
            for value in values {
                (min, max) = (min.min(value), max.max(value));
            }
        }
    }
    if max > min { (min, max) } else { (0.0, 1.0) }
}

fn stack(out: &mut String, bars: &Bars, category: usize, top: f64, at: &dyn Fn(f64) -> f64) {
    let mut sum = 0.0;
    for (which, series) in bars.series.iter().enumerate() {
        let Some(value) = series.values.get(category).copied().flatten() else {
            continue;
        };
        let value = value.max(0.0);
        rectangle(
            out,
            (at(sum), at(sum + value)),
            top,
            which,
            &series.name,
            &number(value, bars.unit),
        );
        sum += value;
    }
    figure(out, at(sum), top, &number(sum, bars.unit));
}

fn side_by_side(out: &mut String, bars: &Bars, category: usize, top: f64, at: &dyn Fn(f64) -> f64) {
    for (which, series) in bars.series.iter().enumerate() {
        let top = top + precise(which) * BAR;
        match series.values.get(category).copied().flatten() {
            Some(value) => {
                let shown = number(value, bars.unit);
                let ends = (at(value.min(0.0)), at(value.max(0.0)));
                rectangle(out, ends, top, which, &series.name, &shown);
                figure(out, ends.1, top, &shown);
            }
            None => figure(out, at(0.0), top, "not known"),
        }
    }
}

fn rectangle(out: &mut String, (from, to): (f64, f64), top: f64, which: usize, name: &str, shown: &str) {
    put(
        out,
        format_args!(
            "<rect class=\"s{}\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.0}\"><title>",
            which % COLOUR_COUNT,
            to - from,
            BAR - 2.0
        ),
    );
    text(out, name);
    out.push_str(": ");
    text(out, shown);
    out.push_str("</title></rect>");
}

fn figure(out: &mut String, x: f64, top: f64, shown: &str) {
    put(
        out,
        format_args!("<text class=\"f\" x=\"{:.1}\" y=\"{:.1}\">", x + 5.0, top + 12.0),
    );
    text(out, shown);
    out.push_str("</text>");
}

/// Steps: a value holds until the next.
pub(super) fn lines(out: &mut String, lines: &Lines) {
    out.push_str("<section>");
    title(out, &lines.title);
    let first = lines.times_ns.first().copied();
    let (Some(first), Some(last)) = (first, lines.times_ns.last().copied()) else {
        paragraph(out, "note", "No values.");
        out.push_str("</section>\n");
        return;
    };
    legend(out, &lines.series);
    let values = || {
        lines
            .series
            .iter()
            .flat_map(|series| series.values.iter().flatten().copied())
    };
    let low = values().fold(0.0_f64, f64::min);
    let high = values().fold(low, f64::max);
    let high = if high > low { high } else { low + 1.0 };
    let (left, right, top) = (90.0, WIDTH - 10.0, 10.0);
    let length = approximate(last.saturating_sub(first).max(1).into());
    let x = |ns: u64| left + approximate(ns.saturating_sub(first).into()) / length * (right - left);
    let y = |value: f64| top + (high - value) / (high - low) * PLOT;
    open(out, PLOT + 40.0, &lines.title);
    for value in [low, f64::midpoint(low, high), high] {
        let at = y(value);
        put(
            out,
            format_args!("<line x1=\"{left}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>"),
        );
        put(
            out,
            format_args!(
                "<text class=\"f\" x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">",
                left - 8.0,
                at + 4.0
            ),
        );
        text(out, &number(value, lines.unit));
        out.push_str("</text>");
    }
    for (ns, anchor) in [(first, "start"), (first + (last - first) / 2, "middle"), (last, "end")] {
        let shown = number(approximate(ns.into()), Unit::Ns);
        put(
            out,
            format_args!(
                "<text class=\"f\" x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"{anchor}\">{shown}</text>",
                x(ns),
                PLOT + 30.0
            ),
        );
    }
    for (which, series) in lines.series.iter().enumerate() {
        let points: Vec<(u64, Option<f64>)> = lines
            .times_ns
            .iter()
            .copied()
            .zip(series.values.iter().copied())
            .collect();
        put(out, format_args!("<path class=\"l{}\" d=\"", which % COLOUR_COUNT));
        let mut is_open = false;
        for (ns, value) in thinned(&points) {
            let Some(value) = value else {
                if is_open {
                    put(out, format_args!("H{:.1}", x(ns)));
                }
                is_open = false;
                continue;
            };
            if is_open {
                put(out, format_args!("H{:.1}V{:.1}", x(ns), y(value)));
            } else {
                put(out, format_args!("M{:.1} {:.1}", x(ns), y(value)));
            }
            is_open = true;
        }
        out.push_str("\"><title>");
        text(out, &series.name);
        out.push_str("</title></path>");
    }
    out.push_str("</svg></section>\n");
}

/// At most [`MAX_POINTS`] points: of each stretch its least, its most and what is not known, where
/// they are.
fn thinned(points: &[(u64, Option<f64>)]) -> Vec<(u64, Option<f64>)> {
    if points.len() <= MAX_POINTS {
        return points.to_vec();
    }
    let stretch = (points.len() * 3).div_ceil(MAX_POINTS);
    let mut kept = Vec::new();
    for chunk in points.chunks(stretch) {
        let known = || {
            chunk
                .iter()
                .enumerate()
                .filter_map(|(at, (_, value))| Some((at, (*value)?)))
        };
        let mut indices: Vec<usize> = [
            known().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at),
            known().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at),
            chunk.iter().position(|(_, value)| value.is_none()),
        ]
        .into_iter()
        .flatten()
        .collect();
        indices.sort_unstable();
        indices.dedup();
        kept.extend(indices.into_iter().filter_map(|at| chunk.get(at).copied()));
    }
    kept
}

pub(super) fn open(out: &mut String, height: f64, label: &str) {
    put(
        out,
        format_args!("<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\""),
    );
    for c in label.chars() {
        escape(out, printable(c));
    }
    out.push_str("\">");
}

pub(super) fn legend(out: &mut String, series: &[Series]) {
    if series.len() < 2 {
        return;
    }
    out.push_str("<ul class=\"legend\">");
    for (which, series) in series.iter().enumerate() {
        let swatch = format!(
            "<li><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect class=\"s{}\" width=\"12\" height=\"12\"/></svg>",
            which % COLOUR_COUNT
        );
        out.push_str(&swatch);
        text(out, &shortened(&series.name, LEGEND_CHARACTERS));
        out.push_str("</li>");
    }
    out.push_str("</ul>");
}
