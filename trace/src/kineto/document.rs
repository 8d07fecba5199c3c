//! Reads the JSON document of a Kineto trace from front to back: the members around its list of
//! events, and the list block by block. Damaged text and a missing end become losses.

use super::gather::Gather;
use super::input::{Block, Input, join};
use super::json::{Cursor, Scan, Stop};
use super::part::End;
use super::{Failure, split};
use flopwatch_model::{Loss, LossReason, count};

/// Position of the parser in the structure of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParserState {
    /// Before the first bracket.
    Begin,
    /// Between members of the outer object.
    Members,
    /// In the list of events.
    Events {
        /// Whether the list is the member `traceEvents` of the outer object. Otherwise the list is
        /// the whole document.
        in_object: bool,
    },
    /// Behind the last bracket.
    End,
}

/// Text that was read from the input and is not parsed yet.
struct UnparsedText<'a> {
    input: &'a mut Input,
    block: Block,
    /// The block that is read while `block` is parsed.
    spare: Block,
    /// Bytes of text before `block`.
    offset: u64,
}

impl UnparsedText<'_> {
    /// Removes the first `bytes`, which were parsed.
    fn consume(&mut self, bytes: usize) {
        self.offset = self.offset.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        self.block.take(bytes);
    }

    /// Appends the spare block to what is left of the current one.
    fn append_spare(&mut self) {
        join(&self.block, &mut self.spare);
        std::mem::swap(&mut self.block, &mut self.spare);
    }

    /// Reads the next block of the input and appends it.
    fn read_more(&mut self) {
        self.input.fill(&mut self.spare);
        self.append_spare();
    }

    /// Offset in the trace's text of a position in `block`.
    fn offset_of(&self, position: usize) -> u64 {
        self.offset.saturating_add(u64::try_from(position).unwrap_or(u64::MAX))
    }

    /// Fails where the trace has more text than the limits allow.
    fn check_length(&self) -> Result<(), Failure> {
        match self.input.passed_limit() {
            Some(limit) => Err(Failure::TooLong { limit }),
            None => Ok(()),
        }
    }
}

/// Reads the document of `input` into `gather`. `max_bytes` bounds the text of a single event or
/// member.
pub(super) fn read(input: &mut Input, gather: &mut Gather<'_>, max_bytes: u64) -> Result<(), Failure> {
    let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
    let mut text = UnparsedText {
        input,
        block: Block::default(),
        spare: Block::default(),
        offset: 0,
    };
    text.read_more();
    let mut state = ParserState::Begin;
    let mut found_events = false;
    while state != ParserState::End {
        text.check_length()?;
        state = match state {
            ParserState::Events { in_object } => {
                found_events = true;
                let state = read_events(&mut text, gather, max_bytes, in_object)?;
                // A document that is a list without events is JSON, and no trace.
                if !in_object && gather.is_empty() {
                    return Err(Failure::NoEvents);
                }
                state
            }
            _ => read_member(&mut text, gather, max_bytes, state, found_events)?,
        };
    }
    if !found_events {
        return Err(Failure::NoEvents);
    }
    if !text.block.text().trim_ascii().is_empty() {
        gather.count_loss(LossReason::Skipped, "text behind the end");
    }
    if let Some(error) = text.input.read_error() {
        gather.count_read_error(error);
    }
    Ok(())
}

/// Reads the list of events to its end, or to the end of the file.
fn read_events(
    text: &mut UnparsedText<'_>,
    gather: &mut Gather<'_>,
    max_bytes: usize,
    in_object: bool,
) -> Result<ParserState, Failure> {
    // Whether a bracket closes the list of events: behind damage it may close an event's own.
    let mut trusts_bracket = true;
    loop {
        text.check_length()?;
        let reaches_end = text.input.is_over();
        let UnparsedText {
            input, block, spare, ..
        } = text;
        // While this block is parsed, the events of the one before are appended and the next one is
        // read.
        let ((parts, mut consumed, end), ()) = rayon::join(
            || split::read(block.text(), trusts_bracket, reaches_end),
            || {
                gather.append(|so_far| input.expected(so_far));
                if !reaches_end {
                    input.fill(spare);
                }
            },
        );
        trusts_bracket = parts.last().is_none_or(|part| part.trusted);
        for part in parts {
            gather.add(part)?;
        }
        if end == End::More && block.text().len() - consumed > max_bytes {
            gather.count_loss(LossReason::Skipped, "damaged events");
            consumed = block.text().len();
            trusts_bracket = false;
        }
        text.consume(consumed);
        if !reaches_end {
            text.append_spare();
        }
        match end {
            End::Closed if in_object => return Ok(ParserState::Members),
            End::Closed => return Ok(ParserState::End),
            End::More | End::Reached if reaches_end => {
                gather.count_loss(LossReason::Truncated, Loss::EVENTS_CUT);
                text.consume(text.block.text().len());
                return Ok(ParserState::End);
            }
            End::More | End::Reached => {}
        }
    }
}

