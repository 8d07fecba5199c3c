//! Writes an event into the calling thread's segment.

use flopwatch_ring::slot::{Kind, TEXT_BYTES, TEXTS, tag};

use crate::attributes::{Extras, Name};
use crate::recorder::Recorder;
use crate::segment::Segment;
use crate::{claim, clock, names};

/// Writes an event of now. Gives how many ranges were open before a push, or are after a pop;
/// `None` where the event found no segment or the pop no range.
#[inline]
pub(crate) fn record(
    recorder: &'static Recorder,
    kind: Kind,
    domain: u8,
    name: Name<'_>,
    extras: Extras,
) -> Option<u32> {
    let (number, text) = match name {
        Name::None => (0, None),
        Name::Number(number) => (number, None),
        Name::Text(text) => match names::number(&recorder.memory, &text) {
            0 => (0, Some(text.bytes)),
            number => (number, None),
        },
    };
    let beside = usize::from(extras.payload.is_some())
        .wrapping_add(usize::from(extras.style.is_some()))
        .wrapping_add(usize::from(extras.range.is_some()))
        .wrapping_add(text.map_or(0, pieces));
    let (segment, mut used) = claim::segment(recorder, beside.wrapping_add(1))?;
    if beside > 0 {
        used = put_beside(&segment, used, text, extras);
    }
    let ticks = clock::ticks(recorder.ticks_are_tsc);
    segment.put(used, ticks, tag(segment.claim, kind, domain, number));
    segment.filled(used.wrapping_add(1));
    segment.keep_time(ticks, recorder.ticks_are_tsc);
    match kind {
        Kind::Push => Some(segment.open(domain, number, ticks)),
        Kind::Pop => segment.close(&recorder.memory, domain, ticks),
        _ => Some(0),
    }
}

/// Slots that a text takes.
fn pieces(text: &[u8]) -> usize {
    text.len().div_ceil(TEXT_BYTES).min(TEXTS)
}

/// Writes what stands before an event, and gives the slots that are used then.
#[cold]
fn put_beside(segment: &Segment<'_>, mut used: usize, text: Option<&[u8]>, extras: Extras) -> usize {
    let mut put = |value, kind, domain, name| {
        segment.put(used, value, tag(segment.claim, kind, domain, name));
        used = used.wrapping_add(1);
    };
    for piece in text.unwrap_or_default().chunks(TEXT_BYTES).take(TEXTS) {
        let mut whole = [0; TEXT_BYTES];
        for (to, from) in whole.iter_mut().zip(piece) {
            *to = *from;
        }
        let (Some(value), [.., domain, low, high]) = (whole.first_chunk(), whole) else {
            continue;
        };
        put(
            u64::from_le_bytes(*value),
            Kind::Text,
            domain,
            u16::from_le_bytes([low, high]),
        );
    }
    if let Some((value, kind)) = extras.payload {
        put(value, Kind::Payload, 0, kind);
    }
    if let Some(style) = extras.style {
        put(style, Kind::Style, 0, 0);
    }
    if let Some(range) = extras.range {
        put(range, Kind::Range, 0, 0);
    }
    used
}
