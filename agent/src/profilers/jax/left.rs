//! The result of a service of an earlier version, which writes it to the program's own disk instead
//! of answering with it. It is read and removed as the program's user.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use flopwatch_attach::process::{ProcessId, Procfs};
use flopwatch_attach::rootfs::{self, RootfsError};
use flopwatch_attach::user_files::UserFiles;
use flopwatch_pipeline::failure::chain;
use tracing::debug;

/// What the service is told the machine is called: the file has that name.
pub(super) const HOST: &str = "flopwatch";
/// Most files of a folder that are removed: a service writes one, and a capture has few sessions.
const MAX_FILES: usize = 64;

/// Folder on the program's own disk that a service of an earlier version is told to write to.
pub(super) fn folder(capture: &str) -> PathBuf {
    format!("/tmp/flopwatch-{capture}").into()
}

/// Name of the session of the window that opened then, and of the folder that the service makes for
/// it.
///
/// A service that is told to end a session which has ended keeps that for the next one of the name,
/// and ends it as soon as it has begun. So no two windows have one name, those of one capture
/// neither.
pub(super) fn session(capture: &str, opened_utc_ns: u64) -> String {
    format!("{}{opened_utc_ns}", sessions(capture))
}

/// Begin of the names of a capture's sessions.
fn sessions(capture: &str) -> String {
    format!("flopwatch-{capture}-")
}

/// Folders in which a service makes one for each session, by its version.
fn places(capture: &str) -> [PathBuf; 2] {
    let folder = folder(capture);
    let later = folder.join("plugins").join("profile");
    [folder, later]
}

/// Copies the result, at most `limit` bytes of it; none where there is none.
pub(super) fn take(
    procfs: &Procfs,
    process: ProcessId,
    (capture, session): (&str, &str),
    to: &mut dyn Write,
    limit: u64,
) -> Result<u64, RootfsError> {
    let files = UserFiles::open(procfs, process)?;
    for place in places(capture) {
        let path = place.join(session).join(format!("{HOST}.xplane.pb"));
        let file = match files.open_file(&path, limit) {
            Err(RootfsError::NotFound { .. }) => continue,
            opened => opened?,
        };
        return rootfs::copy(&file, &path, to, limit, |_| true);
    }
    Ok(0)
}

/// Removes what a service wrote for the capture. Safe to run twice; what does not work is logged.
pub(super) fn clean(procfs: &Procfs, process: ProcessId, capture: &str) {
    match UserFiles::open(procfs, process).and_then(|files| clear(&files, capture)) {
        Ok(()) => {}
        Err(error) => debug!(error = %chain(&error), "what the program's service wrote cannot be removed"),
    }
}

fn clear(files: &UserFiles, capture: &str) -> Result<(), RootfsError> {
    let (folder, sessions) = (folder(capture), sessions(capture));
    for place in places(capture) {
        let of_capture = |name: &OsString| name.as_encoded_bytes().starts_with(sessions.as_bytes());
        for session in files.list(&place, MAX_FILES)?.into_iter().filter(of_capture) {
            let session = place.join(session);
            for name in files.list(&session, MAX_FILES)? {
                files.remove(&session.join(name))?;
            }
            files.remove_folder(&session)?;
        }
        // Up to the folder itself: each is empty once what was in it is gone.
        for emptied in place.ancestors().take_while(|emptied| emptied.starts_with(&folder)) {
            if emptied != folder {
                files.remove_folder(emptied)?;
            }
        }
    }
    files.remove_folder(&folder).map(drop)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::dumps::tests::user_of;
    use super::*;

    fn files(container: &Path) -> UserFiles {
        UserFiles::of_folder(container, user_of(std::process::id())).unwrap()
    }

    #[test]
    fn all_that_a_service_made_for_a_capture_goes_and_nothing_else() {
        let container = tempfile::tempdir().unwrap();
        let files = files(container.path());
        let inside = |path: &Path| container.path().join(path.strip_prefix("/").unwrap());
        let folders = |capture: &str| {
            let windows = [7, 8].map(|opened| session(capture, opened));
            let folders = |place: PathBuf| windows.clone().map(|session| inside(&place.join(session)));
            places(capture).into_iter().flat_map(folders).collect::<Vec<_>>()
        };
        for folder in folders("0-1").into_iter().chain(folders("0-2")) {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("flopwatch.xplane.pb"), "profile").unwrap();
        }
        clear(&files, "0-1").unwrap();
        clear(&files, "0-1").unwrap();
        assert!(!inside(&folder("0-1")).exists());
        for folder in folders("0-2") {
            assert!(folder.join("flopwatch.xplane.pb").exists());
        }
    }

    #[test]
    fn a_link_in_the_place_of_the_folder_leads_nowhere() {
        let container = tempfile::tempdir().unwrap();
        let files = files(container.path());
        let elsewhere = container.path().join("elsewhere").join(session("0-1", 7));
        std::fs::create_dir_all(&elsewhere).unwrap();
        std::fs::write(elsewhere.join("flopwatch.xplane.pb"), "theirs").unwrap();
        std::fs::create_dir(container.path().join("tmp")).unwrap();
        std::os::unix::fs::symlink("../elsewhere", container.path().join("tmp/flopwatch-0-1")).unwrap();
        assert!(clear(&files, "0-1").is_err());
        assert!(elsewhere.join("flopwatch.xplane.pb").exists());
    }
}
