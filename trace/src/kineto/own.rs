//! Traces of our own writer: beside its events, a trace of ours says what the format has no place
//! for, so that the capture comes back as it was.

use std::collections::HashMap;

use serde::Deserialize;

use super::gather::{Gather, OwnId};
use flopwatch_model::{Device, Row, Source, TraceAbout};

/// What a trace of ours says.
#[derive(Debug, Default)]
pub(super) struct Own {
    pub(super) about: TraceAbout,
    /// The row of each track, by the track's process and number.
    pub(super) rows: HashMap<(OwnId, OwnId), Row>,
}

/// What the description of a track says beside its name.
#[derive(Debug, Deserialize)]
struct Described {
    row: Row,
}

/// The row that the description of a track names.
pub(super) fn row(members: &[u8]) -> Option<Row> {
    serde_json::from_slice::<Described>(members)
        .ok()
        .map(|described| described.row)
}

impl Gather<'_> {
    /// Takes `otherData`, where a trace of ours says it.
    pub(super) fn about(&mut self, value: &[u8]) {
        let about = serde_json::from_slice::<TraceAbout>(value).ok();
        if let Some(about) = about.filter(|about| about.writer == TraceAbout::WRITER) {
            self.base = about.session_start_utc_ns.as_ref().and_then(|text| text.parse().ok());
            self.own = Some(Own {
                about,
                rows: HashMap::new(),
            });
        }
    }

    /// Gives the capture what `about` says of it. Somebody else may have written it, so that its
    /// texts are redacted as all are.
    pub(super) fn restore(&mut self, about: TraceAbout) {
        let Source {
            tool,
            tool_version,
            schema_version,
            capture_options,
        } = about.source;
        self.capture.source = Source {
            tool: self.publishable(&tool),
            tool_version: self.publishable(&tool_version),
            schema_version: self.publishable(&schema_version),
            capture_options: capture_options.iter().map(|text| self.publishable(text)).collect(),
        };
        for device in about.devices {
            let device = Device {
                name: self.publishable(&device.name),
                figures_from: self.publishable(&device.figures_from),
                ..device
            };
            self.capture.devices.push(device);
        }
        for loss in about.drops {
            let what = self.publishable(&loss.what);
            self.capture.drops.add(loss.reason, &what, loss.count);
        }
        self.capture.captured.extend(about.captured);
        self.capture.redactions = self.capture.redactions.saturating_add(about.redactions);
        self.capture.duration_ns = about.total_duration_ns;
    }
}
