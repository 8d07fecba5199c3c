//! One event of a Chrome trace, as slices of the text.

use super::decimal::{self, decimal};
use super::json::{Cursor, Scan};
use super::key_predictor::{KeyPredictor, Position};
use flopwatch_model::ColumnId;

/// Process and thread ids: numbers, numbers in quotes, or texts (`Spans`, `stream 7`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) enum Id<'a> {
    #[default]
    None,
    Number(i64),
    Text(&'a [u8]),
}

impl<'a> Id<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Scan<Self> {
        if let Some(number) = decimal::plain(cursor, 0) {
            return Ok(Self::Number(number));
        }
        let scalar = cursor.scalar()?;
        Ok(match decimal(scalar.text, 0) {
            Some(number) => Self::Number(number),
            None if scalar.quoted => Self::Text(scalar.text),
            None => Self::None,
        })
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

/// The value of an event in a column that few events have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExtraValue<'a> {
    Number(u64),
    /// A text, or the JSON of a list.
    Text(&'a [u8]),
}

/// An event's values in such columns, in the order of the text.
pub(super) type ExtraColumns<'a> = Vec<(ColumnId, ExtraValue<'a>)>;

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
    /// Whether it says a length that is no number of ns.
    pub(super) has_no_length: bool,
    /// What an arrow's two ends have in common.
    pub(super) flow: Option<i64>,
    pub(super) arguments: Arguments<'a>,
    /// The text of `args` of a counter, whose members have names of their own, and of a
    /// description.
    pub(super) members: &'a [u8],
}

/// What a member of an event is.
#[derive(Debug, Clone, Copy)]
enum Member {
    Phase,
    Category,
    Name,
    Process,
    Thread,
    Start,
    Duration,
    Flow,
    Arguments,
    Other,
}

impl Member {
    fn of(key: &[u8]) -> Self {
        match key {
            b"ph" => Self::Phase,
            b"cat" => Self::Category,
            b"name" => Self::Name,
            b"pid" => Self::Process,
            b"tid" => Self::Thread,
            b"ts" => Self::Start,
            b"dur" => Self::Duration,
            b"id" => Self::Flow,
            b"args" => Self::Arguments,
            _ => Self::Other,
        }
    }
}

/// What an argument is.
#[derive(Debug, Clone, Copy)]
enum Argument {
    Number(for<'e> fn(&'e mut Arguments<'_>) -> &'e mut Option<i64>),
    Triple(for<'e> fn(&'e mut Arguments<'_>) -> &'e mut [i64; 3]),
    Name,
    /// One that few events have, and to which power of ten it counts its unit.
    ExtraColumn(ColumnId, u32),
    Other,
}

impl Argument {
    fn of(key: &[u8]) -> Self {
        use Argument::{ExtraColumn, Number, Triple};
        match key {
            b"correlation" | b"correlationId" => Number(|of| &mut of.correlation),
            b"External id" | b"external id" => Number(|of| &mut of.external_id),
            b"device" | b"Device Id" => Number(|of| &mut of.device),
            b"context" => Number(|of| &mut of.context),
            b"stream" | b"sycl queue" => Number(|of| &mut of.stream),
            b"bytes" => Number(|of| &mut of.bytes),
            b"registers per thread" => Number(|of| &mut of.registers),
            b"shared memory" => Number(|of| &mut of.shared),
            b"grid" => Triple(|of| &mut of.grid),
            b"block" => Triple(|of| &mut of.block),
            b"graph node id" => Number(|of| &mut of.graph_node),
            b"Sequence number" => Number(|of| &mut of.sequence),
            b"Fwd thread id" => Number(|of| &mut of.forward_thread),
            b"Python id" => Number(|of| &mut of.python_id),
            b"Python parent id" => Number(|of| &mut of.python_parent),
            b"Bytes" => Number(|of| &mut of.change),
            b"Addr" => Number(|of| &mut of.address),
            b"Total Allocated" => Number(|of| &mut of.allocated),
            b"Total Reserved" => Number(|of| &mut of.reserved),
            b"Device Type" => Number(|of| &mut of.device_type),
            b"name" => Self::Name,
            b"Input Dims" => ExtraColumn(ColumnId::InputShapes, 0),
            b"Input type" => ExtraColumn(ColumnId::InputTypes, 0),
            b"In msg nelems" => ExtraColumn(ColumnId::InElements, 0),
            b"Out msg nelems" => ExtraColumn(ColumnId::OutElements, 0),
            b"Collective name" => ExtraColumn(ColumnId::Collective, 0),
            b"Group size" => ExtraColumn(ColumnId::GroupSize, 0),
            b"Process Group Name" => ExtraColumn(ColumnId::ProcessGroup, 0),
            b"Process Group Ranks" => ExtraColumn(ColumnId::GroupRanks, 0),
            b"dtype" => ExtraColumn(ColumnId::ElementType, 0),
            b"flops" => ExtraColumn(ColumnId::Flops, 0),
            // Negative where the record was made before the capture began.
            b"wait_on_stream" => ExtraColumn(ColumnId::WaitOnStream, 0),
            b"wait_on_cuda_event_record_corr_id" | b"wait_on_record" => ExtraColumn(ColumnId::WaitOnRecord, 0),
            b"blocks per SM" => ExtraColumn(ColumnId::BlocksPerSm, 3),
            b"warps per SM" => ExtraColumn(ColumnId::WarpsPerSm, 3),
            // The second one is of 2020; it was renamed since it estimates what is achieved.
            b"est. achieved occupancy %" | b"theoretical occupancy %" => ExtraColumn(ColumnId::AchievedOccupancy, 4),
            own => std::str::from_utf8(own)
                .ok()
                .and_then(ColumnId::from_name)
                // The transform finds it anew.
                .filter(|id| *id != ColumnId::Launch)
                .map_or(Self::Other, |id| ExtraColumn(id, 0)),
        }
    }
}

