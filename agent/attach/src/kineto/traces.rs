//! The folder within a container that a program writes its traces to: made, read and removed in the
//! name of the container's user, so that the program can write there and nobody needs a right
//! beyond that user's.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::mount_kind::{self, MountKind};
use crate::process::{ProcessId, Procfs};
use crate::rootfs::{self, RootfsError, Volume};
use crate::user_files::UserFiles;

/// Beginning of the names of such folders; the UID of the capture follows.
const PREFIX: &str = "flopwatch-";
/// Digits of the parts of a UID, between which it has dashes.
const UID_DIGITS: [usize; 5] = [8, 4, 4, 4, 12];
/// Names of a folder that are looked at.
const MAX_NAMES: usize = 4096;

/// Name of a capture's folder.
pub fn folder_name(capture: &str) -> String {
    format!("{PREFIX}{capture}")
}

/// The capture that a folder of that name belongs to; none for any other name. What a workload
/// calls its own may begin alike.
fn owner(name: &str) -> Option<&str> {
    name.strip_prefix(PREFIX).filter(|uid| is_uid(uid))
}

/// Whether a text is a UID as the API server makes them.
fn is_uid(text: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let mut parts = text.split('-');
    let whole = UID_DIGITS.into_iter().all(|digits| {
        let part = parts.next();
        part.is_some_and(|part| part.len() == digits && part.bytes().all(is_digit))
    });
    whole && parts.next().is_none()
}

/// A folder for traces in the container of a process.
#[derive(Clone, Debug)]
pub struct TraceFolder {
    procfs: Procfs,
    process: ProcessId,
    path: PathBuf,
}

impl TraceFolder {
    /// At an absolute path of the container.
    pub fn new(procfs: Procfs, process: ProcessId, path: PathBuf) -> Self {
        Self { procfs, process, path }
    }

    /// The folder's absolute path in the container.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn files(&self) -> Result<UserFiles, RootfsError> {
        UserFiles::open(&self.procfs, self.process)
    }

    /// Room of the file system that it is to be on.
    pub fn volume(&self) -> Result<Volume, RootfsError> {
        self.files()?.volume(self.path.parent().unwrap_or(Path::new("/")))
    }

    /// Whether what is written there takes memory of the container.
    pub fn is_in_memory(&self) -> Result<bool, RootfsError> {
        let parent = self.path.parent().unwrap_or(Path::new("/"));
        Ok(mount_kind::kind(&self.procfs, self.process, parent)? == MountKind::Memory)
    }

    /// Makes it, which must not be there.
    pub fn make(&self) -> Result<(), RootfsError> {
        self.files()?.make_folder(&self.path)
    }

    /// Names of what lies in it; none where it is not there.
    pub fn names(&self) -> Result<Vec<OsString>, RootfsError> {
        self.files()?.list(&self.path, MAX_NAMES)
    }

    /// Whether a file of that name is there.
    pub fn has(&self, name: &str) -> Result<bool, RootfsError> {
        self.files()?.has(&self.path.join(name))
    }

    /// Copies a file of it out, at most `limit` bytes; `progress` is told the bytes so far and may
    /// return false to stop.
    pub fn copy_out(
        &self,
        name: &str,
        to: &mut dyn Write,
        limit: u64,
        progress: impl FnMut(u64) -> bool,
    ) -> Result<u64, RootfsError> {
        let path = self.path.join(name);
        let file = self.files()?.open_file(&path, limit)?;
        rootfs::copy(&file, &path, to, limit, progress)
    }

    /// Removes it with the files in it; true when it was there. Safe to run twice.
    pub fn remove(&self) -> Result<bool, RootfsError> {
        let files = self.files()?;
        for name in files.list(&self.path, MAX_NAMES)? {
            files.remove(&self.path.join(name))?;
        }
        files.remove_folder(&self.path)
    }
}

