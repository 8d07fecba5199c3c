//! Places of the header, in bytes from the file's begin. What one side writes all the time stands
//! alone in its cache line.

use crate::bytes::{u32_at, u64_at};

/// [`MAGIC`](crate::MAGIC).
pub const MAGIC_AT: usize = 0;
/// [`VERSION`](crate::VERSION), 32 bits.
pub const VERSION_AT: usize = 8;
/// Bytes of the file, 64 bits; all other places follow from it.
pub const BYTES_AT: usize = 16;
/// What the agent wants, [`wanted::BYTES`](crate::wanted::BYTES); its first word is the one that
/// the libraries sleep on.
pub const WANTED_AT: usize = 64;
/// Turns of segments so far, 64 bits: the next one looks at this number modulo the segments. Of a
/// drained file, its segments.
pub const CURSOR_AT: usize = 128;
/// Bytes of the heap of names that are given away, 64 bits.
pub const HEAP_USED_AT: usize = 192;
/// Processes that found no slot, 64 bits.
pub const PROCESSES_LEFT_OUT_AT: usize = 256;

/// Bytes at the begin that say what the file is.
pub const IDENTITY_BYTES: usize = 24;

/// What a file is, as its begin says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Programs write to it.
    Live {
        /// Its bytes.
        bytes: usize,
    },
    /// It holds what was drained of another.
    Drained {
        /// Bytes of the one that was drained.
        bytes: usize,
    },
}

impl FileKind {
    /// The kind of a file that begins so; `None` for one that is none of ours, or of another
    /// version.
    pub fn of(begin: &[u8; IDENTITY_BYTES]) -> Option<Self> {
        let bytes = usize::try_from(u64_at(begin, BYTES_AT)?).ok()?;
        if u32_at(begin, VERSION_AT)? != crate::VERSION {
            return None;
        }
        if begin.starts_with(&crate::MAGIC) {
            Some(Self::Live { bytes })
        } else {
            begin
                .starts_with(&crate::DRAINED_MAGIC)
                .then_some(Self::Drained { bytes })
        }
    }

    /// The bytes that it says, from which its layout follows.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Live { bytes } | Self::Drained { bytes } => bytes,
        }
    }
}

/// The first bytes of a new file of `bytes` bytes; everything behind them is zero.
pub fn identity(bytes: u64) -> [u8; IDENTITY_BYTES] {
    begin_with(crate::MAGIC, bytes)
}

/// The first bytes of a drained file, of one of `bytes` bytes.
pub fn drained_identity(bytes: u64) -> [u8; IDENTITY_BYTES] {
    begin_with(crate::DRAINED_MAGIC, bytes)
}

fn begin_with(magic: [u8; 8], bytes: u64) -> [u8; IDENTITY_BYTES] {
    let mut begin = [0; IDENTITY_BYTES];
    let parts = magic
        .into_iter()
        .chain(crate::VERSION.to_le_bytes())
        .chain([0; 4])
        .chain(bytes.to_le_bytes());
    for (to, from) in begin.iter_mut().zip(parts) {
        *to = from;
    }
    begin
}
