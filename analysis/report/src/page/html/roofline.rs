//! Roofline charts as inline SVG.

use super::chart::{COLOUR_COUNT, WIDTH, legend, open};
use super::{paragraph, put, text, title};
use crate::page::figure::number;
use crate::page::printable::shortened;
use crate::page::roofline::{MAX_POINTS, Roofline, is_drawn};
use crate::page::{Series, Unit};

const LEFT: f64 = 110.0;
const RIGHT: f64 = WIDTH - 20.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 440.0;
/// Most points with their names beside them.
const MAX_NAMES: usize = 12;
/// Characters of a name beside its point.
const NAME_CHARACTERS: usize = 32;

/// Where values lie on the chart.
struct Plane {
    across: (i32, i32),
    up: (i32, i32),
}

impl Plane {
    fn x(&self, intensity: f64) -> f64 {
        let (low, high) = (f64::from(self.across.0), f64::from(self.across.1));
        LEFT + (intensity.log10() - low) / (high - low) * (RIGHT - LEFT)
    }

    fn y(&self, performance: f64) -> f64 {
        let (low, high) = (f64::from(self.up.0), f64::from(self.up.1));
        BOTTOM - (performance.log10() - low) / (high - low) * (BOTTOM - TOP)
    }
}

pub(super) fn roofline(out: &mut String, chart: &Roofline) {
    out.push_str("<section>");
    title(out, &chart.title);
    if !chart.about.is_empty() {
        paragraph(out, "about", &chart.about);
    }
    let Some([across, up]) = chart.decades() else {
        paragraph(out, "note", "No values.");
        out.push_str("</section>\n");
        return;
    };
    let series: Vec<Series> = chart.series().into_iter().map(named).collect();
    legend(out, &series);
    let plane = Plane { across, up };
    open(out, BOTTOM + 50.0, &chart.title);
    grid(out, chart, &plane);
    roofs(out, chart, &plane);
    arrows(out, chart, &plane);
    points(out, chart, &plane);
    out.push_str("</svg>");
    if chart.points.len() > MAX_POINTS {
        paragraph(
            out,
            "note",
            &format!(
                "{} more points are in the JSON of this page.",
                chart.points.len() - MAX_POINTS
            ),
        );
    }
    out.push_str("</section>\n");
}

fn named(name: &str) -> Series {
    Series {
        name: name.to_owned(),
        values: Vec::new(),
    }
}

/// A line per decade with its value, and what the axes are.
fn grid(out: &mut String, chart: &Roofline, plane: &Plane) {
    for decade in plane.across.0..=plane.across.1 {
        let value = 10_f64.powi(decade);
        let x = plane.x(value);
        line(out, (x, TOP), (x, BOTTOM));
        label(out, (x, BOTTOM + 18.0), "middle", &number(value, Unit::None));
    }
    for decade in plane.up.0..=plane.up.1 {
        let value = 10_f64.powi(decade);
        let y = plane.y(value);
        line(out, (LEFT, y), (RIGHT, y));
        label(out, (LEFT - 8.0, y + 4.0), "end", &number(value, chart.unit));
    }
    label(
        out,
        (f64::midpoint(LEFT, RIGHT), BOTTOM + 40.0),
        "middle",
        &chart.intensity,
    );
}

