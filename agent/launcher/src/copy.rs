//! Puts the launcher and the profiler's tools into the pod's volume, from images without a shell.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::needed::{self, Needed};

/// A failed step and the path it failed on.
#[derive(Debug)]
pub struct CopyError {
    path: PathBuf,
    action: &'static str,
    source: io::Error,
}

impl std::fmt::Display for CopyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot {} {}: {}", self.action, self.path.display(), self.source)
    }
}

impl std::error::Error for CopyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl CopyError {
    /// `action` on `path` failed.
    pub fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self {
            path: path.to_owned(),
            action,
            source,
        }
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CopyError {
    move |source| CopyError::new(action, path, source)
}

/// Name of the fallback library in the tools folder.
pub const FALLBACK: &str = "libflopwatch-fallback.so";
/// The library itself; its source is in `fallback/`.
static FALLBACK_LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libflopwatch-fallback.so"));

/// Name of the flight recorder in the tools folder.
pub const RECORDER: &str = "libflopwatch-recorder.so";
/// Name of the CUDA tracer in the tools folder.
pub const TRACER: &str = "libflopwatch_cuda.so";

/// Copies this very program to `DIR/launcher`, mode 0755, and puts the fallback library, the flight
/// recorder and the CUDA tracer beside it, each in one step as seen by readers. Returns the
/// program's path and bytes.
pub fn install(dir: &Path) -> Result<(PathBuf, u64), CopyError> {
    install_fallback(dir)?;
    install_library(dir, RECORDER, flopwatch_recorder::LIBRARY)?;
    install_library(dir, TRACER, flopwatch_tracer::LIBRARY)?;
    let own = Path::new("/proc/self/exe");
    let target = dir.join("launcher");
    let temporary = dir.join(".launcher.partial");
    remove(&temporary)?;
    let bytes = copy_file(own, &temporary, 0o755)?;
    fs::rename(&temporary, &target).map_err(failed("rename to", &target))?;
    Ok((target, bytes))
}

/// Puts the fallback library into `dir` in one step as seen by readers, and returns its path.
pub fn install_fallback(dir: &Path) -> Result<PathBuf, CopyError> {
    install_library(dir, FALLBACK, FALLBACK_LIBRARY)
}

/// Puts a library into `dir` under a name, in one step as seen by readers, and returns its path.
pub fn install_library(dir: &Path, name: &str, mut bytes: &[u8]) -> Result<PathBuf, CopyError> {
    let library = dir.join(name);
    let temporary = dir.join(format!(".{name}.partial"));
    remove(&temporary)?;
    copy_from(&mut bytes, &temporary, 0o644)?;
    fs::rename(&temporary, &library).map_err(failed("rename to", &library))?;
    Ok(library)
}

/// Copies what is needed of the folder `source` to `DIR/<its name>`, in one step as seen by
/// readers; an earlier copy is replaced. Every user may read the copy, as the pod's containers may
/// have different ones. Returns the path and the bytes of regular files; anything but files,
/// folders and symlinks is an error.
pub fn copy(source: &Path, dir: &Path, needed: &Needed) -> Result<(PathBuf, u64), CopyError> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "not the name of a folder");
    let name = source.file_name().ok_or_else(invalid).map_err(failed("copy", source))?;
    let target = dir.join(name);
    let mut partial = OsString::from(".");
    partial.push(name);
    partial.push(".partial");
    let temporary = dir.join(partial);
    remove(&temporary)?;
    let names = needed::names(source).map_err(failed("list", source))?;
    let bytes = copy_entries(source, &temporary, &needed.among(&names))?;
    remove(&target)?;
    fs::rename(&temporary, &target).map_err(failed("rename to", &target))?;
    Ok((target, bytes))
}

fn copy_folder(source: &Path, target: &Path) -> Result<u64, CopyError> {
    let names = needed::names(source).map_err(failed("list", source))?;
    copy_entries(source, target, &Needed::everything().among(&names))
}

fn copy_entries(source: &Path, target: &Path, names: &[&OsString]) -> Result<u64, CopyError> {
    fs::create_dir(target).map_err(failed("make folder", target))?;
    fs::set_permissions(target, fs::Permissions::from_mode(0o755)).map_err(failed("set the mode of", target))?;
    let mut bytes = 0;
    for name in names {
        let (from, to) = (source.join(name), target.join(name));
        let metadata = fs::symlink_metadata(&from).map_err(failed("look at", &from))?;
        if metadata.is_dir() {
            bytes += copy_folder(&from, &to)?;
        } else if metadata.is_symlink() {
            let link = fs::read_link(&from).map_err(failed("read link", &from))?;
            symlink(&link, &to).map_err(failed("make link", &to))?;
        } else if metadata.is_file() {
            bytes += copy_file(&from, &to, readable(metadata.permissions().mode()))?;
        } else {
            let kind = io::Error::new(io::ErrorKind::InvalidInput, "neither a file, a folder nor a symlink");
            return Err(failed("copy", &from)(kind));
        }
    }
    Ok(bytes)
}

