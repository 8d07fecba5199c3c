//! What a report says of itself, held against what was read.

use super::events::DecodedEvents;
use super::session::Session;
use super::strings::Strings;
use crate::version::Version;
use flopwatch_model::{LossReason, Losses, count};

/// The newest version whose reports were held against exports: year and release.
const NEWEST: (u32, u32) = (2026, 1);

/// Columns that refer to strings. 0 is an ordinary string, or none.
const REFERRING: [(&str, &str); 7] = [
    ("CUPTI_ACTIVITY_KIND_KERNEL", "demangledName"),
    ("CUPTI_ACTIVITY_KIND_KERNEL", "shortName"),
    ("CUPTI_ACTIVITY_KIND_RUNTIME", "nameId"),
    ("OSRT_API", "nameId"),
    ("CUDNN_EVENTS", "nameId"),
    ("CUBLAS_EVENTS", "nameId"),
    ("NVTX_EVENTS", "textId"),
];

/// Counts what does not fit.
pub(super) fn check_counts(
    losses: &mut Losses,
    session: &Session,
    strings: &Strings,
    read: &DecodedEvents,
    version: Option<Version>,
) {
    let counts = session.counts;
    for (what, stated, found) in [
        ("events", counts.events, read.count),
        ("generic events", counts.generic, read.generic),
        ("strings", counts.strings, count(strings.texts.len())),
        ("names of threads", counts.threads, count(strings.threads.len())),
    ] {
        let stated = stated.unwrap_or(found);
        let missing = format!("{what} that the report counts and does not hold");
        losses.add(LossReason::Dropped, &missing, stated.saturating_sub(found));
        let more = format!("{what} that the report does not count");
        losses.add(LossReason::Inferred, &more, found.saturating_sub(stated));
    }
    let known = count(strings.texts.len());
    for (table, column) in REFERRING {
        let lost = read
            .table(table)
            .map_or(0, |rows| rows.count_from(column, known.max(1)));
        let what = format!("{table}: {column} of no string");
        losses.add(LossReason::Truncated, &what, count(lost));
    }
    if let Some(version) = version.filter(|version| version.release() > NEWEST) {
        let (year, release) = NEWEST;
        let what = format!(
            "fields of a report of Nsight Systems {version} taken for those of {year}.{release}, the newest that was held \
             against exports"
        );
        losses.add(LossReason::Inferred, &what, 1);
    }
}
