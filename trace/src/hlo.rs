//! Reads a compiled program out of a dump of XLA, which it writes with `--xla_dump_to` before its
//! optimisation and after it: a module's text (`*_optimizations.txt`), or an `xla.HloProto` message
//! (`*.hlo.pb`, with `--xla_dump_hlo_as_proto`).
//!
//! What is read is a capture without events whose one [`Program`] holds the message or text. A
//! message in which something looks like a secret is refused: it has no room for what would stand
//! in its place. Of a text it is replaced. The plan of the program's memory is in a file beside the
//! text (`*-buffer-assignment.txt`), and is read with it where it is there.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::in_file::InFile;
use crate::limits::{ReadLimits, read_at_most};
use crate::redact;
use flopwatch_model::hlo;
use flopwatch_model::{Capture, Program, Source};

/// First bytes of a program as text.
pub(crate) const TEXT: &[u8] = hlo::TEXT;

/// What the name of a plan of memory has behind that of its module.
const PLAN: &str = "-buffer-assignment";

/// The same of the file that begins with the plan's sum, and how much of it is looked at.
const VALUES: &str = "-buffer-assignment-values";
const VALUES_BEGIN: u64 = 1 << 10;

/// Bytes of a program: those of all programs of a profile together.
const MAX_BYTES: u64 = 32 << 20;

/// Why a program cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The file is not there or may not be read.
    #[error("cannot be read: {0}")]
    Open(#[from] io::Error),
    /// The program is longer than the limit.
    #[error("holds more than {limit} bytes; large constants are in it: dump a program that takes them as arguments")]
    TooLong {
        /// Limit that was passed.
        limit: u64,
    },
    /// The file holds no program.
    #[error("{0}; was it copied while it was being written?")]
    NoProgram(#[from] hlo::ReadError),
    /// Something in the program looks like a secret.
    #[error("something in it looks like a secret (a token, a key or a password): nothing of it is read")]
    Secret,
}

/// A [`Failure`] with the path of the dump.
pub type ReadError = InFile<Failure>;

/// Reads the program at `path`.
pub fn read(path: &Path, limits: &ReadLimits) -> Result<Capture, ReadError> {
    read_file(path, limits).map_err(ReadError::at(path))
}

fn read_file(path: &Path, limits: &ReadLimits) -> Result<Capture, Failure> {
    let limit = MAX_BYTES.min(limits.max_text_bytes);
    let mut proto = read_at_most(File::open(path)?, limit)?.ok_or(Failure::TooLong { limit })?;
    let is_text = proto.starts_with(TEXT);
    let left = limit.saturating_sub(u64::try_from(proto.len()).unwrap_or(u64::MAX));
    if is_text && let Some(plan) = plan_of(path, left) {
        proto.push(b'\n');
        proto.extend(plan);
    }
    let mut redactions = 0;
    // Most programs hold no secret: one look at the whole says so.
    match (is_text, redact::holds_secret(&proto)) {
        (true, true) => (proto, redactions) = publishable(&String::from_utf8_lossy(&proto)),
        (true, false) => proto = String::from_utf8_lossy(&proto).into_owned().into_bytes(),
        (false, true) => return Err(Failure::Secret),
        (false, false) => {}
    }
    let module = hlo::read(&proto)?;
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
        redactions,
        ..Capture::default()
    })
}

/// The plan of memory beside the text at `path`: `m.after_optimizations-buffer-assignment.txt` of
/// `m.after_optimizations.txt`, with the sum of its allocations, which XLA writes into
/// `...-buffer-assignment-values.txt`. One of more than `limit` bytes is left alone.
fn plan_of(path: &Path, limit: u64) -> Option<Vec<u8>> {
    let beside = |ending: &str| {
        let mut name = path.file_stem()?.to_owned();
        name.push(ending);
        let beside = path.with_file_name(name).with_added_extension(path.extension()?);
        let is_file = beside.symlink_metadata().is_ok_and(|found| found.is_file());
        is_file.then(|| File::open(beside).ok()).flatten()
    };
    let mut plan = read_at_most(beside(PLAN)?, limit).ok()??;
    if !plan.starts_with(hlo::PLAN.as_bytes()) {
        return None;
    }
    let values = beside(VALUES).and_then(|file| read_at_most(file.take(VALUES_BEGIN), VALUES_BEGIN).ok()?);
    let values = values.unwrap_or_default();
    let values = String::from_utf8_lossy(&values);
    if let Some(total) = values.lines().find(|line| line.starts_with(hlo::PLAN_TOTAL)) {
        plan.extend(total.bytes());
    }
    Some(plan)
}

/// The text with all that looks like a secret replaced, and how often. Blanks part what is looked
/// at unless they are in quotes: `token = f32[]` is an instruction of that name.
fn publishable(text: &str) -> (Vec<u8>, u64) {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let parts = text.split_inclusive(|letter: char| {
        is_quoted ^= letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        letter.is_whitespace() && !is_quoted
    });
    let (mut clean, mut count) = (String::with_capacity(text.len()), 0_u64);
    for part in parts {
        let (part, found) = redact::redact(part);
        clean.push_str(&part);
        count = count.saturating_add(found);
    }
    (clean.into_bytes(), count)
}
