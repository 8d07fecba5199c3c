//! The folder of the results, which may hold those of an earlier recording.

use std::io;
use std::path::{Path, PathBuf};

use flopwatch_api::artifact::{CUDA_TRACE, MAX_REPORTS, RING, TIMELINE, report_name, stream_name};
use flopwatch_pipeline::products::SUMMARY;

/// Every file that a recording may leave.
fn names() -> impl Iterator<Item = String> {
    let made = [TIMELINE, SUMMARY, CUDA_TRACE, RING].map(str::to_owned);
    let raw = (1..=MAX_REPORTS).flat_map(|number| [report_name(number), stream_name(number)]);
    made.into_iter().chain(raw)
}

/// The first file of an earlier recording in `folder`.
pub(super) fn earlier(folder: &Path) -> Option<String> {
    names().find(|name| folder.join(name).symlink_metadata().is_ok())
}

/// Removes the files of an earlier recording from `folder`: one of them beside those of a later one
/// would be taken for its own. The error is of the path with it.
pub(super) fn clear(folder: &Path) -> Result<(), (PathBuf, io::Error)> {
    for path in names().map(|name| folder.join(name)) {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err((path, error)),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_an_earlier_recording_are_known_and_go_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| std::fs::write(folder.path().join(name), "").unwrap();
        write("notes.txt");
        assert_eq!(earlier(folder.path()), None);
        assert_eq!(earlier(&folder.path().join("missing")), None);
        for name in ["capture.2.nsys-rep", "capture.qdstrm", "summary.json"] {
            write(name);
        }
        assert_eq!(earlier(folder.path()).as_deref(), Some("summary.json"));
        clear(folder.path()).unwrap();
        assert_eq!(earlier(folder.path()), None);
        assert!(folder.path().join("notes.txt").is_file());
        clear(folder.path()).unwrap();
    }
}
