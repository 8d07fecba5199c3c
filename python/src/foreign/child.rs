//! What the child does: it reads the file and says what it holds; and what its caller makes of
//! that.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::ExitCode;

use flopwatch_attach::reexec;
use flopwatch_trace::{OpenedFile, ReadLimits};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::wire::{Source, Wire, wrong};

/// Which module the child has loaded: on the disk there may be another by now than here.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Bytes that go over at once, where values are small.
const BUFFER_BYTES: usize = 1 << 16;

/// Reads a file in a sandbox and ends the process: what the package's `_reader.py` calls. `words`
/// are those of the hidden subcommand. No thread may have been started.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "it is made of a list of Python's")]
#[expect(
    clippy::exit,
    reason = "neither the processes that hold the sandbox nor the one in it go back to Python"
)]
pub(crate) fn read_alone(words: Vec<OsString>) {
    let code = reexec::child_main_with(&words, read);
    std::process::exit(i32::from(code != ExitCode::SUCCESS))
}

/// The work in the sandbox: says on standard output what the file holds whose path it is given.
fn read(words: &[String]) -> u8 {
    let Some(path) = words.first() else { return 2 };
    match send_capture(Path::new(path)) {
        Ok(()) => 0,
        Err(error) => {
            // Whoever asked may have left.
            drop(writeln!(io::stderr(), "{error}"));
            1
        }
    }
}

fn send_capture(path: &Path) -> io::Result<()> {
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut to = BufWriter::with_capacity(BUFFER_BYTES, stdout);
    VERSION.to_owned().put(&mut to)?;
    let pool = pool().map_err(io::Error::other)?;
    let opened = pool.install(|| flopwatch_trace::open(path, &ReadLimits::default()));
    opened.map_err(|error| error.to_string()).put(&mut to)?;
    to.flush()
}

/// A thread per processor, or this one alone where no more are to be had.
fn pool() -> Result<ThreadPool, ThreadPoolBuildError> {
    ThreadPoolBuilder::new()
        .build()
        .or_else(|_too_many| ThreadPoolBuilder::new().num_threads(1).use_current_thread().build())
}

/// What a child said, in at most so many bytes: the capture, or what is wrong with the file.
pub(super) fn receive(from: impl Read, most_bytes: u64) -> io::Result<Result<OpenedFile, String>> {
    let mut from = Source::new(BufReader::with_capacity(BUFFER_BYTES, from), most_bytes);
    let version = String::take(&mut from)?;
    if version != VERSION {
        return Err(wrong(
            "another version is installed than this process has loaded: start it anew",
        ));
    }
    Wire::take(&mut from)
}