/// The captures after which folders in a folder of the container are named. Whoever made them, so
/// that it says nothing of whose they are.
pub fn captures_in(procfs: &Procfs, process: ProcessId, folder: &Path) -> Result<Vec<String>, RootfsError> {
    let names = UserFiles::open(procfs, process)?.list(folder, MAX_NAMES)?;
    let captures = names.iter().filter_map(|name| Some(owner(name.to_str()?)?.to_owned()));
    Ok(captures.collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    const UID: &str = "0a1b2c3d-1111-2222-3333-444455556666";

    fn folder(at: &Path) -> TraceFolder {
        let procfs = Procfs::default();
        let own = procfs.identify(i32::try_from(std::process::id()).unwrap()).unwrap();
        TraceFolder::new(procfs, own, at.join(folder_name(UID)))
    }

    #[test]
    fn a_folder_is_its_users_alone_and_goes_with_what_is_in_it() {
        let temporary = tempfile::tempdir().unwrap();
        let traces = folder(temporary.path());
        traces.make().unwrap();
        let made = std::fs::metadata(traces.path()).unwrap();
        assert_eq!(made.permissions().mode() & 0o777, 0o700);
        assert_eq!(made.uid(), nix::unistd::geteuid().as_raw());
        assert!(traces.make().is_err(), "what is there is not taken over");
        std::fs::write(traces.path().join("trace_7.json"), "{}").unwrap();
        symlink("/etc/passwd", traces.path().join("link")).unwrap();
        assert!(traces.has("trace_7.json").unwrap() && !traces.has("link").unwrap());
        let mut copy = Vec::new();
        assert_eq!(traces.copy_out("trace_7.json", &mut copy, 2, |_| true).unwrap(), 2);
        assert!(traces.copy_out("link", &mut copy, 1 << 20, |_| true).is_err());
        let procfs = Procfs::default();
        assert_eq!(captures_in(&procfs, traces.process, temporary.path()).unwrap(), [UID]);
        assert!(traces.remove().unwrap());
        assert!(!traces.remove().unwrap());
        assert!(Path::new("/etc/passwd").exists());
    }

    #[test]
    fn a_trace_that_the_containers_user_may_not_read_stays_in_its_folder() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: a file of another user needs root");
            return;
        }
        let temporary = tempfile::tempdir().unwrap();
        let traces = folder(temporary.path());
        traces.make().unwrap();
        let planted = traces.path().join("trace_7.json");
        std::fs::write(&planted, "another user's").unwrap();
        std::os::unix::fs::chown(&planted, Some(41_001), Some(41_001)).unwrap();
        std::fs::set_permissions(&planted, std::fs::Permissions::from_mode(0o600)).unwrap();
        let mut copy = Vec::new();
        let refused = traces.copy_out("trace_7.json", &mut copy, 1 << 20, |_| true);
        assert!(matches!(refused, Err(RootfsError::Io { .. })), "{refused:?}");
        assert!(copy.is_empty());
        assert!(traces.remove().unwrap());
    }

    #[test]
    fn a_folder_that_may_never_answer_is_not_opened() {
        let traces = folder(Path::new("/proc"));
        assert!(matches!(traces.volume(), Err(RootfsError::Mount(_))));
        assert!(!traces.is_in_memory().unwrap());
        assert!(matches!(traces.make(), Err(RootfsError::Mount(_))));
        assert!(matches!(traces.names(), Err(RootfsError::Mount(_))));
    }

    #[test]
    fn a_folder_is_a_captures_where_its_name_ends_with_a_uid() {
        assert_eq!(owner(&folder_name(UID)), Some(UID));
        for name in [
            "flopwatch-results",
            "flopwatch-serve-Ab12Cd",
            "flopwatch-",
            "flopwatch-0a1b2c3d",
            "flopwatch-0A1B2C3D-1111-2222-3333-444455556666",
            "flopwatch-0a1b2c3d-1111-2222-3333-444455556666.bak",
            "flopwatch-0a1b2c3d-1111-2222-3333-444455556666-",
            "flopwatch-0a1b2c3d-1111-2222-3333-44445555666g",
            "0a1b2c3d-1111-2222-3333-444455556666",
        ] {
            assert_eq!(owner(name), None, "{name}");
        }
    }
}
