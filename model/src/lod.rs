//! The pyramid of a category: what a viewer draws where events are narrower than a pixel.

use super::{EventId, RowId};

/// Levels of growing buckets, the finest first. Each is at most an eighth of the events; a small
/// category has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lod {
    /// The levels; each one's buckets are four times as wide as those of the level before.
    pub levels: Vec<LodLevel>,
}

/// One level: an entry per row, lane and bucket in which an event of the lane starts, sorted by
/// row, lane and bucket.
///
/// A bucket of width `1 << shift` covers the times `t` with the same `t >> shift`. Events of a lane
/// do not overlap. So no more than one event that starts in a bucket is longer than the bucket,
/// which then is the entry's `event`; and what began before a time and still runs then is found in
/// the lane's last entry before it, unless it ends within a bucket's width of its own bucket.
///
/// Far lanes, from the last of [`LodLevel::LANES`] on, share the entries of that one, within which
/// events may overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LodLevel {
    /// Binary logarithm of the buckets' width in ns.
    pub shift: u8,
    /// Row of each entry.
    pub row: Vec<RowId>,
    /// The lane within the row.
    pub lane: Vec<u32>,
    /// `start_ns >> shift` of the events of the entry.
    pub bucket: Vec<u64>,
    /// The longest of these events, the first one where several are as long: its index in the
    /// category.
    pub event: Vec<EventId>,
    /// Length of the bins, in ns.
    pub duration_ns: Vec<u64>,
    /// How many events start in the bucket. Over a level these add up to the category's events.
    pub count: Vec<u32>,
    /// For how many ns of the bucket events of the lane run, those that began before the bucket
    /// too; overlap counts once.
    pub busy_ns: Vec<u64>,
}

impl LodLevel {
    /// How many lanes of a row have entries of their own; the last one's are those of the lanes
    /// behind it too.
    pub const LANES: u32 = 64;

    /// How many entries.
    pub fn len(&self) -> usize {
        self.row.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.row.is_empty()
    }
}
