//! The CUDA tracer's file, as whoever orders windows of it has it: opened with its owner checked,
//! or made for programs that start later.
//!
//! Whoever may write to the file may have anything recorded in the programs that share it, and
//! programs end where it is cut. So it belongs to one user, and one recording at a time holds its
//! lock.

mod slots;
mod word;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use flopwatch_tracer_file::header::{IDENTITY_BYTES, WANTED_AT, identity};
use flopwatch_tracer_file::wanted::{self, Kinds, Mode, Wanted};
use flopwatch_tracer_file::{Layout, MAGIC, MAX_BYTES};
use rustix::fs::{FallocateFlags, FlockOperation, OFlags, fallocate, flock};
use rustix::io::Errno;

use self::word::Word;
use crate::process::{ProcessId, Procfs};
use crate::rootfs::RootfsError;
use crate::user_files::UserFiles;

pub use slots::Slots;
use slots::slots;

/// Name of the file in the folder that `FLOPWATCH_CUDA_DIR` names.
pub const NAME: &str = "cuda.trace";
/// Bits of a file's mode that let others than its owner do something.
const OTHERS: u32 = 0o077;

/// Why windows of a file cannot be ordered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not there, is a link or may not be written.
    #[error("{}: cannot be opened: {source}", path.display())]
    Open {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A new file cannot be made, or has no space.
    #[error("{}: cannot be made with {bytes} bytes: {source}; set TMPDIR to a folder that has room", path.display())]
    Make {
        /// Path of the file.
        path: PathBuf,
        /// Bytes that it was to have.
        bytes: usize,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file of a container cannot be opened.
    #[error(transparent)]
    Container(#[from] RootfsError),
    /// The path names a folder, a pipe or a device.
    #[error("{}: is no file; name the file cuda.trace that the program writes", .0.display())]
    NoFile(PathBuf),
    /// The file belongs to another user.
    #[error("{}: belongs to user {owner}, and not to the one that records; record as that user", path.display())]
    Owner {
        /// Path of the file.
        path: PathBuf,
        /// ID of the user that owns it.
        owner: u32,
    },
    /// Others may read or write the file.
    #[error(
        "{}: others than its owner may use it (mode {mode:o}); the tracer makes its file with mode 600, so that this is not its own",
        path.display()
    )]
    Mode {
        /// Path of the file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file is none of a CUDA tracer, or of another version.
    #[error("{}: is no file of a CUDA tracer of this version; name the file cuda.trace of a library of this release", .0.display())]
    NotATrace(PathBuf),
    /// The file has another length than it says, or none that such a file has.
    #[error("{}: has {length} bytes, which is not the length that it says it has; it was cut or is damaged: start its programs anew, with another folder", path.display())]
    Length {
        /// Path of the file.
        path: PathBuf,
        /// Its bytes.
        length: u64,
    },
    /// Another recording is under way.
    #[error("{}: another recording of its programs is under way; wait for its end", .0.display())]
    Busy(PathBuf),
    /// The word that programs sleep on cannot be mapped, or an order cannot be written.
    #[error("{}: cannot be written: {source}", path.display())]
    Order {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl Error {
    fn open(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Open {
            path: path.to_owned(),
            source,
        }
    }
}

/// A file of which windows are ordered. The lock is held until it is dropped.
#[derive(Debug)]
pub struct TraceFile {
    path: PathBuf,
    file: File,
    word: Word,
    generation: u32,
}

impl TraceFile {
    /// Makes a file of `bytes` bytes, a length that such files have, with all its space: programs
    /// end where a page of it has none.
    ///
    /// # Errors
    ///
    /// When there is such a file, or no space for it.
    pub fn make(path: &Path, bytes: usize) -> Result<Self, Error> {
        let make = || -> io::Result<File> {
            let length = Layout::of(bytes).and_then(|layout| u64::try_from(layout.bytes).ok());
            let length = length.ok_or(io::ErrorKind::InvalidInput)?;
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path)?;
            file.set_len(length)?;
            fallocate(&file, FallocateFlags::empty(), 0, length)?;
            file.write_all_at(&identity(length), 0)?;
            Ok(file)
        };
        let file = make().map_err(|source| Error::Make {
            path: path.to_owned(),
            bytes,
            source,
        })?;
        Self::of(path, file)
    }

    /// Opens the file that programs share. It must be a file of a tracer, of this user and of
    /// nobody else's rights; root opens that of any user.
    ///
    /// # Errors
    ///
    /// When it is not, or another recording is under way.
    pub fn open(path: &Path) -> Result<Self, Error> {
        // Not through a link, and not waiting for the other end of a pipe.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)
            .map_err(Error::open(path))?;
        let own = rustix::process::geteuid();
        check(path, &file, (!own.is_root()).then_some(own.as_raw()))?;
        Self::of(path, file)
    }

    /// Opens the file at `path` that the programs of a container share, with the rights of the user
    /// of `process`, one of the container's. It must be a file of a tracer, of that user and of
    /// nobody else's rights.
    ///
    /// # Errors
    ///
    /// When it is not, may never be answered for, or another recording is under way.
    pub fn of_container(procfs: &Procfs, process: ProcessId, path: &Path) -> Result<Self, Error> {
        let files = UserFiles::open(procfs, process)?;
        let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
        let file = files.open_to_change(path, limit)?;
        check(path, &file, Some(files.user().uid()))?;
        Self::of(path, file)
    }

    fn of(path: &Path, file: File) -> Result<Self, Error> {
        let order = |source: io::Error| Error::Order {
            path: path.to_owned(),
            source,
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(Error::Busy(path.to_owned())),
            Err(error) => return Err(order(error.into())),
        }
        let mut bytes = [0; wanted::BYTES];
        let at = place(WANTED_AT);
        file.read_exact_at(&mut bytes, at).map_err(order)?;
        // Whatever stands there, the next order has another number.
        let generation = bytes.first_chunk().map_or(0, |first| u32::from_le_bytes(*first));
        let word = Word::of(&file, WANTED_AT).map_err(order)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            word,
            generation,
        })
    }

    /// A second descriptor of the file, to be read.
    ///
    /// # Errors
    ///
    /// When there is none to be had.
    pub fn reader(&self) -> Result<File, Error> {
        self.file.try_clone().map_err(Error::open(&self.path))
    }

    /// What is wanted of the programs; none where that makes no sense.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn wanted(&self) -> Result<Option<Wanted>, Error> {
        let mut bytes = [0; wanted::BYTES];
        let read = self.file.read_exact_at(&mut bytes, place(WANTED_AT));
        read.map_err(Error::open(&self.path))?;
        Ok(Wanted::of_bytes(&bytes))
    }

    /// What the slots of all processes hold now.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is none any more.
    pub fn slots(&self) -> Result<Slots, Error> {
        slots(&self.path, &self.file)
    }

    /// Number of the last order.
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// Orders a window of all programs that share the file, and of those that start in it.
    ///
    /// # Errors
    ///
    /// When the order cannot be written.
    pub fn order(&mut self, wanted: Wanted) -> Result<(), Error> {
        self.generation = self.generation.wrapping_add(1).max(1);
        let wanted = Wanted {
            generation: self.generation,
            ..wanted
        };
        let bytes = wanted.to_bytes();
        let (first, rest) = bytes.split_at(wanted::MODE_AT);
        // The number comes last: who looks meanwhile sees two, and keeps to what it knew.
        let written = self
            .file
            .write_all_at(rest, place(WANTED_AT).saturating_add(place(wanted::MODE_AT)))
            .and_then(|()| self.file.write_all_at(first, place(WANTED_AT)));
        written.map_err(|source| Error::Order {
            path: self.path.clone(),
            source,
        })?;
        self.word.wake();
        Ok(())
    }

    /// Ends the window in all programs.
    ///
    /// # Errors
    ///
    /// When the order cannot be written.
    pub fn end(&mut self) -> Result<(), Error> {
        self.order(Wanted {
            generation: 0,
            mode: Mode::Off,
            kinds: Kinds::default(),
            graphs: wanted::GraphLevel::Whole,
            start_at_ns: 0,
            deadline_ns: 0,
        })
    }
}

