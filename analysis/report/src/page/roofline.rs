//! Performance over intensity below roofs, both logarithmic: where a kernel stands, and what bounds
//! it.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Table, Unit};

/// A roofline chart. What is not above zero has no place on it and is not drawn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "PageRoofline")]
pub struct Roofline {
    /// Heading of the roofline.
    pub title: String,
    /// What it tells; may be empty.
    pub about: String,
    /// How performance is shown.
    pub unit: Unit,
    /// What intensity counts, e.g. `FLOP per byte`.
    pub intensity: String,
    /// Most performance of each kind of work, in `unit`: flat roofs.
    pub peaks: Vec<Roof>,
    /// Most bytes per second of each memory: slanted roofs.
    pub bandwidths: Vec<Roof>,
    /// What was measured.
    pub points: Vec<RooflinePoint>,
    /// How points moved, from one place in `points` to another.
    pub arrows: Vec<RooflineArrow>,
}

/// A roof.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "PageRoof")]
pub struct Roof {
    /// Name of the roof.
    pub name: String,
    /// What it is at most.
    pub value: f64,
}

/// What was measured of one piece of work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "PageRooflinePoint")]
pub struct RooflinePoint {
    /// Name of the kernel.
    pub name: String,
    /// What it has its colour by.
    pub series: String,
    /// Work per byte.
    pub intensity: f64,
    /// Work per second.
    pub performance: f64,
}

/// From a point to another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "PageRooflineArrow")]
pub struct RooflineArrow {
    /// Place of the point where it begins.
    pub from: u32,
    /// Place of the point where it ends.
    pub to: u32,
}

/// Most points that are drawn.
pub(super) const MAX_POINTS: usize = 2000;

impl Roofline {
    /// Names of series, each once, in the order of points.
    pub(super) fn series(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for point in &self.points {
            if !names.contains(&point.series.as_str()) {
                names.push(&point.series);
            }
        }
        names
    }

    /// Decades that the chart shows: of intensity, then of performance.
    pub(super) fn decades(&self) -> Option<[(i32, i32); 2]> {
        let points = || self.points.iter().filter(|point| is_drawn(point)).take(MAX_POINTS);
        let peaks = || self.peaks.iter().map(|roof| roof.value).filter(|value| *value > 0.0);
        let ridges = peaks().flat_map(|peak| {
            let bandwidths = self
                .bandwidths
                .iter()
                .map(|roof| roof.value)
                .filter(|value| *value > 0.0);
            bandwidths.map(move |bandwidth| peak / bandwidth)
        });
        let across = around(points().map(|point| point.intensity).chain(ridges), 0.3)?;
        let up = around(points().map(|point| point.performance).chain(peaks()), 0.2)?;
        // Some of the slope is to be seen even where every point is close to its roof.
        Some([across, (up.0.min(up.1 - 3), up.1)])
    }

    /// The points as a table.
    pub fn table(&self) -> Table {
        Table::of(&self.title, &self.points)
            .column("Name", |point| point.name.as_str())
            .column("Series", |point| point.series.as_str())
            .column("Intensity", |point| point.intensity)
            .figure("Performance", self.unit, |point| point.performance)
            .build()
    }
}

/// Whether a point has a place on logarithmic axes.
pub(super) fn is_drawn(point: &RooflinePoint) -> bool {
    let is_place = |value: f64| value.is_finite() && value > 0.0;
    is_place(point.intensity) && is_place(point.performance)
}

/// Whole decades around the values, with some room.
fn around(values: impl Iterator<Item = f64>, room: f64) -> Option<(i32, i32)> {
    let logs = values.filter(|value| value.is_finite() && *value > 0.0).map(f64::log10);
    let (low, high) = logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| {
        (low.min(log), high.max(log))
    });
    (low <= high).then(|| {
        let (low, high) = (whole((low - room).floor()), whole((high + room).ceil()));
        (low, high.max(low + 1))
    })
}

/// A whole number within the exponents of doubles.
fn whole(value: f64) -> i32 {
    let mut found = -400;
    while f64::from(found) < value && found < 400 {
        found += 1;
    }
    found
}
