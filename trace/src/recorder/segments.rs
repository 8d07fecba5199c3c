//! Segments: what threads recorded in a row.

use flopwatch_ring::segment::{
    CLAIM_AT, FIRST_EVENT_AT, LATER_MONOTONIC_AT, LATER_REALTIME_AT, LATER_TICKS_AT, MONOTONIC_AT, PROCESS_AT,
    REALTIME_AT, SERIAL_AT, SLOTS, SLOTS_AT, State, THREAD_AT, TICKS_AT,
};
use flopwatch_ring::slot::{self, Kind, TEXT_BYTES, TEXTS, of_tag};

use super::clock::Anchor;
use super::{Ring, half, word};

/// Ticks that a thread's time may go back by, from one processor to the next.
const MAX_BACKWARD_TICKS: u64 = 20_000;

/// The name of an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Name {
    /// Number of the name in the table of names; 0 for none.
    Number(u16),
    /// Text that stands beside the event, of a name without an entry in the table.
    Text(Vec<u8>),
}

/// An event.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) domain: u8,
    pub(super) name: Name,
    pub(super) ticks: u64,
    pub(super) color: u32,
    pub(super) category: u32,
    pub(super) range: Option<u64>,
    pub(super) has_payload: bool,
}

/// A segment with what it holds.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) serial: u64,
    pub(super) first_event: u64,
    pub(super) process: u32,
    pub(super) thread: u32,
    pub(super) items: Vec<Item>,
    /// Events that are there and make no sense.
    pub(super) torn: u64,
    pub(super) anchors: [Option<Anchor>; 2],
}

/// What became of a segment.
pub(super) enum SegmentOutcome {
    /// Nobody has had the segment, or it was being taken.
    Nothing,
    /// The segment was taken while the file was read.
    Overwritten,
    /// The file ends before the segment.
    Cut,
    Whole(Segment),
}

impl SegmentOutcome {
    /// The segment at `at` of a file.
    pub(super) fn of(ring: &Ring, at: usize) -> Self {
        let Some(bytes) = ring.segment(at) else {
            return Self::Cut;
        };
        let claim = word(bytes, CLAIM_AT);
        let number = u32::try_from(claim >> 32).unwrap_or(0);
        let state = State::of(u32::try_from(claim & 0xffff_ffff).unwrap_or(0));
        if number == 0 || !matches!(state, Some(State::Open | State::Passed | State::Full)) {
            return Self::Nothing;
        }
        if ring.claims.get(at).is_some_and(|again| again >> 32 != claim >> 32) {
            return Self::Overwritten;
        }
        Self::Whole(segment(bytes, number))
    }
}

/// Whether a thread may be writing to the segment with these bytes.
pub(super) fn is_open(bytes: &[u8]) -> bool {
    let state = u32::try_from(word(bytes, CLAIM_AT) & 0xffff_ffff).ok();
    matches!(state.and_then(State::of), Some(State::Open | State::Passed))
}

/// Takes the slots of a segment from a later copy up to the last one that was full: a copy that a
/// thread overtakes has slots that are empty, or half of one, before full ones.
pub(super) fn settle(bytes: &mut [u8], later: &[u8]) {
    let claim = word(bytes, CLAIM_AT) >> 32;
    let is_full = |slot: &[u8]| u64::from(of_tag(word(slot, slot::TAG_AT)).0) == claim;
    let (Some(slots), Some(later)) = (bytes.get_mut(SLOTS_AT..), later.get(SLOTS_AT..)) else {
        return;
    };
    let Some(last) = slots.chunks_exact(slot::BYTES).rposition(is_full) else {
        return;
    };
    let both = slots.chunks_exact_mut(slot::BYTES).zip(later.chunks_exact(slot::BYTES));
    for (slot, later) in both.take(last.saturating_add(1)) {
        if is_full(later) {
            slot.copy_from_slice(later);
        }
    }
}