/// Flat roofs from the steepest slope to the right, and slopes up to the highest flat one.
fn roofs(out: &mut String, chart: &Roofline, plane: &Plane) {
    let above = |value: f64| value.is_finite() && value > 0.0;
    let max = |roofs: &[crate::page::roofline::Roof]| {
        roofs
            .iter()
            .map(|roof| roof.value)
            .filter(|value| above(*value))
            .fold(0.0, f64::max)
    };
    let (highest, steepest) = (max(&chart.peaks), max(&chart.bandwidths));
    let (min, lowest) = (10_f64.powi(plane.across.0), 10_f64.powi(plane.up.0));
    let rightmost = 10_f64.powi(plane.across.1);
    for roof in chart.peaks.iter().filter(|roof| above(roof.value)) {
        let from = if steepest > 0.0 {
            (roof.value / steepest).max(min)
        } else {
            min
        };
        let y = plane.y(roof.value);
        put(
            out,
            format_args!("<path class=\"roof\" d=\"M{:.1} {y:.1}H{RIGHT:.1}\"/>", plane.x(from)),
        );
        let caption = format!("{}: {}", roof.name, number(roof.value, chart.unit));
        label(out, (RIGHT - 4.0, y - 5.0), "end", &caption);
    }
    for roof in chart.bandwidths.iter().filter(|roof| above(roof.value)) {
        let from = min.max(lowest / roof.value);
        let to = if highest > 0.0 { highest / roof.value } else { rightmost }.min(rightmost);
        if from >= to {
            continue;
        }
        let ends = [from, to].map(|intensity| (plane.x(intensity), plane.y(intensity * roof.value)));
        let [(x, y), (right, top)] = ends;
        put(
            out,
            format_args!("<path class=\"roof\" d=\"M{x:.1} {y:.1}L{right:.1} {top:.1}\"/>"),
        );
        let angle = (top - y).atan2(right - x).to_degrees();
        let (x, y) = (x + 0.08 * (right - x), y + 0.08 * (top - y));
        put(
            out,
            format_args!(
                "<text class=\"f h\" x=\"{x:.1}\" y=\"{:.1}\" transform=\"rotate({angle:.1} {x:.1} {y:.1})\">",
                y - 5.0
            ),
        );
        text(
            out,
            &format!("{}: {}", roof.name, number(roof.value, Unit::BytesPerSecond)),
        );
        out.push_str("</text>");
    }
}

fn arrows(out: &mut String, chart: &Roofline, plane: &Plane) {
    let end_of = |at: u32| {
        let point = usize::try_from(at).ok().and_then(|at| chart.points.get(at))?;
        is_drawn(point).then(|| (plane.x(point.intensity), plane.y(point.performance)))
    };
    for arrow in chart.arrows.iter().take(MAX_POINTS) {
        let (Some(from), Some(to)) = (end_of(arrow.from), end_of(arrow.to)) else {
            continue;
        };
        let (across, down) = (to.0 - from.0, to.1 - from.1);
        let length = across.hypot(down);
        if length < 14.0 {
            continue;
        }
        let (across, down) = (across / length, down / length);
        // The head ends at the point's edge.
        let tip = (to.0 - 6.0 * across, to.1 - 6.0 * down);
        let foot = (tip.0 - 8.0 * across, tip.1 - 8.0 * down);
        put(
            out,
            format_args!(
                "<path class=\"l6\" d=\"M{:.1} {:.1}L{:.1} {:.1}M{:.1} {:.1}L{:.1} {:.1}L{:.1} {:.1}\"/>",
                from.0,
                from.1,
                tip.0,
                tip.1,
                foot.0 - 4.0 * down,
                foot.1 + 4.0 * across,
                tip.0,
                tip.1,
                foot.0 + 4.0 * down,
                foot.1 - 4.0 * across,
            ),
        );
    }
}

fn points(out: &mut String, chart: &Roofline, plane: &Plane) {
    let series = chart.series();
    let has_names = chart.points.len() <= MAX_NAMES;
    for point in chart.points.iter().take(MAX_POINTS).filter(|point| is_drawn(point)) {
        let which = series.iter().position(|name| *name == point.series).unwrap_or(0);
        let (x, y) = (plane.x(point.intensity), plane.y(point.performance));
        put(
            out,
            format_args!(
                "<circle class=\"s{}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"><title>",
                which % COLOUR_COUNT
            ),
        );
        let caption = format!(
            "{} · {}: {} at {} {}",
            point.name,
            point.series,
            number(point.performance, chart.unit),
            number(point.intensity, Unit::None),
            chart.intensity
        );
        text(out, &caption);
        out.push_str("</title></circle>");
        if has_names {
            // Towards the middle, so that it ends within the chart.
            let (x, anchor) = if x > f64::midpoint(LEFT, RIGHT) {
                (x - 9.0, "end")
            } else {
                (x + 9.0, "start")
            };
            put(
                out,
                format_args!(
                    "<text class=\"h\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">",
                    y + 15.0
                ),
            );
            text(out, &shortened(&point.name, NAME_CHARACTERS));
            out.push_str("</text>");
        }
    }
}

fn line(out: &mut String, from: (f64, f64), to: (f64, f64)) {
    put(
        out,
        format_args!(
            "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>",
            from.0, to.0, from.1, to.1
        ),
    );
}

fn label(out: &mut String, (x, y): (f64, f64), anchor: &str, shown: &str) {
    put(
        out,
        format_args!("<text class=\"f h\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">"),
    );
    text(out, shown);
    out.push_str("</text>");
}
