//! One event of a Chrome trace, as slices of the text.

use super::decimal::decimal;
use super::json::{Cursor, Scalar, Scan};
use crate::model::ColumnId;

/// Process and thread ids: numbers, numbers in quotes, or texts (`Spans`, `stream 7`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) enum Id<'a> {
    #[default]
    None,
    Number(i64),
    Text(&'a [u8]),
}

impl<'a> Id<'a> {
    fn of(scalar: Scalar<'a>) -> Self {
        match decimal(scalar.text, 0) {
            Some(number) => Self::Number(number),
            None if scalar.quoted => Self::Text(scalar.text),
            None => Self::None,
        }
    }

    /// The number, or the one at the end of the text: 7 of `stream 7`.
    pub(super) fn trailing_number(self) -> Option<u64> {
        match self {
            Self::Number(number) => u64::try_from(number).ok(),
            Self::Text(text) => {
                let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
                let number = decimal(text.get(text.len() - digits..)?, 0)?;
                u64::try_from(number).ok()
            }
            Self::None => None,
        }
    }
}

/// What an event says in a column that few events have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said<'a> {
    Number(u64),
    /// A text, or the JSON of a list.
    Text(&'a [u8]),
}

/// What an event says in such columns, in the order of the text.
pub(super) type Further<'a> = Vec<(ColumnId, Said<'a>)>;

/// The arguments that have a column, or decide where an event belongs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Arguments<'a> {
    pub(super) correlation: Option<i64>,
    pub(super) external_id: Option<i64>,
    pub(super) device: Option<i64>,
    pub(super) context: Option<i64>,
    pub(super) stream: Option<i64>,
    pub(super) bytes: Option<i64>,
    pub(super) registers: Option<i64>,
    pub(super) shared: Option<i64>,
    pub(super) grid: [i64; 3],
    pub(super) block: [i64; 3],
    pub(super) graph_node: Option<i64>,
    pub(super) sequence: Option<i64>,
    pub(super) forward_thread: Option<i64>,
    pub(super) python_id: Option<i64>,
    pub(super) python_parent: Option<i64>,
    /// Bytes that an allocator gave out, or took back where they are negative.
    pub(super) change: Option<i64>,
    pub(super) address: Option<i64>,
    pub(super) allocated: Option<i64>,
    pub(super) reserved: Option<i64>,
    pub(super) device_type: Option<i64>,
    pub(super) name: &'a [u8],
}

impl Arguments<'_> {
    /// Whether they say what an allocator of memory did, or how much is in use.
    pub(super) fn of_allocator(&self) -> bool {
        self.change.is_some() || self.allocated.is_some() || self.reserved.is_some()
    }

    /// The numbers alone, which outlive the text.
    pub(super) fn unnamed(&self) -> Arguments<'static> {
        Arguments {
            correlation: self.correlation,
            external_id: self.external_id,
            device: self.device,
            context: self.context,
            stream: self.stream,
            bytes: self.bytes,
            registers: self.registers,
            shared: self.shared,
            grid: self.grid,
            block: self.block,
            graph_node: self.graph_node,
            sequence: self.sequence,
            forward_thread: self.forward_thread,
            python_id: self.python_id,
            python_parent: self.python_parent,
            change: self.change,
            address: self.address,
            allocated: self.allocated,
            reserved: self.reserved,
            device_type: self.device_type,
            name: &[],
        }
    }
}

/// One event of `traceEvents`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Event<'a> {
    /// The first byte of `ph`; 0 where it is missing.
    pub(super) phase: u8,
    pub(super) category: &'a [u8],
    pub(super) name: &'a [u8],
    pub(super) process: Id<'a>,
    pub(super) thread: Id<'a>,
    /// Start in ns, relative to whatever the file counts from.
    pub(super) start: Option<i64>,
    /// Length in ns.
    pub(super) duration: Option<i64>,
    pub(super) arguments: Arguments<'a>,
    /// The text of `args` of a counter, whose members have names of their own.
    pub(super) members: &'a [u8],
}

