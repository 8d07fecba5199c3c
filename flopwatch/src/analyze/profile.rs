//! Dashboards of files that a program's own operation profiler wrote: `analyze operations` shows
//! them like the operations of a capture. Such a file is bounded JSON (`LONGEST_FILE`) and is read
//! in this process, not in a sandboxed child.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use flopwatch_analysis::Request;
use flopwatch_analysis::analyses::operations::profile::{LONGEST_FILE, is_profile, write};
use flopwatch_report::{Format, Layout};

use super::Error;

/// Names of the analyses that accept a profile in the place of a capture.
const ANALYSES: [&str; 2] = ["operations", "operations-profile"];

/// Bytes at the beginning of a file that are searched for an entry or a summary of a profile.
const PROBE_BYTES: u64 = 64 << 10;

/// The dashboard of the profile in `file`, as `request` has it written; `None` where the file is no
/// profile, or is no regular file, or the analysis accepts none.
pub(crate) fn dashboard(request: &Request, file: &Path) -> Result<Option<Vec<u8>>, Error> {
    // Pipes are for the readers of captures: what was read of one to look at it would be gone.
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    if !is_file || !ANALYSES.contains(&request.definition().name) {
        return Ok(None);
    }
    render(file, request.format(), request.layout())
}

/// The dashboard of the profile in `file`, in `format`; `None` where the file is no profile. The
/// error is `Profile` where the file is a profile that cannot be read.
pub(crate) fn render_profile(file: &Path, format: Format) -> Result<Option<Vec<u8>>, Error> {
    render(file, format, Layout::default())
}

fn render(file: &Path, format: Format, layout: Layout) -> Result<Option<Vec<u8>>, Error> {
    let mut json = Vec::new();
    let mut source = File::open(file)?;
    source.by_ref().take(PROBE_BYTES).read_to_end(&mut json)?;
    if !is_profile(&json) {
        return Ok(None);
    }
    // One byte more than is read says that the file is longer.
    let longest = u64::try_from(LONGEST_FILE).unwrap_or(u64::MAX);
    source
        .take(longest.saturating_sub(PROBE_BYTES).saturating_add(1))
        .read_to_end(&mut json)?;
    let mut written = Vec::new();
    write(&json, format, layout, &mut written).map_err(|error| Error::Profile {
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
        let text = |name| {
            let request = Request::from_words(name, []).unwrap();
            request.written_as(Format::Text).unwrap()
        };
        let request = text("operations");
        std::fs::write(&path, r#"[{"operation": "load", "duration_ms": 2.5}]"#).unwrap();
        let page = dashboard(&request, &path).unwrap().unwrap();
        assert!(String::from_utf8(page).unwrap().contains("load"));
        let other = text("summary");
        assert!(dashboard(&other, &path).unwrap().is_none());
        std::fs::write(&path, r#"[{"operation": "load", "duration_ms": -1}]"#).unwrap();
        let error = dashboard(&request, &path).unwrap_err().to_string();
        assert!(error.contains("any-name") && error.contains("duration_ms"), "{error}");
        std::fs::write(&path, r#"{"traceEvents": []}"#).unwrap();
        assert!(dashboard(&request, &path).unwrap().is_none());
    }
}