/// The predictors of keys: for events, and for the members of their `args`.
#[derive(Debug, Default)]
pub(super) struct KeyPredictors {
    events: KeyPredictor<Member>,
    arguments: KeyPredictor<Argument>,
}

/// Parses the event at `cursor` into `event`, and what else it says into `extra`; both are
/// emptied before. They are the caller's because an event has 500 bytes, which would be copied once
/// for each function that returns it.
pub(super) fn event<'a>(
    cursor: &mut Cursor<'a>,
    event: &mut Event<'a>,
    extra: &mut ExtraColumns<'a>,
    predictors: &mut KeyPredictors,
) -> Scan<()> {
    *event = Event::default();
    extra.clear();
    let mut position = Position::ROOT;
    while let Some(member) = predictors.events.next_key(cursor, &mut position, Member::of)? {
        match member {
            Member::Phase => event.phase = cursor.scalar()?.text.first().copied().unwrap_or(0),
            Member::Category => event.category = text(cursor)?,
            Member::Name => event.name = text(cursor)?,
            Member::Process => event.process = Id::read(cursor)?,
            Member::Thread => event.thread = Id::read(cursor)?,
            Member::Start => event.start = decimal::read(cursor, 3)?,
            Member::Duration => {
                event.duration = decimal::read(cursor, 3)?;
                event.has_no_length = event.duration.is_none();
            }
            Member::Flow => event.flow = number(cursor, 0)?,
            Member::Arguments if cursor.token()? == b'{' => {
                let mut inside = cursor.clone();
                if event.phase == b'C' {
                    event.members = cursor.value()?;
                } else {
                    event.arguments = Arguments::default();
                    arguments(cursor, &mut event.arguments, extra, &mut predictors.arguments)?;
                }
                if matches!(event.phase, 0 | b'M') {
                    event.members = inside.value()?;
                }
            }
            Member::Arguments | Member::Other => drop(cursor.value()?),
        }
    }
    Ok(())
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

// On its own, because both ways through members within one function are more than a processor's
// registers hold.
#[inline(never)]
fn arguments<'a>(
    cursor: &mut Cursor<'a>,
    found: &mut Arguments<'a>,
    extra: &mut ExtraColumns<'a>,
    predictor: &mut KeyPredictor<Argument>,
) -> Scan<()> {
    let mut position = Position::ROOT;
    while let Some(argument) = predictor.next_key(cursor, &mut position, Argument::of)? {
        match argument {
            Argument::Number(of) => *of(found) = number(cursor, 0)?,
            Argument::Triple(of) => *of(found) = triple(cursor)?,
            Argument::Name => found.name = text(cursor)?,
            Argument::ExtraColumn(column, scale) => extra.extend(message(cursor, column, scale)?),
            Argument::Other => drop(cursor.value()?),
        }
    }
    Ok(())
}

/// What stands here for `column`; nothing where it is empty or of another kind.
fn message<'a>(cursor: &mut Cursor<'a>, column: ColumnId, scale: u32) -> Scan<Option<(ColumnId, ExtraValue<'a>)>> {
    if column.is_text() {
        let text = if matches!(cursor.token()?, b'{' | b'[') {
            cursor.value()?
        } else {
            cursor.scalar()?.text
        };
        return Ok((!text.is_empty()).then_some((column, ExtraValue::Text(text))));
    }
    let before = cursor.clone();
    let number = match number(cursor, scale)? {
        Some(number) => u64::try_from(number).ok(),
        None => whole(before).filter(|_| scale == 0),
    };
    Ok(number.map(|number| (column, ExtraValue::Number(number))))
}