/// Reads the event that begins here into `event`, and what else it says into `further`; both are emptied before. They are the caller's
/// because an event has 500 bytes, which would be copied once for each function that returns it.
pub(super) fn event<'a>(cursor: &mut Cursor<'a>, event: &mut Event<'a>, further: &mut Further<'a>) -> Scan<()> {
    *event = Event::default();
    further.clear();
    if !cursor.enter(b'{', b'}')? {
        return Ok(());
    }
    loop {
        match cursor.key()? {
            b"ph" => event.phase = cursor.scalar()?.text.first().copied().unwrap_or(0),
            b"cat" => event.category = text(cursor)?,
            b"name" => event.name = text(cursor)?,
            b"pid" => event.process = Id::of(cursor.scalar()?),
            b"tid" => event.thread = Id::of(cursor.scalar()?),
            b"ts" => event.start = decimal(cursor.scalar()?.text, 3),
            b"dur" => event.duration = decimal(cursor.scalar()?.text, 3),
            b"args" => {
                if cursor.token()? == b'{' {
                    let mut inside = cursor.clone();
                    if event.phase == b'C' {
                        event.members = cursor.value()?;
                    } else {
                        event.arguments = Arguments::default();
                        arguments(cursor, &mut event.arguments, further)?;
                    }
                    if event.phase == 0 {
                        event.members = inside.value()?;
                    }
                } else {
                    cursor.value()?;
                }
            }
            _ => drop(cursor.value()?),
        }
        if cursor.follows(b'}')? {
            return Ok(());
        }
    }
}

/// A string; whatever else stands there is skipped and empty.
fn text<'a>(cursor: &mut Cursor<'a>) -> Scan<&'a [u8]> {
    if cursor.token()? == b'"' {
        cursor.string()
    } else {
        cursor.value()?;
        Ok(&[])
    }
}

fn arguments<'a>(cursor: &mut Cursor<'a>, found: &mut Arguments<'a>, further: &mut Further<'a>) -> Scan<()> {
    if !cursor.enter(b'{', b'}')? {
        return Ok(());
    }
    loop {
        match cursor.key()? {
            b"correlation" | b"correlationId" => found.correlation = number(cursor)?,
            b"External id" | b"external id" => found.external_id = number(cursor)?,
            b"device" | b"Device Id" => found.device = number(cursor)?,
            b"context" => found.context = number(cursor)?,
            b"stream" => found.stream = number(cursor)?,
            b"bytes" => found.bytes = number(cursor)?,
            b"registers per thread" => found.registers = number(cursor)?,
            b"shared memory" => found.shared = number(cursor)?,
            b"grid" => found.grid = triple(cursor)?,
            b"block" => found.block = triple(cursor)?,
            b"graph node id" => found.graph_node = number(cursor)?,
            b"Sequence number" => found.sequence = number(cursor)?,
            b"Fwd thread id" => found.forward_thread = number(cursor)?,
            b"Python id" => found.python_id = number(cursor)?,
            b"Python parent id" => found.python_parent = number(cursor)?,
            b"Bytes" => found.change = number(cursor)?,
            b"Addr" => found.address = number(cursor)?,
            b"Total Allocated" => found.allocated = number(cursor)?,
            b"Total Reserved" => found.reserved = number(cursor)?,
            b"Device Type" => found.device_type = number(cursor)?,
            b"name" => found.name = text(cursor)?,
            key => match further_column(key) {
                Some(column) => further.extend(message(cursor, column)?),
                None => drop(cursor.value()?),
            },
        }
        if cursor.follows(b'}')? {
            return Ok(());
        }
    }
}

/// The column of an argument that few events have, and to which power of ten the argument counts its unit.
fn further_column(key: &[u8]) -> Option<(ColumnId, i32)> {
    // By the first byte, since most arguments are none of these.
    match (*key.first()?, key) {
        (b'I', b"Input Dims") => Some((ColumnId::InputShapes, 0)),
        (b'I', b"Input type") => Some((ColumnId::InputTypes, 0)),
        (b'I', b"In msg nelems") => Some((ColumnId::InElements, 0)),
        (b'O', b"Out msg nelems") => Some((ColumnId::OutElements, 0)),
        (b'C', b"Collective name") => Some((ColumnId::Collective, 0)),
        (b'G', b"Group size") => Some((ColumnId::GroupSize, 0)),
        (b'P', b"Process Group Name") => Some((ColumnId::ProcessGroup, 0)),
        (b'P', b"Process Group Ranks") => Some((ColumnId::GroupRanks, 0)),
        (b'd', b"dtype") => Some((ColumnId::ElementType, 0)),
        (b'f', b"flops") => Some((ColumnId::Flops, 0)),
        (b'b', b"blocks per SM") => Some((ColumnId::BlocksPerSm, 3)),
        (b'w', b"warps per SM") => Some((ColumnId::WarpsPerSm, 3)),
        // The second one is of 2020; it was renamed since it estimates what is achieved.
        (b'e', b"est. achieved occupancy %") | (b't', b"theoretical occupancy %") => {
            Some((ColumnId::AchievedOccupancy, 4))
        }
        _ => None,
    }
}

