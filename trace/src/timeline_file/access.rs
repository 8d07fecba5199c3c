//! How HDF5 reaches a file: by its name, or by a descriptor of a file that has none.

use std::path::Path;

use hdf5::File;
use hdf5::plist::FileAccessBuilder;

/// Opens the file at `path` to read it. Nobody locks it.
pub(super) fn open(path: &Path) -> hdf5::Result<File> {
    File::with_options()
        .with_fapl(|access| unlocked(access, path))
        .open(path)
}

/// Has HDF5 take no lock, and the driver that can reach `path`.
pub(super) fn unlocked<'a>(access: &'a mut FileAccessBuilder, path: &Path) -> &'a mut FileAccessBuilder {
    // The default driver resolves links, and refuses a file to whose end none of them leads.
    if is_nameless(path) {
        access.stdio();
    }
    access.file_locking(false)
}

/// Whether `path` is a link to a file without a name: the descriptor, below `/proc`, of one that
/// was removed or never had one.
fn is_nameless(path: &Path) -> bool {
    path.is_symlink() && path.exists() && path.canonicalize().is_err()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn only_a_descriptor_leads_to_a_file_without_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let (named, link) = (folder.path().join("named"), folder.path().join("link"));
        let file = std::fs::File::create(&named).unwrap();
        std::os::unix::fs::symlink(&named, &link).unwrap();
        let descriptor = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        for path in [&named, &link, &descriptor] {
            assert!(!is_nameless(path), "{}", path.display());
        }
        std::fs::remove_file(&named).unwrap();
        assert!(is_nameless(&descriptor));
        for path in [&named, &link] {
            assert!(!is_nameless(path), "nothing is at {}", path.display());
        }
    }
}
