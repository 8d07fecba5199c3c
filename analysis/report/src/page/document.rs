//! A page with what it was made by and of what: the form in which a page leaves the program.

use std::borrow::Cow;

use flopwatch_model::{Loss, Timeline, Totals};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Page;

/// A page, which analysis made it, and the captures that it is about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "PageDocument")]
pub struct Document {
    /// The analysis that made it.
    pub analysis: String,
    /// Version of the format of the document.
    pub version: u32,
    /// Every parameter that it was run with.
    pub parameters: Vec<Setting>,
    /// The captures, in the order in which they were named.
    pub inputs: Vec<Heading>,
    /// The page.
    pub page: Page,
}

impl Document {
    /// Schema of its JSON (draft 2020-12).
    pub fn json_schema() -> Value {
        schemars::schema_for!(Self).to_value()
    }
}

/// A parameter and its value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "PageSetting")]
pub struct Setting {
    /// Name of the setting.
    pub name: String,
    /// Its value: text as it is, anything else as JSON.
    pub value: String,
}

/// What a capture is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "PageHeading")]
pub struct Heading {
    /// The session's identifier.
    pub session: String,
    /// Name of the profiler.
    pub tool: String,
    /// Its version.
    pub tool_version: String,
    /// Product names of its GPUs, each with how many of that name there are.
    pub gpus: Vec<String>,
    /// Length of the capture window in ns.
    pub window_ns: u64,
    /// The session's start in ns since the Unix epoch, where the source records it.
    pub session_start_utc_ns: Option<u64>,
    /// Events of all categories.
    pub events: u64,
    /// What was dropped, truncated, skipped or is unsupported.
    pub drops: Vec<Loss>,
    /// Secrets that were replaced in names.
    pub redactions: u64,
}

impl Heading {
    /// Whether it holds no events and no window, as reports of profiled kernels, profiles of memory
    /// and programs do.
    pub(crate) fn has_no_time(&self) -> bool {
        self.window_ns == 0 && self.events == 0
    }

    /// Of a capture that holds so much in all.
    pub fn of(timeline: &Timeline, totals: Totals) -> Self {
        let capture = &timeline.capture;
        let mut gpus: Vec<(Cow<'_, str>, usize)> = Vec::new();
        for device in &capture.devices {
            let name = device.full_name();
            match gpus.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => gpus.push((name, 1)),
            }
        }
        let named = gpus.into_iter().filter(|(name, _)| !name.is_empty());
        let labels = named.map(|(name, count)| match count {
            1 => name.into_owned(),
            _ => format!("{count} × {name}"),
        });
        Self {
            session: timeline.session_id.clone(),
            tool: capture.source.tool.clone(),
            tool_version: capture.source.tool_version.clone(),
            gpus: labels.collect(),
            window_ns: capture.duration_ns,
            session_start_utc_ns: capture.session_start_utc_ns,
            events: totals.events,
            drops: capture.losses.list(),
            redactions: capture.redactions,
        }
    }
}

/// The parameters of a JSON object.
pub fn settings(parameters: &Value) -> Vec<Setting> {
    let setting = |(name, value): (&String, &Value)| Setting {
        name: name.clone(),
        value: value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    };
    let parameters = parameters.as_object().into_iter().flatten();
    parameters.map(setting).collect()
}
