//! The container of a report: sections one behind the other, and the list of them at the end.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::ReportError;
use crate::limits::ReadLimits;
use crate::nsys_report::MAGIC;
use crate::wire::Message;

/// Last bytes of a finished report.
const END: &[u8; 8] = b"U3w[END]";

/// Bytes behind the list of sections: where it begins, and the last ones.
const TAIL_BYTES: u64 = 16;

/// Bytes of the list of sections, at the most. There are eight sections.
const LONGEST_LIST: u64 = 1 << 20;

/// Where something lies in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) begin: u64,
    pub(super) end: u64,
}

impl Extent {
    pub(super) fn length(self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}

/// An open report.
#[derive(Debug)]
pub(super) struct Container {
    file: File,
    sections: BTreeMap<Vec<u8>, Extent>,
    /// Bytes that are read at once, at the most.
    limit: u64,
}

impl Container {
    /// Opens the report at `path` and reads the list of its sections.
    pub(super) fn open(path: &Path, limits: &ReadLimits) -> Result<Self, ReportError> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut container = Self {
            file,
            sections: BTreeMap::new(),
            limit: LONGEST_LIST,
        };
        let shortest = u64::try_from(MAGIC.len())
            .unwrap_or(u64::MAX)
            .saturating_add(TAIL_BYTES);
        let Some(tail) = length.checked_sub(TAIL_BYTES).filter(|_| length >= shortest) else {
            return Err(ReportError::Unfinished("it is too short"));
        };
        let mut magic = vec![0; MAGIC.len()];
        container.fill(0, &mut magic)?;
        if magic != MAGIC {
            return Err(ReportError::Unfinished("it does not begin as one"));
        }
        let mut begin = [0; 8];
        let mut end = [0; 8];
        container.fill(tail, &mut begin)?;
        container.fill(tail + 8, &mut end)?;
        if &end != END {
            return Err(ReportError::Unfinished("its last bytes are missing"));
        }
        let begin = u64::from_le_bytes(begin);
        if begin > tail {
            return Err(out_of_bounds("the list of sections", "the file", begin));
        }
        let list = container.read(Extent { begin, end: tail }, "the list of sections")?;
        container.sections = sections(message(&list, begin), tail)?;
        container.limit = limits.max_chunk_bytes;
        Ok(container)
    }

    /// A section; `None` where there is none.
    pub(super) fn section(&self, name: &str) -> Option<Extent> {
        self.sections.get(name.as_bytes()).copied()
    }

    /// A section that every report has.
    pub(super) fn needed(&self, name: &'static str) -> Result<Extent, ReportError> {
        self.section(name).ok_or(ReportError::NoSection(name))
    }

    /// The bytes of `extent`, which are to be few.
    pub(super) fn read(&self, extent: Extent, what: &'static str) -> Result<Vec<u8>, ReportError> {
        let too_many = || ReportError::TooMany {
            what: "bytes of one message",
            limit: self.limit,
        };
        let length = usize::try_from(extent.length()).ok();
        let length = length.filter(|_| extent.length() <= self.limit).ok_or_else(too_many)?;
        let mut bytes = vec![0; length];
        let filled = self.fill(extent.begin, &mut bytes);
        filled.map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => out_of_bounds(what, "the file", extent.begin),
            _ => ReportError::Open(error),
        })?;
        Ok(bytes)
    }

    /// Fills all of `bytes` from `offset` on.
    pub(super) fn fill(&self, offset: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }

    /// The message that begins at `extent` with its length before it: where its bytes lie.
    pub(super) fn delimited(&self, extent: Extent, what: &'static str) -> Result<Extent, ReportError> {
        let (length, begin) = self.number(extent, what)?;
        let end = begin.checked_add(length).filter(|end| *end <= extent.end);
        let end = end.ok_or_else(|| out_of_bounds(what, "its section", extent.begin))?;
        Ok(Extent { begin, end })
    }

    /// The integer that begins at `extent`, and where it ends.
    pub(super) fn number(&self, extent: Extent, what: &'static str) -> Result<(u64, u64), ReportError> {
        let mut bytes = [0; 10];
        let length = bytes.len().min(usize::try_from(extent.length()).unwrap_or(usize::MAX));
        let bytes = bytes.get_mut(..length).unwrap_or_default();
        self.fill(extent.begin, bytes)?;
        let whole = message(bytes, extent.begin);
        let (number, behind) = whole.split_number().map_err(ReportError::of(what))?;
        let taken = u64::try_from(behind.offset - whole.offset).unwrap_or(u64::MAX);
        Ok((number, extent.begin.saturating_add(taken)))
    }
}

/// `bytes` as a message that lies at `offset` in the file.
pub(super) fn message(bytes: &[u8], offset: u64) -> Message<'_> {
    Message {
        bytes,
        offset: usize::try_from(offset).unwrap_or(0),
    }
}

pub(super) fn out_of_bounds(what: &'static str, of: &'static str, offset: u64) -> ReportError {
    ReportError::Outside { what, of, offset }
}

/// The sections by name: each entry has a name 1, an offset 2 and a length 3. All lie before `end`.
fn sections(list: Message<'_>, end: u64) -> Result<BTreeMap<Vec<u8>, Extent>, ReportError> {
    let damaged = ReportError::of("the list of sections");
    let mut found = BTreeMap::new();
    for field in list.fields() {
        let (1, value) = field.map_err(&damaged)? else { continue };
        let Some(entry) = value.message() else { continue };
        let (mut name, mut begin, mut length) = (Vec::new(), 0, 0);
        for field in entry.fields() {
            match field.map_err(&damaged)? {
                (1, value) => name = value.bytes().unwrap_or_default().to_vec(),
                (2, value) => begin = value.number().unwrap_or(0),
                (3, value) => length = value.number().unwrap_or(0),
                _ => {}
            }
        }
        let extent = begin.checked_add(length).filter(|last| *last <= end);
        let extent = extent.map(|end| Extent { begin, end });
        let extent = extent.ok_or_else(|| out_of_bounds("a section", "the file", begin))?;
        // Of two sections of one name the first is the one that the writer meant.
        found.entry(name).or_insert(extent);
    }
    Ok(found)
}
