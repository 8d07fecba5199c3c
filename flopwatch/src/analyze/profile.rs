//! A file that a program's own operation profiler wrote, which `analyze operations` shows like the operations of a capture.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use flopwatch_analysis::Request;
use flopwatch_analysis::analyses::operations::profile::{LONGEST_FILE, is_profile, write};
use flopwatch_report::Format;

use super::Error;

/// Analyses that a profile can stand in for a capture of.
const NAMES: [&str; 2] = ["operations", "operations-profile"];

/// Bytes at the beginning of a file by which a profile is told: it has an entry, or a summary, within them.
const BEGINNING: u64 = 64 << 10;

/// The dashboard of a profile as `request` wants it written; `None` where the file is no profile, or the request is about something else.
pub(super) fn dashboard(request: &Request, file: &Path, format: Format) -> Result<Option<Vec<u8>>, Error> {
    // Pipes are for the readers of captures: what was read of one to look at it would be gone.
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    if !is_file || !NAMES.contains(&request.definition().name) {
        return Ok(None);
    }
    written(file, format)
}

/// The dashboard of the profile in `file`, written in `format`; `None` where the file is no profile.
pub(crate) fn written(file: &Path, format: Format) -> Result<Option<Vec<u8>>, Error> {
    let mut json = Vec::new();
    let mut source = File::open(file)?;
    source.by_ref().take(BEGINNING).read_to_end(&mut json)?;
    if !is_profile(&json) {
        return Ok(None);
    }
    // One byte more than is read says that the file is longer.
    let longest = u64::try_from(LONGEST_FILE).unwrap_or(u64::MAX);
    source
        .take(longest.saturating_sub(BEGINNING).saturating_add(1))
        .read_to_end(&mut json)?;
    let mut written = Vec::new();
    write(&json, format, &mut written).map_err(|error| Error::Profile {
        file: file.to_owned(),
        error,
    })?;
    Ok(Some(written))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_told_by_what_it_holds_and_a_trace_is_left_to_its_reader() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("any-name");
        let request = Request::from_words("operations", []).unwrap();
        std::fs::write(&path, r#"[{"operation": "load", "duration_ms": 2.5}]"#).unwrap();
        let page = dashboard(&request, &path, Format::Text).unwrap().unwrap();
        assert!(String::from_utf8(page).unwrap().contains("load"));
        let other = Request::from_words("summary", []).unwrap();
        assert!(dashboard(&other, &path, Format::Text).unwrap().is_none());
        std::fs::write(&path, r#"[{"operation": "load", "duration_ms": -1}]"#).unwrap();
        let error = dashboard(&request, &path, Format::Text).unwrap_err().to_string();
        assert!(error.contains("any-name") && error.contains("duration_ms"), "{error}");
        std::fs::write(&path, r#"{"traceEvents": []}"#).unwrap();
        assert!(dashboard(&request, &path, Format::Text).unwrap().is_none());
    }
}
