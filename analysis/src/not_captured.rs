//! What a source lacks, which is never reported as zero.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Capture, Category};
use crate::page::category::label;

/// A part of a result that has no figures because the capture does not hold what they are made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotCaptured {
    /// What has no figures, e.g. `launch delays`.
    pub what: String,
    /// Why, and what to do so that the next capture has it.
    pub reason: String,
}

impl NotCaptured {
    /// `what` has no figures for `reason`.
    pub fn new(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            reason: reason.into(),
        }
    }

    /// `what` has no figures where none of `categories` was recorded; `None` where one was, with events or without.
    pub fn unless_any(capture: &Capture, categories: &[Category], what: &str) -> Option<Self> {
        if categories.iter().any(|category| capture.captured.contains(category)) {
            return None;
        }
        let names: Vec<&str> = categories.iter().map(|category| label(*category)).collect();
        let tool = if capture.source.tool.is_empty() {
            "the profiler"
        } else {
            &capture.source.tool
        };
        let reason = format!(
            "{tool} recorded no {}; capture with a profiler and options that record them",
            names.join(" and no ")
        );
        Some(Self::new(what, reason))
    }
}
