//! What a report says of its session before the events: when it was, how much there is, what
//! generic events are.

use std::collections::BTreeMap;

use super::ReportError;
use super::container::{Container, Extent, message, out_of_bounds};
use super::layout::DETAILS;
use super::rows::Rows;
use crate::limits::ReadLimits;
use crate::wire::Message;

/// The section that holds the events and the strings.
const EVENTS: &str = "Raw Sampling Data";
const OFFSETS: &str = "Sampling Data Offsets";

/// First bytes of [`EVENTS`].
const MAGIC: &[u8; 8] = b"QDTEXT00";

/// The one compression that is known.
const LZ4: &[u8] = b"lz4";

const STATE: &str = "the session's state";
const HEADER: &str = "the header of the events";

/// A kind of generic events: its number and the fields of its data.
#[derive(Debug, Default)]
pub(super) struct GenericType {
    pub(super) id: u64,
    pub(super) fields: Vec<GenericField>,
}

/// A number in the data of a generic event.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct GenericField {
    /// Among the strings.
    pub(super) name: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) is_signed: bool,
    pub(super) is_float: bool,
}

/// Where generic events come from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct GenericSource {
    pub(super) id: u64,
    /// The clock of their times.
    pub(super) clock: u64,
    /// Among the strings.
    pub(super) name: u64,
}

/// How many there are of what, as the report counts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) events: Option<u64>,
    pub(super) generic: Option<u64>,
    pub(super) strings: Option<u64>,
    pub(super) threads: Option<u64>,
}

/// The session of a report.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// When it began and ended, on the clock of the profiler.
    pub(super) start: Option<i64>,
    pub(super) stop: Option<i64>,
    /// What is added to come from one clock to another, by the numbers of both.
    pub(super) offsets: BTreeMap<(u64, u64), i64>,
    pub(super) counts: Counts,
    pub(super) sources: Vec<GenericSource>,
    pub(super) types: Vec<GenericType>,
    /// Where the chunks of events lie.
    pub(super) chunks: Option<Extent>,
    /// Where the strings, and what follows them, lie.
    pub(super) strings: Option<Extent>,
}

impl Session {
    pub(super) fn read(container: &Container, limits: &ReadLimits) -> Result<Self, ReportError> {
        let strings = offset_of_strings(container)?;
        let section = container.needed(EVENTS)?;
        let mut magic = [0; MAGIC.len()];
        let begin = section.begin.saturating_add(u64::try_from(MAGIC.len()).unwrap_or(0));
        if begin > section.end {
            return Err(out_of_bounds(EVENTS, "the file", section.begin));
        }
        container.fill(section.begin, &mut magic)?;
        if &magic != MAGIC {
            return Err(ReportError::Damaged {
                part: EVENTS,
                offset: section.begin,
            });
        }
        let strings = begin.checked_add(strings).filter(|at| *at <= section.end);
        let strings = strings.ok_or_else(|| out_of_bounds("the list of strings", EVENTS, begin))?;
        let before = |begin| Extent { begin, end: strings };
        let mut session = Self::default();
        let state = container.delimited(before(begin), STATE)?;
        session.read_state(message(&container.read(state, STATE)?, state.begin))?;
        let header = container.delimited(before(state.end), HEADER)?;
        session.read_header(message(&container.read(header, HEADER)?, header.begin), limits)?;
        session.chunks = Some(before(header.end));
        session.strings = Some(Extent {
            begin: strings,
            end: section.end,
        });
        Ok(session)
    }

