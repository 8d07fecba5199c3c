//! Metadata in traces of Flopwatch's own writer: what the Chrome format has no field for, so that a
//! capture can be read back as it was.

use std::collections::HashMap;

use serde::Deserialize;

use super::gather::{Gather, OwnedId};
use flopwatch_model::{Device, MigInstance, Row, Source, TraceAbout};

/// The metadata of a trace that Flopwatch wrote.
#[derive(Debug, Default)]
pub(super) struct WriterMetadata {
    pub(super) about: TraceAbout,
    /// The row of each track, by the track's process and number.
    pub(super) rows: HashMap<(OwnedId, OwnedId), Row>,
}

/// The members of a track's description (`args` of `thread_name`) that only Flopwatch writes.
#[derive(Debug, Deserialize)]
struct TrackDescription {
    row: Row,
}

/// Parses the row in the description of a track; `None` where it holds none.
pub(super) fn row(members: &[u8]) -> Option<Row> {
    serde_json::from_slice::<TrackDescription>(members)
        .ok()
        .map(|description| description.row)
}

impl Gather<'_> {
    /// Parses `otherData` and keeps it where Flopwatch wrote the trace.
    pub(super) fn about(&mut self, value: &[u8]) {
        let about = serde_json::from_slice::<TraceAbout>(value).ok();
        if let Some(about) = about.filter(|about| about.writer == TraceAbout::WRITER) {
            self.base = about.session_start_utc_ns.as_ref().and_then(|text| text.parse().ok());
            self.writer_metadata = Some(WriterMetadata {
                about,
                rows: HashMap::new(),
            });
        }
    }

    /// Sets source, devices, losses and captured categories of the capture from `about`. Its texts
    /// are redacted like all others, since somebody else may have written them.
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
            let mig = device.mig.map(|mig| MigInstance {
                uuid: self.publishable(&mig.uuid),
                ..mig
            });
            let device = Device {
                name: self.publishable(&device.name),
                figures_from: self.publishable(&device.figures_from),
                mig,
                ..device
            };
            self.capture.devices.push(device);
        }
        for loss in about.drops {
            let what = self.publishable(&loss.what);
            self.capture.losses.add(loss.reason, &what, loss.count);
        }
        self.capture.captured.extend(about.captured);
        self.capture.redactions = self.capture.redactions.saturating_add(about.redactions);
        self.capture.duration_ns = about.total_duration_ns;
    }
}
