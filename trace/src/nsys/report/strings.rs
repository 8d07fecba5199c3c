//! The strings that events refer to by number, the names of threads, and what follows them.

use super::ReportError;
use super::chunks::{Buffers, Chunk};
use super::container::{Container, Extent, message};
use super::layout::{STRINGS, THREAD, THREADS};
use super::rows::Rows;
use super::session::Session;
use crate::limits::ReadLimits;
use crate::wire::Message;

const NAMES: &str = "the names of threads";
const SYSTEM: &str = "the description of the system";

/// What lies behind the events.
#[derive(Debug)]
pub(super) struct Strings {
    /// The table of strings.
    pub(super) texts: Rows,
    /// The table of names of threads.
    pub(super) threads: Rows,
    /// The description of the system, and where it begins.
    pub(super) system: (Vec<u8>, u64),
}

impl Strings {
    pub(super) fn read(container: &Container, session: &Session, limits: &ReadLimits) -> Result<Self, ReportError> {
        let Some(extent) = session.strings else {
            return Err(ReportError::NoSection("StringStorage"));
        };
        let chunk = Chunk::at(container, extent, limits.max_string_bytes)?;
        let mut buffers = Buffers::default();
        let texts = texts(chunk, chunk.message(container, &mut buffers)?, limits)?;
        let rest = Extent {
            begin: chunk.end(),
            end: extent.end,
        };
        let names = container.delimited(rest, NAMES)?;
        let threads = threads(message(&container.read(names, NAMES)?, names.begin), limits)?;
        let rest = Extent {
            begin: names.end,
            end: extent.end,
        };
        let system = container.delimited(rest, SYSTEM)?;
        Ok(Self {
            texts,
            threads,
            system: (container.read(system, SYSTEM)?, system.begin),
        })
    }
}

/// Strings 1, each numbered by its place. The files 2, which hold standard output and environments,
/// are passed over.
fn texts(chunk: Chunk, strings: Message<'_>, limits: &ReadLimits) -> Result<Rows, ReportError> {
    let mut rows = Rows::new(&STRINGS);
    let mut id = 0_u64;
    for field in strings.fields() {
        let field = field.ok().ok_or_else(|| chunk.damaged("holds damaged strings"))?;
        let (1, value) = field else { continue };
        if id >= limits.max_table_rows {
            return Err(ReportError::TooMany {
                what: "strings",
                limit: limits.max_table_rows,
            });
        }
        rows.push(&[id], &[value.bytes().unwrap_or_default()]);
        id += 1;
    }
    Ok(rows)
}

fn threads(names: Message<'_>, limits: &ReadLimits) -> Result<Rows, ReportError> {
    let mut rows = Rows::new(&THREADS);
    for field in names.fields() {
        let (1, value) = field.map_err(ReportError::of(NAMES))? else {
            continue;
        };
        let Some(name) = value.message() else { continue };
        if rows.len() >= flopwatch_model::index(limits.max_rows) {
            return Err(ReportError::TooMany {
                what: "names of threads",
                limit: limits.max_rows.into(),
            });
        }
        let mut row = [0; 3];
        THREAD.fill(name, &mut row).map_err(ReportError::of(NAMES))?;
        rows.push(&row, &[]);
    }
    Ok(rows)
}