    /// The environment of the target, among the properties of field 1, is passed over.
    fn read_state(&mut self, state: Message<'_>) -> Result<(), ReportError> {
        let damaged = ReportError::of(STATE);
        for field in state.fields() {
            let (number, value) = field.map_err(&damaged)?;
            let time = value.number().map(u64::cast_signed);
            match (number, value.message()) {
                (17, _) => self.start = time,
                (18, _) => self.stop = time,
                (16, Some(offsets)) => {
                    for field in offsets.fields() {
                        if let (1, value) = field.map_err(&damaged)?
                            && let Some(offset) = value.message()
                        {
                            self.read_offset(offset)?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Clocks 1 and 2, and by how much they differ 5, as text; of the kind 6.
    fn read_offset(&mut self, offset: Message<'_>) -> Result<(), ReportError> {
        let (mut clocks, mut value, mut is_offset) = ((0, 0), None, false);
        for field in offset.fields() {
            let (number, field) = field.map_err(ReportError::of(STATE))?;
            match number {
                1 => clocks.0 = field.number().unwrap_or(0),
                2 => clocks.1 = field.number().unwrap_or(0),
                5 => value = field.bytes().and_then(|text| std::str::from_utf8(text).ok()),
                6 => is_offset = field.bytes() == Some(b"Offset"),
                _ => {}
            }
        }
        // Numbers below zero come as such, or as what they are without a sign.
        let signed = |text: &str| text.parse().ok().or_else(|| text.parse().ok().map(u64::cast_signed));
        if let Some(value) = value.filter(|_| is_offset).and_then(signed) {
            self.offsets.insert(clocks, value);
        }
        Ok(())
    }

    fn read_header(&mut self, header: Message<'_>, limits: &ReadLimits) -> Result<(), ReportError> {
        let mut described = 0_u64;
        for field in header.fields() {
            let (number, value) = field.map_err(ReportError::of(HEADER))?;
            match (number, value.message()) {
                (1, _) => self.counts.events = value.number(),
                (3, _) => self.counts.strings = value.number(),
                (5, _) => self.counts.threads = value.number(),
                (15, _) => self.counts.generic = value.number(),
                (9, Some(name)) if name.bytes != LZ4 => return Err(compression(name.bytes)),
                (13, Some(source)) => {
                    described += 1;
                    self.sources.push(generic_source(source)?);
                }
                (14, Some(kind)) => {
                    let kind = generic_type(kind)?;
                    described = described.saturating_add(u64::try_from(kind.fields.len()).unwrap_or(u64::MAX));
                    self.types.push(kind);
                }
                _ => {}
            }
            if described > u64::from(limits.max_rows) {
                return Err(ReportError::TooMany {
                    what: "descriptions of generic events",
                    limit: limits.max_rows.into(),
                });
            }
        }
        Ok(())
    }

    /// The table of what the session says of itself. Its clock begins with the session.
    pub(super) fn details(&self) -> Rows {
        let mut rows = Rows::new(&DETAILS);
        let length = self
            .start
            .zip(self.stop)
            .map(|(start, stop)| stop.saturating_sub(start));
        if let Some(length) = length.and_then(|length| u64::try_from(length).ok()) {
            rows.push(&[length], &[]);
        }
        rows
    }
}

/// Where the strings are, from behind the first bytes of [`EVENTS`].
fn offset_of_strings(container: &Container) -> Result<u64, ReportError> {
    let section = container.needed(OFFSETS)?;
    let bytes = container.read(section, OFFSETS)?;
    let mut offset = None;
    for field in message(&bytes, section.begin).fields() {
        match field.map_err(ReportError::of(OFFSETS))? {
            (1, value) => {
                let name = value.bytes().unwrap_or_default();
                if name != LZ4 {
                    return Err(compression(name));
                }
            }
            (2, value) => offset = value.number(),
            _ => {}
        }
    }
    offset.ok_or(ReportError::Damaged {
        part: OFFSETS,
        offset: section.begin,
    })
}

fn compression(name: &[u8]) -> ReportError {
    let name = String::from_utf8_lossy(name);
    ReportError::Compression(name.chars().filter(|c| !c.is_control()).take(32).collect())
}

fn generic_source(source: Message<'_>) -> Result<GenericSource, ReportError> {
    let mut found = GenericSource::default();
    for field in source.fields() {
        let (number, value) = field.map_err(ReportError::of(HEADER))?;
        let value = value.number().unwrap_or(0);
        match number {
            1 => found.id = value,
            2 => found.clock = value,
            3 => found.name = value,
            _ => {}
        }
    }
    Ok(found)
}

fn generic_type(kind: Message<'_>) -> Result<GenericType, ReportError> {
    let damaged = ReportError::of(HEADER);
    let mut found = GenericType::default();
    for field in kind.fields() {
        let (number, value) = field.map_err(&damaged)?;
        match (number, value.message()) {
            (1, _) => found.id = value.number().unwrap_or(0),
            (3, Some(described)) => {
                let mut of_type = GenericField::default();
                for field in described.fields() {
                    let (number, value) = field.map_err(&damaged)?;
                    let value = value.number().unwrap_or(0);
                    match number {
                        1 => of_type.name = value,
                        2 => of_type.offset = value,
                        3 => of_type.size = value,
                        4 => of_type.is_signed = value != 0,
                        8 => {
                            of_type.is_signed |= value == 1;
                            of_type.is_float = value == 2;
                        }
                        _ => {}
                    }
                }
                found.fields.push(of_type);
            }
            _ => {}
        }
    }
    Ok(found)
}
