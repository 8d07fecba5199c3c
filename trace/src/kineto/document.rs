//! The way through a trace: the members around its events, and the events a block at a time.

use super::gather::Gather;
use super::input::{Block, Input, join};
use super::json::{Cursor, Scan, Stop};
use super::part::End;
use super::{Failure, split};
use flopwatch_model::{Loss, LossReason};

/// Where in the file it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Begin,
    /// Between members of the outer object.
    Members,
    /// In the list of events, which is a member of an object or all there is.
    Events {
        member: bool,
    },
    End,
}

/// Text that was read and not taken yet.
struct Text<'a> {
    input: &'a mut Input,
    block: Block,
    spare: Block,
    /// Bytes of text before `block`.
    offset: u64,
}

impl Text<'_> {
    fn take(&mut self, bytes: usize) {
        self.offset = self.offset.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        self.block.take(bytes);
    }

    /// Brings the spare block in behind what is left of the current one.
    fn append_spare(&mut self) {
        join(&self.block, &mut self.spare);
        std::mem::swap(&mut self.block, &mut self.spare);
    }

    fn more(&mut self) {
        self.input.fill(&mut self.spare);
        self.append_spare();
    }

    fn at(&self, position: usize) -> u64 {
        self.offset.saturating_add(u64::try_from(position).unwrap_or(u64::MAX))
    }

    fn check(&self) -> Result<(), Failure> {
        if self.input.is_too_long() {
            Err(Failure::TooLong)
        } else {
            Ok(())
        }
    }
}

/// Reads all text of `input` into `gather`. `longest` is how many bytes a single event or member may have.
pub(super) fn read(input: &mut Input, gather: &mut Gather<'_>, longest: u64) -> Result<(), Failure> {
    let longest = usize::try_from(longest).unwrap_or(usize::MAX);
    let mut text = Text {
        input,
        block: Block::default(),
        spare: Block::default(),
        offset: 0,
    };
    text.more();
    let mut place = Position::Begin;
    let mut found = false;
    while place != Position::End {
        text.check()?;
        place = match place {
            Position::Events { member } => {
                found = true;
                let place = events(&mut text, gather, longest, member)?;
                // A list of anything else is JSON as well.
                if !member && gather.is_empty() {
                    return Err(Failure::NoEvents);
                }
                place
            }
            _ => members(&mut text, gather, longest, place, found)?,
        };
    }
    if !found {
        return Err(Failure::NoEvents);
    }
    if !text.block.text().trim_ascii().is_empty() {
        gather.lose(LossReason::Skipped, "text behind the end");
    }
    if let Some(error) = text.input.broken() {
        gather.broken(error);
    }
    Ok(())
}

/// Reads the list of events to its end, or to that of the file.
fn events(text: &mut Text<'_>, gather: &mut Gather<'_>, longest: usize, member: bool) -> Result<Position, Failure> {
    let mut trusted = true;
    loop {
        text.check()?;
        let is_whole = text.input.is_over();
        let Text {
            input, block, spare, ..
        } = text;
        // While this is parsed, the events before it are appended and the next text is read.
        let ((parts, mut taken, end), ()) = rayon::join(
            || split::read(block.text(), trusted, is_whole),
            || {
                gather.append(|so_far| input.expected(so_far));
                if !is_whole {
                    input.fill(spare);
                }
            },
        );
        trusted = parts.last().is_none_or(|part| part.trusted);
        for part in parts {
            gather.add(part)?;
        }
        if end == End::More && block.text().len() - taken > longest {
            gather.lose(LossReason::Skipped, "damaged events");
            taken = block.text().len();
            trusted = false;
        }
        text.take(taken);
        if !is_whole {
            text.append_spare();
        }
        match end {
            End::Closed if member => return Ok(Position::Members),
            End::Closed => return Ok(Position::End),
            End::More | End::Reached if is_whole => {
                gather.lose(LossReason::Truncated, Loss::EVENTS_CUT);
                text.take(text.block.text().len());
                return Ok(Position::End);
            }
            End::More | End::Reached => {}
        }
    }
}

/// Reads the member that comes next.
fn members(
    text: &mut Text<'_>,
    gather: &mut Gather<'_>,
    longest: usize,
    place: Position,
    found: bool,
) -> Result<Position, Failure> {
    let is_whole = text.input.is_over();
    let stop = match member(text.block.text(), place, gather) {
        Ok((taken, place)) => {
            text.take(taken);
            return Ok(place);
        }
        Err(stop) => stop,
    };
    match stop {
        Stop::More if !is_whole && text.block.text().len() > longest => Err(Failure::Member { offset: text.offset }),
        Stop::More if !is_whole => {
            text.more();
            Ok(place)
        }
        Stop::More if found => {
            gather.lose(LossReason::Truncated, Loss::END_CUT);
            text.take(text.block.text().len());
            Ok(Position::End)
        }
        Stop::More => Err(Failure::NoEvents),
        Stop::Bad(at) if place == Position::Begin => Err(Failure::NotJson { offset: text.at(at) }),
        Stop::Bad(at) => {
            gather.lose(LossReason::Skipped, "damaged members beside the events");
            skip_to_events(text, at, found)
        }
    }
}

/// Finds the list of events behind damage, in this text or in what follows.
fn skip_to_events(text: &mut Text<'_>, damage: usize, found: bool) -> Result<Position, Failure> {
    const KEY: &[u8] = b"\"traceEvents\"";
    let mut from = damage;
    loop {
        text.check()?;
        let rest = text.block.text().get(from..).unwrap_or_default();
        for key in memchr::memmem::find_iter(rest, KEY) {
            let mut cursor = Cursor::new(text.block.text(), from + key + KEY.len());
            if cursor.expect(b':').and_then(|()| cursor.expect(b'[')).is_ok() {
                let taken = cursor.at();
                text.take(taken);
                return Ok(Position::Events { member: true });
            }
        }
        if text.input.is_over() {
            text.take(text.block.text().len());
            return if found {
                Ok(Position::End)
            } else {
                Err(Failure::NoEvents)
            };
        }
        // The name of the list, and what stands behind it, may be cut in two.
        let taken = text.block.text().len().saturating_sub(64);
        text.take(taken);
        text.more();
        from = 0;
    }
}

/// Steps over one member, or into the list of events; how much of the text that was, and where it led.
fn member(text: &[u8], place: Position, gather: &mut Gather<'_>) -> Scan<(usize, Position)> {
    let mut cursor = Cursor::new(text, 0);
    if place == Position::Begin {
        if text.starts_with(b"\xef\xbb\xbf") {
            cursor = Cursor::new(text, 3);
        }
        match cursor.token()? {
            b'[' => return Ok((cursor.at() + 1, Position::Events { member: false })),
            b'{' => return Ok((cursor.at() + 1, Position::Members)),
            _ => return Err(Stop::Bad(cursor.at())),
        }
    }
    match cursor.token()? {
        b',' => cursor.step(),
        b'}' => return Ok((cursor.at() + 1, Position::End)),
        _ => {}
    }
    let key = cursor.key()?;
    if key == b"traceEvents" && cursor.token()? == b'[' {
        return Ok((cursor.at() + 1, Position::Events { member: true }));
    }
    let value = cursor.value()?;
    // A number could go on in text that is still to come.
    cursor.token()?;
    gather.member(key, value);
    Ok((cursor.at(), Position::Members))
}