fn segment(bytes: &[u8], claim: u32) -> Segment {
    let anchor = |[ticks, monotonic, realtime]: [usize; 3]| {
        let anchor = Anchor {
            ticks: word(bytes, ticks),
            monotonic_ns: word(bytes, monotonic),
            realtime_ns: word(bytes, realtime),
        };
        (anchor.ticks != 0).then_some(anchor)
    };
    let mut segment = Segment {
        serial: word(bytes, SERIAL_AT),
        first_event: word(bytes, FIRST_EVENT_AT),
        process: half(bytes, PROCESS_AT),
        thread: half(bytes, THREAD_AT),
        items: Vec::new(),
        torn: 0,
        anchors: [
            anchor([TICKS_AT, MONOTONIC_AT, REALTIME_AT]),
            anchor([LATER_TICKS_AT, LATER_MONOTONIC_AT, LATER_REALTIME_AT]),
        ],
    };
    let slots = bytes.get(SLOTS_AT..).unwrap_or_default();
    let mut prefix = EventPrefix::default();
    let (mut missing, mut before) = (0, 0);
    for slot in slots.chunks_exact(slot::BYTES).take(SLOTS) {
        let (value, tag) = (word(slot, 0), word(slot, slot::TAG_AT));
        let (of, kind, domain, name) = of_tag(tag);
        if of != claim {
            missing += 1;
            continue;
        }
        // Slots are filled one after the other, and open segments were read twice: one that is
        // empty before a full one was overwritten by a thread that had lost the segment.
        segment.torn += std::mem::take(&mut missing);
        match Kind::of(kind) {
            None => segment.torn += 1,
            Some(kind) if kind.is_event() => {
                let prefix = std::mem::take(&mut prefix);
                if value.saturating_add(MAX_BACKWARD_TICKS) < before {
                    segment.torn += 1;
                    continue;
                }
                before = value.max(before);
                segment.items.push(prefix.event(kind, domain, name, before));
            }
            Some(kind) => prefix.take(kind, value, domain, name),
        }
    }
    segment
}

/// What stands before an event.
#[derive(Debug, Default)]
struct EventPrefix {
    text: Vec<u8>,
    style: u64,
    range: Option<u64>,
    has_payload: bool,
}

impl EventPrefix {
    fn take(&mut self, kind: Kind, value: u64, domain: u8, name: u16) {
        match kind {
            Kind::Payload => self.has_payload = true,
            Kind::Style => self.style = value,
            Kind::Range => self.range = Some(value),
            Kind::Text if self.text.len() < TEXTS * TEXT_BYTES => {
                self.text.extend(value.to_le_bytes());
                self.text.push(domain);
                self.text.extend(name.to_le_bytes());
            }
            _ => {}
        }
    }

    fn event(mut self, kind: Kind, domain: u8, name: u16, ticks: u64) -> Item {
        let end = self.text.iter().position(|byte| *byte == 0);
        self.text.truncate(end.unwrap_or(self.text.len()));
        let is_text = name == 0 && !self.text.is_empty();
        Item {
            kind,
            domain,
            name: if is_text {
                Name::Text(self.text)
            } else {
                Name::Number(name)
            },
            ticks,
            color: u32::try_from(self.style & 0xffff_ffff).unwrap_or(0),
            category: u32::try_from(self.style >> 32).unwrap_or(0),
            range: self.range,
            has_payload: self.has_payload,
        }
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_ring::segment::BYTES;
    use flopwatch_ring::slot::tag;

    use super::*;

    /// A segment of the third claim whose slots have these claims and values.
    fn held(slots: &[(u32, u64)]) -> Vec<u8> {
        let mut bytes = vec![0; BYTES];
        let claim = (3_u64 << 32) | u64::from(State::Open.bits());
        bytes[CLAIM_AT..CLAIM_AT + 8].copy_from_slice(&claim.to_le_bytes());
        for (at, (claim, value)) in slots.iter().enumerate() {
            let begin = SLOTS_AT + at * slot::BYTES;
            bytes[begin..begin + 8].copy_from_slice(&value.to_le_bytes());
            let tag = tag(*claim, Kind::Mark, 0, 1);
            bytes[begin + slot::TAG_AT..begin + slot::TAG_AT + 8].copy_from_slice(&tag.to_le_bytes());
        }
        bytes
    }

    fn ticks(bytes: &[u8]) -> (Vec<u64>, u64) {
        let segment = segment(bytes, 3);
        (segment.items.iter().map(|item| item.ticks).collect(), segment.torn)
    }

    #[test]
    fn slots_that_a_thread_wrote_while_they_were_copied_are_whole_after_a_second_look() {
        // The second was copied before it was written, and of the third the tag alone was.
        let mut copied = held(&[(3, 50_000), (2, 7), (3, 7), (3, 90_000)]);
        assert_eq!(ticks(&copied), (vec![50_000, 90_000], 2));
        let written = held(&[(3, 50_000), (3, 60_000), (3, 70_000), (3, 90_000), (3, 95_000)]);
        settle(&mut copied, &written);
        assert_eq!(ticks(&copied), (vec![50_000, 60_000, 70_000, 90_000], 0));
    }

    #[test]
    fn a_slot_that_the_next_claim_took_meanwhile_stays_as_it_was() {
        let mut copied = held(&[(3, 50_000), (3, 60_000)]);
        settle(&mut copied, &held(&[(4, 99_000), (3, 60_000)]));
        assert_eq!(ticks(&copied), (vec![50_000, 60_000], 0));
        settle(&mut copied, &[]);
        assert_eq!(ticks(&copied), (vec![50_000, 60_000], 0));
    }
}
