//! Files of strangers, read by a child of this process. HDF5 and SQLite are read by C libraries,
//! which a made file may break, and a file of any format may want more memory than there is.
//! Whoever takes a reader over, or ends it, has a child that sees nothing of the machine but that
//! file.
//!
//! - **Who it is.** An extension has no program of its own, and a wheel holds no agent: the child
//!   is the interpreter once more, which runs a script of the package (`flopwatch/_reader.py`) that
//!   loads this module alone. It is started by execve: this process has threads (Python's, rayon's,
//!   those of CUDA), whose locks a child that is only forked would wait for.
//! - **Its sandbox** is that of the agent's children ([`sandbox`]). The child has loaded all that
//!   it needs before it goes in, and does the work itself ([`sandbox::Work`]): of a Python
//!   installation, wherever it lies, nothing need be seen in there, and there is no folder that it
//!   may write to. Where the system has no namespaces for it, limits and the filter of system calls
//!   remain, and [`ForeignFile::missing`] says what does not.
//! - **What comes back** is no timeline file, which is HDF5 and would want the library here that
//!   the child is there for. It is the capture as it was read, as values ([`wire`]) that are taken
//!   within a bound and held against each other ([`check`]), in safe Rust. The transform, which
//!   brings any events into order, is done here.
//! - **How it comes.** Through a socket and no file: nothing is left of a process that is killed.

mod check;
pub(crate) mod child;
mod memory;
mod model;
mod wire;

use std::error::Error as _;
use std::ffi::OsString;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use flopwatch_attach::reexec::{End, Output, Reexec, ReexecError};
use flopwatch_attach::sandbox::users::Users;
use flopwatch_attach::sandbox::{self, MemoryBound, Sandboxed};
use flopwatch_trace::{OpenedFile, ReadError, ReadLimits};

/// Longest time that the child may take, by the wall clock.
const READ_TIMEOUT: Duration = Duration::from_mins(10);
/// Processor time of the child in seconds: two processors for all of that time.
const CPU_SECONDS: u64 = 1200;
/// Largest file that the child may write, in bytes: it writes none.
const FILE_BYTES: u64 = 0;
/// Most processes and threads of the child. Before Linux 5.14 all that the user runs counts.
const MAX_PROCESSES: u64 = 4096;
/// The folder in whose place the child has an empty one in memory: every Linux has it, and no file
/// of a user lies in it.
const PLACE: &str = "/sys";
/// Switches of the interpreter: nothing of the environment, of the user's folders and of `site`.
const ISOLATED: [&str; 2] = ["-I", "-S"];
/// Where a system that finds libraries by the environment says where Python's own are.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// A file that the child read.
pub(crate) struct ForeignFile {
    /// The contents of the file.
    pub(crate) opened: OpenedFile,
    /// Protections that the child lacked.
    pub(crate) missing: Vec<String>,
}

/// How the child is started, as Python says it: the interpreter, the script, this module's file,
/// the library path, and MiB of memory that it may take.
pub(crate) type Start = (PathBuf, PathBuf, PathBuf, Option<OsString>, Option<u64>);

/// Ends a child for which nobody waits any longer. It is told by the end of a socket: that of a
/// pipe would not come while a process that Python forked meanwhile holds a copy.
#[derive(Clone)]
pub(crate) struct Cancel {
    ours: Arc<UnixStream>,
    watched: Arc<OwnedFd>,
}

impl Cancel {
    pub(crate) fn new() -> io::Result<Self> {
        let (ours, watched) = UnixStream::pair()?;
        Ok(Self {
            ours: Arc::new(ours),
            watched: Arc::new(watched.into()),
        })
    }

    /// Safe to call twice, and after the child's end.
    pub(crate) fn now(&self) {
        drop(self.ours.shutdown(Shutdown::Both));
    }
}

/// Reads a file in this process.
pub(crate) fn trusted(path: &Path) -> Result<ForeignFile, String> {
    let opened = flopwatch_trace::open(path, &ReadLimits::default()).map_err(|error| error.to_string())?;
    Ok(ForeignFile {
        opened,
        missing: Vec::new(),
    })
}

