//! Removing a file whose name may come to mean another one at any moment.
//!
//! The kernel removes by name, and who found a file to be of no use may lose the processor before
//! it does: another process may remove it meanwhile and make a new one in its place. So the file is
//! moved aside first, to a name that nobody asks for, and looked at again there, where nobody can
//! open it any more.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::lease;

/// How the name of a file begins that was moved aside. Who is killed before it removed the file
/// leaves it to the next sweep.
pub(crate) const NAME: &str = "flopwatch-aside-";

/// Removes the file at `path`, and says whether it did: when it is the one that was `judged`, and
/// either `is_useless` says so still or nobody has it open for writing. Otherwise it goes back to
/// its place, where nobody made a new one meanwhile; a new one stays, since all who come from then
/// on find that one. Whoever looked for the file in between, for some microseconds, found none.
pub(crate) fn remove(path: &Path, judged: &File, is_useless: impl FnOnce() -> bool) -> bool {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let aside = path.with_file_name(format!("{NAME}{}-{}", std::process::id(), since.as_nanos()));
    if rename(path, &aside).is_err() {
        return false;
    }
    let is_judged = is_same(&aside, judged).unwrap_or(false);
    let is_removed = is_judged && (is_useless() || !lease::is_written(judged).unwrap_or(true));
    if is_removed || rename(&aside, path).is_err() {
        fs::remove_file(&aside).ok();
    }
    is_removed
}

/// Moves a file to a name that is free.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

/// An open file's number is nobody else's.
fn is_same(path: &Path, file: &File) -> io::Result<bool> {
    let (named, open) = (fs::symlink_metadata(path)?, file.metadata()?);
    Ok((named.dev(), named.ino()) == (open.dev(), open.ino()))
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::path::PathBuf;

    use super::*;

    struct Rig {
        folder: tempfile::TempDir,
        path: PathBuf,
        judged: File,
    }

    /// A folder with one file.
    fn rig() -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("NSys-1");
        fs::write(&path, "judged").unwrap();
        let judged = File::open(&path).unwrap();
        Rig { folder, path, judged }
    }

    impl Rig {
        fn user(&self) -> File {
            OpenOptions::new().write(true).open(&self.path).unwrap()
        }

        /// What the folder's only file holds; None: there is none.
        fn left(&self) -> Option<String> {
            let names: Vec<_> = fs::read_dir(self.folder.path())
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .collect();
            assert!(names.is_empty() || names == [self.path.clone()], "{names:?}");
            names.first().map(|path| fs::read_to_string(path).unwrap())
        }
    }

    #[test]
    fn a_file_of_no_use_goes_though_others_have_it_open() {
        let rig = rig();
        let _user = rig.user();
        assert!(remove(&rig.path, &rig.judged, || true));
        assert_eq!(rig.left(), None);
    }

    #[test]
    fn what_came_to_be_of_use_again_is_put_back() {
        let rig = rig();
        let path = rig.path.clone();
        let _user = rig.user();
        let is_useless = || {
            assert!(!path.exists(), "nobody can open it while it is looked at");
            false
        };
        assert!(!remove(&rig.path, &rig.judged, is_useless));
        assert_eq!(rig.left().as_deref(), Some("judged"));
    }

    #[test]
    fn what_nobody_holds_and_nobody_has_open_goes() {
        let rig = rig();
        assert!(remove(&rig.path, &rig.judged, || false));
        assert_eq!(rig.left(), None);
    }

    #[test]
    fn a_file_that_was_made_anew_in_its_place_stays() {
        // Before it is moved aside, by somebody who removed the one that was judged.
        let before = rig();
        fs::remove_file(&before.path).unwrap();
        fs::write(&before.path, "new").unwrap();
        assert!(!remove(&before.path, &before.judged, || true));
        assert_eq!(before.left().as_deref(), Some("new"));

        // And while it is aside: then there is no place for it any more.
        let meanwhile = rig();
        let _user = meanwhile.user();
        let makes_anew = || {
            fs::write(&meanwhile.path, "new").unwrap();
            false
        };
        assert!(!remove(&meanwhile.path, &meanwhile.judged, makes_anew));
        assert_eq!(meanwhile.left().as_deref(), Some("new"));
    }

    #[test]
    fn what_is_gone_is_not_removed() {
        let rig = rig();
        fs::remove_file(&rig.path).unwrap();
        assert!(!remove(&rig.path, &rig.judged, || true));
        assert_eq!(rig.left(), None);
    }
}