/// Reads the next member of the outer object, for which more text is read where the member goes on
/// behind the block. Damaged text is skipped up to the list of events.
fn read_member(
    text: &mut UnparsedText<'_>,
    gather: &mut Gather<'_>,
    max_bytes: usize,
    state: ParserState,
    found_events: bool,
) -> Result<ParserState, Failure> {
    let reaches_end = text.input.is_over();
    let stop = match parse_member(text.block.text(), state, gather) {
        Ok((consumed, state)) => {
            text.consume(consumed);
            return Ok(state);
        }
        Err(stop) => stop,
    };
    match stop {
        Stop::More if !reaches_end && text.block.text().len() > max_bytes => Err(Failure::Member {
            offset: text.offset,
            limit: count(max_bytes),
        }),
        Stop::More if !reaches_end => {
            text.read_more();
            Ok(state)
        }
        Stop::More if found_events => {
            gather.count_loss(LossReason::Truncated, Loss::END_CUT);
            text.consume(text.block.text().len());
            Ok(ParserState::End)
        }
        Stop::More => Err(Failure::NoEvents),
        Stop::Bad(position) if state == ParserState::Begin => Err(Failure::NotJson {
            offset: text.offset_of(position),
        }),
        Stop::Bad(position) => {
            gather.count_loss(LossReason::Skipped, "damaged members beside the events");
            skip_to_events(text, position, found_events)
        }
    }
}

/// Finds the list of events behind the position `damage` of the block, or in the blocks that
/// follow.
fn skip_to_events(text: &mut UnparsedText<'_>, damage: usize, found_events: bool) -> Result<ParserState, Failure> {
    const KEY: &[u8] = b"\"traceEvents\"";
    // Bytes at the end of a block that are searched again with the next one: the key, or the
    // bracket behind it, may be cut in two.
    const OVERLAP_BYTES: usize = 64;
    let mut search_from = damage;
    loop {
        text.check_length()?;
        let searched = text.block.text().get(search_from..).unwrap_or_default();
        for key in memchr::memmem::find_iter(searched, KEY) {
            let mut cursor = Cursor::new(text.block.text(), search_from + key + KEY.len());
            if cursor.expect(b':').and_then(|()| cursor.expect(b'[')).is_ok() {
                let consumed = cursor.at();
                text.consume(consumed);
                return Ok(ParserState::Events { in_object: true });
            }
        }
        if text.input.is_over() {
            text.consume(text.block.text().len());
            return if found_events {
                Ok(ParserState::End)
            } else {
                Err(Failure::NoEvents)
            };
        }
        let consumed = text.block.text().len().saturating_sub(OVERLAP_BYTES);
        text.consume(consumed);
        text.read_more();
        search_from = 0;
    }
}

/// Parses the text up to the first member, one member, which it hands to `gather`, or the text up
/// to the first event. Returns the bytes that it parsed, and the state behind them.
fn parse_member(text: &[u8], state: ParserState, gather: &mut Gather<'_>) -> Scan<(usize, ParserState)> {
    let mut cursor = Cursor::new(text, 0);
    if state == ParserState::Begin {
        if text.starts_with(b"\xef\xbb\xbf") {
            cursor = Cursor::new(text, 3);
        }
        match cursor.token()? {
            b'[' => return Ok((cursor.at() + 1, ParserState::Events { in_object: false })),
            b'{' => return Ok((cursor.at() + 1, ParserState::Members)),
            _ => return Err(Stop::Bad(cursor.at())),
        }
    }
    match cursor.token()? {
        b',' => cursor.step(),
        b'}' => return Ok((cursor.at() + 1, ParserState::End)),
        _ => {}
    }
    let key = cursor.key()?;
    if key == b"traceEvents" && cursor.token()? == b'[' {
        return Ok((cursor.at() + 1, ParserState::Events { in_object: true }));
    }
    let value = cursor.value()?;
    // A number at the end of the block may go on in the next one: something must stand behind it.
    cursor.token()?;
    gather.member(key, value);
    Ok((cursor.at(), ParserState::Members))
}