/// Reads a file in a child.
pub(crate) fn open(path: &Path, start: &Start, cancel: &Cancel) -> Result<ForeignFile, String> {
    let unread = |source: io::Error| {
        let path = path.to_owned();
        ReadError::Open { path, source }.to_string()
    };
    let file = path.canonicalize().map_err(unread)?;
    let bytes = memory::bytes(start.4);
    let (output, stdout) = UnixStream::pair().map_err(unread)?;
    let end = stdout.try_clone().map_err(unread)?;
    let reexec = reexec(start, stdout.into());
    let sandboxed = sandboxed(&file, bytes).map_err(|why| failed(path, &why))?;
    let watched = Arc::clone(&cancel.watched);
    let watch = move || {
        let ended = sandbox::run_until(&reexec, &sandboxed, &watched);
        // What was forked meanwhile has a copy of this end.
        drop(end.shutdown(Shutdown::Write));
        ended
    };
    let watch = thread::Builder::new()
        .name("flopwatch-child".to_owned())
        .spawn(watch)
        .map_err(unread)?;
    let received = child::receive(output, bytes);
    // At an early end the child has ended, or is about to: how, is worth knowing.
    if received
        .as_ref()
        .is_err_and(|error| error.kind() != io::ErrorKind::UnexpectedEof)
    {
        cancel.now();
    }
    let ended = watch
        .join()
        .map_err(|_panic| failed(path, "whoever watched it gave up"))?;
    match (received, ended) {
        (Ok(Ok(opened)), Ok(output)) if output.success() => {
            check::check(&opened.capture).map_err(|what| failed(path, &format!("what it said is wrong: {what}")))?;
            let missing = output.missing;
            Ok(ForeignFile { opened, missing })
        }
        (Ok(Err(words)), _) => Err(as_asked(words, &file, path)),
        (received, ended) => Err(failed(path, &why(received.err(), ended, bytes))),
    }
}

fn reexec((interpreter, script, module, library_path, _): &Start, stdout: OwnedFd) -> Reexec {
    let switches = ISOLATED.map(OsString::from).into_iter();
    let files = [script, module].map(|file| file.clone().into_os_string());
    let reexec = Reexec::new(interpreter)
        .with_arguments(switches.chain(files))
        .with_stdout(stdout);
    match library_path {
        Some(path) => reexec.with_variable(LIBRARY_PATH, path),
        None => reexec,
    }
}

fn sandboxed(file: &Path, memory_bytes: u64) -> Result<Sandboxed, String> {
    let name = file.to_str().ok_or("its name is no UTF-8")?;
    let user = Users::caller().lease().map_err(|error| error.to_string())?;
    Ok(Sandboxed {
        command: vec![name.to_owned()],
        environment: Vec::new(),
        directory: PathBuf::from(PLACE),
        readable: vec![file.to_owned()],
        gpu: false,
        user: user.id(),
        memory_bytes,
        // Each thread of a machine with many reserves far more addresses than it uses.
        memory: MemoryBound::Data,
        cgroups: None,
        file_bytes: FILE_BYTES,
        processes: MAX_PROCESSES,
        cpu_seconds: CPU_SECONDS,
        deadline: READ_TIMEOUT,
        whole: false,
    })
}

/// Why the child gave nothing.
fn why(received: Option<io::Error>, ended: Result<Output, ReexecError>, memory_bytes: u64) -> String {
    let output = match ended {
        Ok(output) => output,
        Err(error) => {
            let source = error.source().map(|source| format!(": {source}"));
            return format!("{error}{}", source.unwrap_or_default());
        }
    };
    let words = output.last_words();
    let words = if words.is_empty() { words } else { format!(": {words}") };
    let bound = format!("it may take {} MiB of memory", memory_bytes >> 20);
    match output.end {
        End::TimedOut => format!("it took longer than {} s", READ_TIMEOUT.as_secs()),
        End::Signaled(signal) => format!("it was ended by signal {signal}{words} ({bound})"),
        End::Exited(code) if code != 0 => format!("it ended with code {code}{words} ({bound})"),
        End::Exited(_) | End::Cancelled | End::Detached => {
            let received = received.map(|error| format!(": {error}"));
            format!("it said no whole capture{}", received.unwrap_or_default())
        }
    }
}

/// The sentence where the file may be good, and its child was not.
fn failed(path: &Path, why: &str) -> String {
    format!(
        "{}: cannot be read: the process that reads it failed: {why}; `trusted=True` reads it in this one, without a \
         protection",
        path.display()
    )
}

/// What the child said of the file, by the name that the caller knows.
fn as_asked(words: String, file: &Path, path: &Path) -> String {
    let file = file.display().to_string();
    match words.strip_prefix(file.as_str()) {
        Some(rest) => format!("{}{rest}", path.display()),
        None => words,
    }
}
