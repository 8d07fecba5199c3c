//! A segment of a drained file, as it is filled.

use flopwatch_tracer_file::record::Body;
use flopwatch_tracer_file::segment::{
    CLAIM_AT, CUPTI_NS_AT, MONOTONIC_NS_AT, PID_AT, PROCESS_AT, REALTIME_NS_AT, SERIAL_AT, SLOTS, SLOTS_AT, State,
    claim, number_of_turn,
};
use flopwatch_tracer_file::slot::{self, Kind};
use flopwatch_tracer_file::{Origin, segment};

/// Writes a value at a place; one that does not fit is left out.
pub(super) fn put(into: &mut [u8], at: usize, value: &[u8]) {
    let place = at.checked_add(value.len()).and_then(|end| into.get_mut(at..end));
    if let Some(place) = place {
        place.copy_from_slice(value);
    }
}

/// Records of one program in a row.
pub(super) struct Segment {
    /// Its place among the segments of the file.
    pub(super) turn: u64,
    serial: u32,
    bytes: Vec<u8>,
}

impl Segment {
    /// An empty one for records of an origin.
    pub(super) fn new(turn: u64, origin: &Origin) -> Self {
        let mut bytes = Vec::with_capacity(segment::BYTES);
        bytes.resize(SLOTS_AT, 0);
        let closed = claim(number_of_turn(turn), State::Closed);
        let process = u32::try_from(origin.slot).unwrap_or(u32::MAX);
        put(&mut bytes, CLAIM_AT, &closed.to_le_bytes());
        put(&mut bytes, PROCESS_AT, &process.to_le_bytes());
        put(&mut bytes, SERIAL_AT, &origin.serial.to_le_bytes());
        put(&mut bytes, PID_AT, &origin.pid.to_le_bytes());
        put(&mut bytes, CUPTI_NS_AT, &origin.moment.cupti_ns.to_le_bytes());
        put(&mut bytes, MONOTONIC_NS_AT, &origin.moment.monotonic_ns.to_le_bytes());
        put(&mut bytes, REALTIME_NS_AT, &origin.moment.realtime_ns.to_le_bytes());
        Self {
            turn,
            serial: origin.serial,
            bytes,
        }
    }

    /// Whether so many slots of a program find room in it.
    pub(super) fn has_room(&self, serial: u32, slots: usize) -> bool {
        let used = self.bytes.len().saturating_sub(SLOTS_AT) / slot::BYTES;
        self.serial == serial && used + slots <= SLOTS
    }

    /// Appends a slot.
    pub(super) fn push(&mut self, kind: Kind, body: &Body) {
        self.bytes.extend_from_slice(body);
        let tag = slot::tag(number_of_turn(self.turn), kind);
        self.bytes.extend_from_slice(&tag.to_le_bytes());
    }

    /// What it holds. Behind that it is zero.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
