//! What a synchronisation waits for.
//!
//! The numbers of the types changed their meaning, and the list of them that an export holds is
//! that of CUPTI for all of them. What they mean was found by the API calls that the
//! synchronisations belong to:
//!
//! | number | until 2024 | since 2025.1 |
//! |---|---|---|
//! | 1 | context or device | event |
//! | 2 | event | stream, also one that waits for an event |
//! | 3 | stream, also one that waits for an event | stream, since 2026.2 |
//! | 4 | | context |
//!
//! Since 2026.2 number 2 is left to streams that wait for an event. A stream that waits for an
//! event names the event, and a wait for all of a stream names none.

use super::Failure;
use super::gather::WorkerState;
use super::names::Text;
use super::tables::{Piece, Table};
use super::waits::{EVENT, EVENT_SYNC};
use crate::cupti::SYNCS;

/// The type, by today's numbers where [`OLD_TYPE`] is there.
const TYPE: &str = "syncType";

/// The type by the old numbers, in schemas since 2025.
const OLD_TYPE: &str = "deprecatedSyncType";

/// The columns that are read of synchronisations.
pub(super) const COLUMNS: [&str; 4] = [TYPE, OLD_TYPE, EVENT, EVENT_SYNC];

/// "No event" of CUPTI, stored in 32 bits.
const NO_EVENT: u64 = 0xFFFF_FFFF;

/// Kinds of synchronisations, by numbers of ours.
pub(super) const UNKNOWN: u32 = 0;
pub(super) const EVENTS: u32 = 1;
pub(super) const STREAM_WAITS: u32 = 2;
const STREAMS: u32 = 3;
const CONTEXTS: u32 = 4;

/// What is known of the types of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Types {
    has_both: bool,
    has_events: bool,
}

impl Types {
    pub(super) fn of(table: &Table) -> Self {
        Self {
            has_both: table.has(OLD_TYPE),
            has_events: table.has(EVENT),
        }
    }

    /// Makes the hand's kinds those of a piece. Of its words it writes over those of devices and
    /// streams.
    pub(super) fn read(self, worker: &mut WorkerState, piece: &mut Piece<'_, '_>) -> Result<(), Failure> {
        let [_, types, _, others] = &mut worker.words;
        piece.read(TYPE, types)?;
        piece.read(OLD_TYPE, others)?;
        if !self.has_both {
            std::mem::swap(types, others);
        }
        for (kind, (today, old)) in worker.kinds.iter_mut().zip(types.iter().zip(others.iter())) {
            *kind = kind_of(*today, *old);
        }
        if self.has_events {
            let events = others;
            piece.read(EVENT, events)?;
            for (kind, event) in worker.kinds.iter_mut().zip(events.iter()) {
                // NULL is 0 in HDF5, and CUPTI counts events from 1 on.
                if *kind == STREAMS && !matches!(*event, 0 | NO_EVENT) {
                    *kind = STREAM_WAITS;
                }
            }
        }
        Ok(())
    }
}

/// The kind of today's number, or where that is not said of the old one. Numbers that are not known
/// stand behind those of ours.
fn kind_of(today: u64, old: u64) -> u32 {
    let other = |number: u64| {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        number.saturating_add(CONTEXTS + 1)
    };
    match (today, old) {
        (0, 0) => UNKNOWN,
        (1, _) | (0, 2) => EVENTS,
        (2 | 3, _) | (0, 3) => STREAMS,
        (4, _) | (0, 1) => CONTEXTS,
        (0, old) => other(old),
        (today, _) => other(today),
    }
}

/// The name of a kind.
pub(super) fn name(kind: u32) -> Text {
    let known = usize::try_from(kind).ok().and_then(|kind| SYNCS.get(kind));
    match known {
        Some(name) => Text::Fixed(name),
        None => Text::Inline(format!("Sync type {}", kind - CONTEXTS - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_means_what_its_time_meant_by_it() {
        let described = |today, old| match name(kind_of(today, old)) {
            Text::Fixed(name) => name.to_owned(),
            Text::Inline(name) => name,
            Text::Id(id) => id.to_string(),
        };
        for (old, expected) in [
            (0, "Unknown sync"),
            (1, "Context sync"),
            (2, "Event sync"),
            (3, "Stream sync"),
            (4, "Sync type 4"),
            (u64::MAX, "Sync type 4294967290"),
        ] {
            assert_eq!(described(0, old), expected, "{old} until 2024");
        }
        for (today, expected) in [
            (1, "Event sync"),
            (2, "Stream sync"),
            (3, "Stream sync"),
            (4, "Context sync"),
            (5, "Sync type 5"),
        ] {
            assert_eq!(described(today, 0), expected, "{today} since 2025.1");
        }
    }
}
