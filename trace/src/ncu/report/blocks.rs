//! A report from outside: a magic, a header, then blocks, each with a header and what it announces.

use super::super::{Failure, REPORT, ReadLimits};
use crate::wire::{Damage, Message, Value};

/// Bytes of the size before each message.
const SIZE_BYTES: usize = 4;

/// A block of the report.
#[derive(Debug, Default)]
pub(super) struct Block<'a> {
    /// Process that it is of, where it says so.
    pub(super) process: Option<u32>,
    /// The process of the session's details.
    pub(super) session_process: Option<u32>,
    /// Code that launches ran.
    pub(super) sources: Vec<Message<'a>>,
    /// Strings that are added to the table of the report.
    pub(super) strings: Vec<&'a [u8]>,
    /// Results of launches.
    pub(super) launches: Vec<Message<'a>>,
    /// Results of ranges of launches.
    pub(super) ranges: Vec<Message<'a>>,
}

/// What a block announces behind its header.
#[derive(Debug, Default)]
struct BlockHeader {
    sources: u32,
    launches: u32,
    ranges: u32,
    payload_bytes: usize,
}

/// The blocks of the report `bytes` in their order.
pub(super) fn all<'a>(bytes: &'a [u8], limits: &ReadLimits) -> Result<Vec<Block<'a>>, Failure> {
    let mut rest = Message {
        bytes: bytes.get(REPORT.len()..).unwrap_or_default(),
        offset: REPORT.len(),
    };
    sized(&mut rest)?;
    let (mut blocks, mut results) = (Vec::new(), 0);
    while !rest.bytes.is_empty() {
        let (mut block, header_counts) = header(sized(&mut rest)?)?;
        let mut payload = cut(&mut rest, header_counts.payload_bytes)?;
        for _ in 0..header_counts.sources {
            block.sources.push(sized(&mut payload)?);
        }
        for (count, list) in [
            (header_counts.launches, &mut block.launches),
            (header_counts.ranges, &mut block.ranges),
        ] {
            for _ in 0..count {
                list.push(sized(&mut payload)?);
                results += 1;
                if results > limits.max_rows {
                    return Err(Failure::TooMany {
                        what: "launches",
                        limit: u64::from(limits.max_rows),
                    });
                }
            }
        }
        blocks.push(block);
    }
    Ok(blocks)
}

/// Takes so many bytes off the beginning of `rest`.
fn cut<'a>(rest: &mut Message<'a>, length: usize) -> Result<Message<'a>, Damage> {
    let (bytes, behind) = rest.bytes.split_at_checked(length).ok_or(Damage(rest.offset))?;
    let piece = Message {
        bytes,
        offset: rest.offset,
    };
    *rest = Message {
        bytes: behind,
        offset: rest.offset + length,
    };
    Ok(piece)
}

/// Takes a message with its size before it.
fn sized<'a>(rest: &mut Message<'a>) -> Result<Message<'a>, Damage> {
    let at = rest.offset;
    let size = cut(rest, SIZE_BYTES)?.bytes.try_into().map(u32::from_le_bytes);
    let size = size.ok().and_then(|size| usize::try_from(size).ok());
    cut(rest, size.ok_or(Damage(at))?)
}

fn header(message: Message<'_>) -> Result<(Block<'_>, BlockHeader), Damage> {
    let (mut block, mut header_counts) = (Block::default(), BlockHeader::default());
    for field in message.fields() {
        let (number, value) = field?;
        let count = || small(value).unwrap_or(0);
        match number {
            1 => header_counts.sources = count(),
            2 => header_counts.launches = count(),
            3 => block.session_process = first_number(value)?,
            4 => strings(value, &mut block.strings)?,
            5 => header_counts.payload_bytes = usize::try_from(count()).unwrap_or(usize::MAX),
            6 => block.process = first_number(value)?,
            7 => header_counts.ranges = count(),
            _ => {}
        }
    }
    Ok((block, header_counts))
}

fn small(value: Value<'_>) -> Option<u32> {
    value.number().and_then(|number| u32::try_from(number).ok())
}

/// Field 1 of a message, where process ids are.
fn first_number(value: Value<'_>) -> Result<Option<u32>, Damage> {
    let Some(message) = value.message() else {
        return Ok(None);
    };
    for field in message.fields() {
        if let (1, value) = field? {
            return Ok(small(value));
        }
    }
    Ok(None)
}

fn strings<'a>(value: Value<'a>, list: &mut Vec<&'a [u8]>) -> Result<(), Damage> {
    for field in value.message().into_iter().flat_map(Message::fields) {
        if let (1, text) = field? {
            list.push(text.bytes().unwrap_or_default());
        }
    }
    Ok(())
}
