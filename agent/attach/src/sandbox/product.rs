//! Files that a sandboxed tool made, or that somebody else could have put where one is looked for:
//! opened without following anything, and looked at before they are read.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;

/// Why a file is not taken.
#[derive(Debug, thiserror::Error)]
pub enum ProductError {
    /// There is nothing at the path.
    #[error("{0}: is not there")]
    NotFound(PathBuf),
    /// The path is a symbolic link, or a part of it is.
    #[error("{0}: is a symbolic link, and links are not followed here")]
    Link(PathBuf),
    /// The path leads out of the folder.
    #[error("{0}: leads out of its folder")]
    Outside(PathBuf),
    /// A folder, pipe, socket or device is at the path.
    #[error("{path}: is {kind}, not a file")]
    Kind {
        /// Path that the child was to make.
        path: PathBuf,
        /// Kind of what lies there, such as `a pipe`.
        kind: &'static str,
    },
    /// Another name leads to the same file.
    #[error("{path}: has {links} names; a file of somebody else could be behind it")]
    Links {
        /// Path that the child was to make.
        path: PathBuf,
        /// How many names.
        links: u64,
    },
    /// The file belongs to another user than the child.
    #[error("{path}: belongs to user {found}, not to {expected}")]
    Owner {
        /// Path that the child was to make.
        path: PathBuf,
        /// ID of the user that the file belongs to.
        found: u32,
        /// ID of the user that the file should belong to.
        expected: u32,
    },
    /// The file cannot be opened.
    #[error("{path}: {source}")]
    Io {
        /// Path that the child was to make.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// Opens a file below `folder` for reading: no link anywhere on the way, a regular file with one
/// name, and of that `owner`. The folder itself is the caller's: nobody else can put another in its
/// place.
pub fn open(folder: &Path, name: &Path, owner: Option<u32>) -> Result<File, ProductError> {
    let path = folder.join(name);
    let failed = |error: Errno| match error {
        Errno::NOENT | Errno::NOTDIR => ProductError::NotFound(path.clone()),
        Errno::LOOP => ProductError::Link(path.clone()),
        Errno::XDEV => ProductError::Outside(path.clone()),
        // A socket cannot be opened.
        Errno::NXIO => ProductError::Kind {
            path: path.clone(),
            kind: "a socket or a device",
        },
        other => ProductError::Io {
            path: path.clone(),
            source: other.into(),
        },
    };
    let above = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, above, Mode::empty()).map_err(failed)?;
    let beneath = |flags: OFlags| {
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        openat2(
            &folder,
            name,
            flags | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
            how,
        )
    };
    // Looked at before it is opened for reading: opening a device may already do something.
    check(&beneath(OFlags::PATH).map_err(failed)?, &path, owner)?;
    let file = beneath(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).map_err(failed)?;
    // It may be another by now.
    check(&file, &path, owner)?;
    Ok(File::from(file))
}

fn check(opened: &OwnedFd, path: &Path, owner: Option<u32>) -> Result<(), ProductError> {
    let path = path.to_owned();
    let facts = match fstat(opened) {
        Ok(facts) => facts,
        Err(error) => {
            let source = error.into();
            return Err(ProductError::Io { path, source });
        }
    };
    let kind = match FileType::from_raw_mode(facts.st_mode) {
        FileType::RegularFile => None,
        FileType::Symlink => return Err(ProductError::Link(path)),
        FileType::Directory => Some("a folder"),
        FileType::Fifo => Some("a pipe"),
        FileType::Socket => Some("a socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Some("a device"),
        FileType::Unknown => Some("something unknown"),
    };
    if let Some(kind) = kind {
        return Err(ProductError::Kind { path, kind });
    }
    // The type differs between architectures.
    #[allow(clippy::useless_conversion, reason = "32 bits wide on some architectures")]
    let links = u64::from(facts.st_nlink);
    if links != 1 {
        return Err(ProductError::Links { path, links });
    }
    match owner {
        Some(expected) if facts.st_uid != expected => Err(ProductError::Owner {
            path,
            found: facts.st_uid,
            expected,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode as Bits;

    use super::*;

    #[test]
    fn nothing_but_a_plain_file_of_the_tool_is_opened() {
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().join("secret");
        std::fs::write(&secret, "secret").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let own = nix::unistd::geteuid().as_raw();
        let refusal = |name: &str, owner: u32| {
            open(folder.path(), Path::new(name), Some(owner))
                .unwrap_err()
                .to_string()
        };

        std::fs::write(at("plain"), "x").unwrap();
        assert!(open(folder.path(), Path::new("plain"), Some(own)).is_ok());
        assert!(refusal("plain", own + 1).contains("belongs to user"));
        assert!(refusal("absent", own).contains("not there"));

        symlink(&secret, at("link")).unwrap();
        assert!(refusal("link", own).contains("symbolic link"));
        symlink(outside.path(), at("folder-link")).unwrap();
        assert!(refusal("folder-link/secret", own).contains("symbolic link"));
        std::fs::hard_link(&secret, at("hard")).unwrap();
        assert!(refusal("hard", own).contains("2 names"));
        nix::unistd::mkfifo(&at("pipe"), Bits::S_IRUSR).unwrap();
        assert!(refusal("pipe", own).contains("a pipe"));
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        assert!(refusal("socket", own).contains("a socket"));
        std::fs::create_dir(at("folder")).unwrap();
        assert!(refusal("folder", own).contains("a folder"));
        assert!(refusal("../etc/passwd", own).contains("out of its folder"));
        // Making a device takes a right.
        if nix::unistd::geteuid().is_root() {
            let null = nix::sys::stat::makedev(1, 3);
            nix::sys::stat::mknod(&at("device"), nix::sys::stat::SFlag::S_IFCHR, Bits::S_IRUSR, null).unwrap();
            assert!(refusal("device", own).contains("a device"));
        }
    }
}
