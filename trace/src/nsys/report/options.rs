//! What was asked to be recorded, and by which version.

use super::ReportError;
use super::container::{Container, message};
use super::layout::{CAPTURED, EXPORTED};
use super::rows::Rows;
use crate::version;

/// The section of what was asked for. Its environments are passed over.
const OPTIONS: &str = "Analysis Options Data";

/// The section of what the profiler's user interface shows. Its command line, host and date are
/// passed over.
const SHOWN: &str = "UI Data";

/// What exports call the kinds of events that may be asked for, by number.
const KINDS: [(u64, &[u8]); 3] = [(12, b"NvtxEvents"), (123, b"Cuda"), (127, b"OSRuntime")];

/// The table of what was asked to be recorded, as far as it names events that are read.
pub(super) fn of_capture(container: &Container) -> Result<Rows, ReportError> {
    let mut rows = Rows::new(&CAPTURED);
    let Some(section) = container.section(OPTIONS) else {
        return Ok(rows);
    };
    let bytes = container.read(section, OPTIONS)?;
    for field in message(&bytes, section.begin).fields() {
        let (2, value) = field.map_err(ReportError::of(OPTIONS))? else {
            continue;
        };
        let Some(kinds) = value.message() else { continue };
        for field in kinds.fields() {
            let (1, value) = field.map_err(ReportError::of(OPTIONS))? else {
                continue;
            };
            let known = KINDS.iter().find(|(number, _)| value.number() == Some(*number));
            if let Some((_, word)) = known {
                rows.push(&[], &[b"CAPTURE_EVENT_TYPE", word]);
            }
        }
    }
    Ok(rows)
}

/// Which Nsight Systems recorded, as the report says it.
#[derive(Debug, Default)]
pub(super) struct Version {
    pub(super) recorded: Option<version::Version>,
}

impl Version {
    /// Reads the version that recorded 6, or else the one that made the report of it 21.
    pub(super) fn read(container: &Container) -> Result<Self, ReportError> {
        let Some(section) = container.section(SHOWN) else {
            return Ok(Self::default());
        };
        let bytes = container.read(section, SHOWN)?;
        let (mut recorded, mut imported) = (None, None);
        for field in message(&bytes, section.begin).fields() {
            let (number, value) = field.map_err(ReportError::of(SHOWN))?;
            let text = || std::str::from_utf8(value.bytes()?).ok();
            // What is no version is not what this field is known to hold.
            match number {
                6 => recorded = text().and_then(version::Version::parse),
                21 => imported = text().and_then(version::Version::parse),
                _ => {}
            }
        }
        let recorded = recorded.or(imported);
        Ok(Self { recorded })
    }

    /// The table of what made the file.
    pub(super) fn rows(&self) -> Rows {
        let mut rows = Rows::new(&EXPORTED);
        rows.push(&[], &[b"EXPORT_PRODUCT_NAME", b"NVIDIA Nsight Systems"]);
        if let Some(version) = self.recorded {
            rows.push(&[], &[b"EXPORT_PRODUCT_VERSION", version.to_string().as_bytes()]);
        }
        rows
    }
}