/// Readable by all, executable by all when by anyone; nothing set-user, nothing group-writable.
fn readable(mode: u32) -> u32 {
    (if mode & 0o111 == 0 { 0o444 } else { 0o555 }) | (mode & 0o200)
}

fn copy_file(source: &Path, target: &Path, mode: u32) -> Result<u64, CopyError> {
    let mut from = File::open(source).map_err(failed("open", source))?;
    copy_from(&mut from, target, mode)
}

fn copy_from(from: &mut dyn io::Read, target: &Path, mode: u32) -> Result<u64, CopyError> {
    let mut to = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(target)
        .map_err(failed("create", target))?;
    let bytes = io::copy(from, &mut to).map_err(failed("write", target))?;
    to.set_permissions(fs::Permissions::from_mode(mode))
        .map_err(failed("set the mode of", target))?;
    Ok(bytes)
}

/// Removes a file or a folder; nothing there is fine.
fn remove(path: &Path) -> Result<(), CopyError> {
    let removed = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => Err(error),
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
    };
    removed.map_err(failed("remove", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_copied_with_links_and_modes_and_replaces_an_earlier_copy() {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (folder.path().join("tools"), folder.path().join("volume"));
        fs::create_dir_all(source.join("sub")).unwrap();
        fs::create_dir(&target).unwrap();
        fs::write(source.join("program"), "12345").unwrap();
        fs::set_permissions(source.join("program"), fs::Permissions::from_mode(0o4700)).unwrap();
        fs::write(source.join("sub/data"), "678").unwrap();
        symlink("program", source.join("link")).unwrap();
        for _ in 0..2 {
            let (path, bytes) = copy(&source, &target, &Needed::everything()).unwrap();
            assert_eq!((path, bytes), (target.join("tools"), 8));
        }
        let mode = |name: &str| {
            fs::metadata(target.join("tools").join(name))
                .unwrap()
                .permissions()
                .mode()
                & 0o7777
        };
        assert_eq!((mode("program"), mode("sub/data"), mode("sub")), (0o755, 0o644, 0o755));
        assert_eq!(fs::read_link(target.join("tools/link")).unwrap(), Path::new("program"));
        assert_eq!(fs::read_dir(&target).unwrap().count(), 1);
    }

    #[test]
    fn what_is_not_needed_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (folder.path().join("target-linux-x64"), folder.path().join("volume"));
        fs::create_dir_all(source.join("reports")).unwrap();
        fs::create_dir_all(source.join("more")).unwrap();
        fs::create_dir(&target).unwrap();
        for file in [
            "nsys",
            "libcupti.so.11.2",
            "libcupti.so.11.8",
            "reports/a.py",
            "more/reports",
        ] {
            fs::write(source.join(file), "1").unwrap();
        }
        let needed = Needed::of("cuda,nvtx", needed::Driver::Absent);
        assert_eq!(copy(&source, &target, &needed).unwrap().1, 3);
        let copied = needed::names(&target.join("target-linux-x64")).unwrap();
        assert_eq!(copied, ["libcupti.so.11.8", "more", "nsys"]);
    }

    #[test]
    fn of_the_copies_of_libcupti_those_come_along_that_the_driver_may_need_with_their_licenses() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("cupti");
        fs::create_dir(&source).unwrap();
        for version in ["11.8", "12", "13"] {
            fs::write(source.join(format!("libcupti.so.{version}")), "1").unwrap();
            fs::write(source.join(format!("libcupti.so.{version}.license.txt")), "1").unwrap();
        }
        for (driver, expected) in [
            (needed::Driver::Absent, &["13"][..]),
            (needed::Driver::Serves((13, 0)), &["13"]),
            (needed::Driver::Serves((12, 8)), &["12", "13"]),
            (needed::Driver::Serves((11, 4)), &["11.8", "12", "13"]),
            (needed::Driver::Unknown, &["11.8", "12", "13"]),
        ] {
            let target = tempfile::tempdir().unwrap();
            copy(&source, target.path(), &Needed::of("cuda", driver)).unwrap();
            let copied = needed::names(&target.path().join("cupti")).unwrap();
            let both = |version: &&str| {
                let library = format!("libcupti.so.{version}");
                [OsString::from(&library), format!("{library}.license.txt").into()]
            };
            let expected: Vec<OsString> = expected.iter().flat_map(both).collect();
            assert_eq!(copied, expected, "{driver:?}");
        }
    }

    #[test]
    fn errors_name_the_path_and_what_was_tried() {
        let folder = tempfile::tempdir().unwrap();
        let error = copy(&folder.path().join("absent"), folder.path(), &Needed::everything()).unwrap_err();
        assert!(
            error.to_string().starts_with("cannot list ") && error.to_string().contains("/absent: "),
            "{error}"
        );
        nix::unistd::mkfifo(&folder.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let target = tempfile::tempdir().unwrap();
        let error = copy(folder.path(), target.path(), &Needed::everything()).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("/pipe: neither a file, a folder nor a symlink"),
            "{error}"
        );
    }
}
