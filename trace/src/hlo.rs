//! Reads a compiled program out of a dump of XLA: an `xla.HloProto` message (`*.hlo.pb`), which XLA writes with `--xla_dump_to` and
//! `--xla_dump_hlo_as_proto`, before its optimisation and after it.
//!
//! What is read is a capture without events whose one [`Program`] holds the message as it is. A message in which something looks like
//! a secret is refused: it has no room for what would stand in its place.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::limits::{ReadLimits, read_at_most};
use crate::model::hlo;
use crate::model::{Capture, Program, Source};
use crate::redact;

/// First bytes of a program as text.
pub(crate) const TEXT: &[u8] = b"HloModule ";

/// Bytes of a program: those of all programs of a profile together.
const MOST_BYTES: u64 = 32 << 20;

/// Why a program cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not there or may not be read.
    #[error("{path}: cannot be read: {source}")]
    Open {
        /// Path of the dump.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// It is longer than the limit.
    #[error(
        "{path}: holds more than {limit} bytes; large constants are in it: dump a program that takes them as arguments"
    )]
    TooLong {
        /// Path of the dump.
        path: PathBuf,
        /// Limit that was passed.
        limit: u64,
    },
    /// It is no program.
    #[error("{path}: {source}; was it copied while it was being written?")]
    NoProgram {
        /// Path of the dump.
        path: PathBuf,
        /// What is wrong with it.
        source: hlo::ReadError,
    },
    /// Something in it looks like a secret.
    #[error("{path}: something in it looks like a secret (a token, a key or a password): nothing of it is read")]
    Secret {
        /// Path of the dump.
        path: PathBuf,
    },
}

/// Reads the program at `path`.
pub fn read(path: &Path, limits: &ReadLimits) -> Result<Capture, ReadError> {
    let path = path.to_owned();
    let limit = MOST_BYTES.min(limits.max_text_bytes);
    let proto = match File::open(&path).and_then(|file| read_at_most(file, limit)) {
        Ok(Some(proto)) => proto,
        Ok(None) => return Err(ReadError::TooLong { path, limit }),
        Err(source) => return Err(ReadError::Open { path, source }),
    };
    if redact::redact(&String::from_utf8_lossy(&proto)).1 > 0 {
        return Err(ReadError::Secret { path });
    }
    let module = match hlo::read(&proto) {
        Ok(module) => module,
        Err(source) => return Err(ReadError::NoProgram { path, source }),
    };
    let program = Program {
        name: module.name.replace('\0', "\u{fffd}"),
        id: module.id,
        proto,
    };
    Ok(Capture {
        source: Source {
            tool: "XLA".to_owned(),
            ..Source::default()
        },
        programs: vec![program],
        ..Capture::default()
    })
}