/// A number of 64 bits without a sign, as fingerprints of programs are.
fn whole(mut cursor: Cursor<'_>) -> Option<u64> {
    let scalar = cursor.scalar().ok()?;
    std::str::from_utf8(scalar.text).ok()?.parse().ok()
}

/// A number times ten to the power of `scale`; whatever else stands there is skipped.
fn number(cursor: &mut Cursor<'_>, scale: u32) -> Scan<Option<i64>> {
    if matches!(cursor.token()?, b'{' | b'[') {
        cursor.value()?;
        return Ok(None);
    }
    decimal::read(cursor, scale)
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
    let mut slots = found.iter_mut();
    loop {
        let value = number(cursor, 0)?;
        if let Some(position) = slots.next() {
            *position = value.unwrap_or(0);
        }
        if cursor.follows(b']')? {
            return Ok(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_arguments_of_a_kernel_are_found() {
        let text = br#"{ "ph": "X", "cat": "Kernel", "name": "gemm", "pid": 0, "tid": "stream 7", "ts": 10.5, "dur": 2,
            "args": {"queued": 0, "device": 3, "context": 1, "stream": 7, "correlation": 44, "grid": [5, 6, 7], "block": [32, 1],
            "deep": {"correlation": 9, "x": [1, {}]}, "registers per thread": 40, "warps per SM": 9.185185 } }, "#;
        let (mut found, mut extra) = (Event::default(), ExtraColumns::new());
        event(
            &mut Cursor::new(text, 0),
            &mut found,
            &mut extra,
            &mut KeyPredictors::default(),
        )
        .unwrap();
        assert_eq!(extra, [(ColumnId::WarpsPerSm, ExtraValue::Number(9_185))]);
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
        event(
            &mut Cursor::new(text, 0),
            &mut found,
            &mut ExtraColumns::new(),
            &mut KeyPredictors::default(),
        )
        .unwrap();
        assert_eq!((found.name, found.category), (&b""[..], &b""[..]));
        assert_eq!(
            (found.start, found.duration, found.thread),
            (Some(7000), None, Id::Number(24572))
        );
    }

    const EVENTS: [&str; 4] = [
        r#"{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": "stream 7", "ts": 10.5, "dur": 2, "args": {"External id": 3, "Input Dims": [[2, 3], []], "Ev Idx": 4}}, "#,
        r#"{"ph": "X", "cat": "kernel", "name": "g\"emm", "pid": 0, "tid": 7, "ts": 4458676522690.655, "dur": 1.25, "args": {"device": 0, "correlation": 44, "grid": [5, 6, 7], "blocks per SM": 9.185185}}, "#,
        r#"{"ph": "s", "id": 12, "pid": 7, "tid": 7, "ts": 11.000, "cat": "ac2g", "name": "ac2g"}, "#,
        r#"{"ph": "C", "name": "memory", "pid": 0, "ts": 12, "args": {"bytes": 5}}, "#,
    ];

    proptest! {
        #[test]
        fn what_came_before_changes_nothing(
            list in prop::collection::vec((0..EVENTS.len(), prop::option::of((0_usize..200, 0_usize..8, "[\\PC\",:{}\\[\\] ]{0,3}"))), 1..40),
        ) {
            let mut predictors = KeyPredictors::default();
            for (which, change) in list {
                let mut text = EVENTS[which].to_owned();
                if let Some((at, removed, put)) = change {
                    let at = at.min(text.len());
                    text.replace_range(at..(at + removed).min(text.len()), &put);
                }
                // A trace goes on.
                text.push_str(EVENTS[2]);
                for repairs in [false, true] {
                    let read = |predictors: &mut KeyPredictors| {
                        let mut cursor = if repairs { Cursor::repairing(text.as_bytes(), 0) } else { Cursor::new(text.as_bytes(), 0) };
                        let (mut found, mut extra) = (Event::default(), ExtraColumns::new());
                        let ended = event(&mut cursor, &mut found, &mut extra, predictors);
                        (ended, found, extra, ended.is_ok().then(|| cursor.at()))
                    };
                    prop_assert_eq!(read(&mut predictors), read(&mut KeyPredictors::default()), "{}", text);
                }
            }
        }
    }
}
