//! What a release's headers change for the tracer.

use super::headers::{Headers, Record};
use flopwatch_tracer::layouts::{Field, LAST_KIND, LAYOUTS, Layout};

/// Something that the table does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finding {
    /// The tracer would read something else than it takes it for.
    Moved(String),
    /// The release has more than the tracer knows, which it reads nothing of.
    New(String),
}

/// Holds what headers say against the table.
pub(super) fn compare(headers: &Headers) -> Vec<Finding> {
    let mut findings = new_kinds(headers);
    for layout in &LAYOUTS {
        kinds(headers, layout, &mut findings);
        match newest(headers, layout) {
            Some((version, record)) => fields(layout, version, record, &mut findings),
            None => findings.push(Finding::Moved(format!("CUpti_Activity{} is gone", layout.family))),
        }
    }
    findings
}

/// Kinds with a number above the last one that was looked at.
fn new_kinds(headers: &Headers) -> Vec<Finding> {
    let is_new = |(name, number): &(&String, &u64)| {
        // Not kinds, but how many there are and how wide their numbers are.
        let is_none = ["COUNT", "FORCE_INT"].contains(&name.as_str());
        !is_none && **number > u64::from(LAST_KIND)
    };
    let new = headers.kinds.iter().filter(is_new);
    new.map(|(name, number)| Finding::New(format!("kind {name} ({number})")))
        .collect()
}

fn kinds(headers: &Headers, layout: &Layout, findings: &mut Vec<Finding>) {
    for (name, number) in layout.kinds {
        match headers.kinds.get(*name) {
            Some(found) if *found == u64::from(*number) => {}
            Some(found) => findings.push(Finding::Moved(format!("kind {name} is {found}, and was {number}"))),
            None => findings.push(Finding::Moved(format!("kind {name} ({number}) is gone"))),
        }
    }
}

/// The newest version of a type, with its number.
fn newest<'a>(headers: &'a Headers, layout: &Layout) -> Option<(u32, &'a Record)> {
    let versions = headers.records.iter().filter_map(|(name, record)| {
        let version = match name.strip_prefix(layout.family)? {
            "" => 1,
            number => number.parse().ok()?,
        };
        Some((version, record))
    });
    versions.max_by_key(|(version, _)| *version)
}

fn fields(layout: &Layout, version: u32, record: &Record, findings: &mut Vec<Finding>) {
    let family = layout.family;
    let known = number(layout.bytes);
    for field in layout.fields {
        if let Some(what) = moved(field, record) {
            findings.push(Finding::Moved(format!("{family}, version {version}: {what}")));
        }
    }
    if version > layout.version || (version == layout.version && record.bytes != known) {
        let appended = record.fields.iter().filter(|place| place.at >= known);
        let appended: Vec<String> = appended
            .map(|place| format!("{} at {}", place.name, place.at))
            .collect();
        findings.push(Finding::New(format!(
            "{family}: version {version} of {} bytes, and was version {} of {known}; appended: {}",
            record.bytes,
            layout.version,
            if appended.is_empty() {
                "nothing".to_owned()
            } else {
                appended.join(", ")
            }
        )));
    }
}

/// What is wrong with a field's place; `None` where it is as the table has it.
fn moved(field: &Field, record: &Record) -> Option<String> {
    let (name, at, bytes) = (field.name, number(field.at), number(field.bytes));
    match record.fields.iter().find(|place| place.name == name) {
        Some(place) if place.at != at => Some(format!("{name} is at {}, and was at {at}", place.at)),
        Some(place) if place.bytes < bytes => Some(format!("{name} has {} bytes, and had {bytes}", place.bytes)),
        // A release from before the field: its records end there, which is how the tracer tells.
        None if field.is_appended && record.bytes <= at => None,
        None => Some(format!("{name} is gone, and was at {at}")),
        Some(_) => None,
    }
}

fn number(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
