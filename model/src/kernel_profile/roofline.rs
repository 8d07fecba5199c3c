//! Roofline charts as a report defines them: which metrics are work and traffic, done and possible.

use serde::{Deserialize, Serialize};

/// A chart of a section.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RooflineChart {
    /// The section that it stands in, e.g. `SpeedOfLight_RooflineChart`.
    pub section: String,
    /// Its roofs: what is possible.
    pub roofs: Vec<RooflineSide>,
    /// Its points: what was done.
    pub points: Vec<RooflineSide>,
}

/// Work and traffic of a roof or of a point.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RooflineSide {
    /// What people read, e.g. `Single Precision Roofline`.
    pub label: String,
    /// Work per second.
    pub work: RooflineValue,
    /// Bytes per second.
    pub traffic: RooflineValue,
}

/// How a figure is made of metrics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RooflineValue {
    /// A fixed number.
    Constant(f64),
    /// The metric of this name.
    Metric(String),
    /// The sum of metrics that count per cycle, times one that counts cycles per second.
    PerCycle {
        /// What is summed.
        metrics: Vec<String>,
        /// Cycles per second.
        clock: String,
    },
}

impl Default for RooflineValue {
    fn default() -> Self {
        Self::Constant(0.0)
    }
}

impl RooflineValue {
    /// The metrics that it is made of, the clock last.
    pub fn metrics(&self) -> Vec<&str> {
        match self {
            Self::Constant(_) => Vec::new(),
            Self::Metric(name) => vec![name],
            Self::PerCycle { metrics, clock } => metrics.iter().chain([clock]).map(String::as_str).collect(),
        }
    }
}