/// What stands here for `column`; nothing where it is empty or of another kind.
fn message<'a>(cursor: &mut Cursor<'a>, (column, scale): (ColumnId, i32)) -> Scan<Option<(ColumnId, Said<'a>)>> {
    let first = cursor.token()?;
    let is_list = matches!(first, b'{' | b'[');
    if column.is_text() {
        let text = if is_list {
            cursor.value()?
        } else {
            cursor.scalar()?.text
        };
        return Ok((!text.is_empty()).then_some((column, Said::Text(text))));
    }
    if is_list {
        cursor.value()?;
        return Ok(None);
    }
    let number = decimal(cursor.scalar()?.text, scale).and_then(|number| u64::try_from(number).ok());
    Ok(number.map(|number| (column, Said::Number(number))))
}

/// A number; whatever else stands there is skipped.
fn number(cursor: &mut Cursor<'_>) -> Scan<Option<i64>> {
    if matches!(cursor.token()?, b'{' | b'[') {
        cursor.value()?;
        return Ok(None);
    }
    Ok(decimal(cursor.scalar()?.text, 0))
}

fn triple(cursor: &mut Cursor<'_>) -> Scan<[i64; 3]> {
    let mut found = [0; 3];
    if cursor.token()? != b'[' {
        cursor.value()?;
        return Ok(found);
    }
    if !cursor.enter(b'[', b']')? {
        return Ok(found);
    }
    let mut places = found.iter_mut();
    loop {
        let value = number(cursor)?;
        if let Some(place) = places.next() {
            *place = value.unwrap_or(0);
        }
        if cursor.follows(b']')? {
            return Ok(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_of_a_kernel_are_found() {
        let text = br#"{ "ph": "X", "cat": "Kernel", "name": "gemm", "pid": 0, "tid": "stream 7", "ts": 10.5, "dur": 2,
            "args": {"queued": 0, "device": 3, "context": 1, "stream": 7, "correlation": 44, "grid": [5, 6, 7], "block": [32, 1],
            "deep": {"correlation": 9, "x": [1, {}]}, "registers per thread": 40, "warps per SM": 9.185185 } }, "#;
        let (mut found, mut further) = (Event::default(), Further::new());
        event(&mut Cursor::new(text, 0), &mut found, &mut further).unwrap();
        assert_eq!(further, [(ColumnId::WarpsPerSm, Said::Number(9_185))]);
        assert_eq!(
            (found.phase, found.category, found.name),
            (b'X', &b"Kernel"[..], &b"gemm"[..])
        );
        assert_eq!((found.start, found.duration), (Some(10_500), Some(2000)));
        assert_eq!(found.thread.trailing_number(), Some(7));
        let arguments = found.arguments;
        assert_eq!(
            (arguments.correlation, arguments.device, arguments.registers),
            (Some(44), Some(3), Some(40))
        );
        assert_eq!((arguments.grid, arguments.block), ([5, 6, 7], [32, 1, 0]));
    }

    #[test]
    fn values_of_the_wrong_kind_are_skipped() {
        let text = br#"{"ph": "X", "name": {"a": 1}, "cat": 5, "ts": "7", "dur": null, "args": [1], "tid": "24572"}"#;
        let mut found = Event::default();
        event(&mut Cursor::new(text, 0), &mut found, &mut Further::new()).unwrap();
        assert_eq!((found.name, found.category), (&b""[..], &b""[..]));
        assert_eq!(
            (found.start, found.duration, found.thread),
            (Some(7000), None, Id::Number(24572))
        );
    }
}