/// Opens the file at `path` that the programs of a container share to be read, with the rights of
/// the user of `process`, one of the container's. No lock is taken: who orders windows goes on.
///
/// # Errors
///
/// When it is none of a tracer, is not that user's alone, or may never be answered for.
pub fn open_to_read(procfs: &Procfs, process: ProcessId, path: &Path) -> Result<File, Error> {
    let files = UserFiles::open(procfs, process)?;
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    let file = files.open_file(path, limit)?;
    check(path, &file, Some(files.user().uid()))?;
    Ok(file)
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        // Of the open file, whoever has another descriptor of it: a child of this process has one
        // until it executes its program.
        if let Err(error) = flock(&self.file, FlockOperation::Unlock) {
            tracing::debug!(%error, "a tracer's file stays locked until its last descriptor is closed");
        }
    }
}

/// `CLOCK_MONOTONIC` in ns, by which a process says since when it is in a call of CUPTI.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let rest = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// A place in a file.
fn place(at: usize) -> u64 {
    u64::try_from(at).unwrap_or(u64::MAX)
}

/// Fails where a file is not one that its `user` may order windows of; none: of any user.
fn check(path: &Path, file: &File, user: Option<u32>) -> Result<(), Error> {
    let about = file.metadata().map_err(Error::open(path))?;
    if !about.is_file() {
        return Err(Error::NoFile(path.to_owned()));
    }
    let owner = about.uid();
    if user.is_some_and(|user| user != owner) {
        return Err(Error::Owner {
            path: path.to_owned(),
            owner,
        });
    }
    let mut begin = [0; IDENTITY_BYTES];
    let is_whole = file.read_exact_at(&mut begin, 0).is_ok();
    if !is_whole || !begin.starts_with(&MAGIC) {
        return Err(Error::NotATrace(path.to_owned()));
    }
    let mode = about.mode() & 0o777;
    if mode & OTHERS != 0 {
        return Err(Error::Mode {
            path: path.to_owned(),
            mode,
        });
    }
    let length = about.len();
    if Layout::of_file(&begin, length).is_none() {
        return Err(Error::Length {
            path: path.to_owned(),
            length,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use flopwatch_tracer_file::LEAST_BYTES;
    use flopwatch_tracer_file::wanted::GraphLevel;

    use super::*;

    fn refusal(path: &Path) -> String {
        TraceFile::open(path).unwrap_err().to_string()
    }

    #[test]
    fn an_order_stands_in_the_file_with_a_number_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let wanted = Wanted {
            generation: 0,
            mode: Mode::Window,
            kinds: Kinds::ALL,
            graphs: GraphLevel::Nodes,
            start_at_ns: 1,
            deadline_ns: 2,
        };
        // Descriptors that stay keep no lock.
        let mut descriptors = Vec::new();
        for round in [1, 3] {
            let made = if round == 1 {
                TraceFile::make(&path, LEAST_BYTES)
            } else {
                TraceFile::open(&path)
            };
            let mut file = made.unwrap();
            assert!(matches!(TraceFile::open(&path), Err(Error::Busy(_))));
            descriptors.push(file.reader().unwrap());
            file.order(wanted).unwrap();
            let mut bytes = [0; wanted::BYTES];
            file.reader()
                .unwrap()
                .read_exact_at(&mut bytes, place(WANTED_AT))
                .unwrap();
            let generation = round;
            assert_eq!(Wanted::of_bytes(&bytes), Some(Wanted { generation, ..wanted }));
            file.end().unwrap();
            assert_eq!(file.generation(), round + 1);
        }
        let about = std::fs::metadata(&path).unwrap();
        assert_eq!((about.len(), about.permissions().mode() & 0o777), (1 << 20, 0o600));
        assert!(about.blocks() * 512 >= about.len(), "it has all its space");
        assert!(TraceFile::make(&path, LEAST_BYTES).is_err(), "there is one");
        assert!(
            TraceFile::make(&folder.path().join("other"), 77).is_err(),
            "of no length"
        );
    }

    #[test]
    fn a_containers_file_is_opened_as_its_user_and_not_through_a_link() {
        let procfs = Procfs::default();
        let own = procfs.identify(i32::try_from(std::process::id()).unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        drop(TraceFile::make(&path, LEAST_BYTES).unwrap());
        let file = TraceFile::of_container(&procfs, own, &path).unwrap();
        assert_eq!(file.slots().unwrap().processes(), []);
        assert_eq!(file.wanted().unwrap().map(|wanted| wanted.mode), Some(Mode::Off));
        assert!(open_to_read(&procfs, own, &path).is_ok(), "another has its lock");
        drop(file);
        symlink(&path, folder.path().join("link")).unwrap();
        let link = TraceFile::of_container(&procfs, own, &folder.path().join("link"));
        assert!(matches!(link, Err(Error::Container(RootfsError::NotAFile { .. }))));
        let missing = TraceFile::of_container(&procfs, own, &folder.path().join("missing"));
        assert!(matches!(missing, Err(Error::Container(RootfsError::NotFound { .. }))));
    }

    #[test]
    fn what_is_no_file_of_ours_is_refused_with_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let at = |name: &str| folder.path().join(name);
        drop(TraceFile::make(&path, LEAST_BYTES).unwrap());
        assert!(refusal(&at("missing")).contains("cannot be opened"));
        symlink(&path, at("link")).unwrap();
        assert!(refusal(&at("link")).contains("cannot be opened"));
        std::fs::write(at("text"), "somebody else's").unwrap();
        assert!(refusal(&at("text")).contains("no file of a CUDA tracer"));
        std::fs::write(at("empty"), "").unwrap();
        assert!(refusal(&at("empty")).contains("no file of a CUDA tracer"));
        let pipe = nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU);
        pipe.unwrap();
        assert!(refusal(&at("pipe")).contains("is no file"));
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_permissions(PermissionsExt::from_mode(0o660)).unwrap();
        assert!(refusal(&path).contains("mode 660"));
        file.set_permissions(PermissionsExt::from_mode(0o600)).unwrap();
        file.set_len(100_000).unwrap();
        assert!(refusal(&path).contains("has 100000 bytes"));
    }
}
