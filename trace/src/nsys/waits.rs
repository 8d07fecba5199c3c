//! Which record of an event a synchronisation waits for.

use hashbrown::HashMap;

use super::gather::{OptionalColumn, Slot, WorkerState};
use super::tables::Piece;
use super::{Failure, Reader, sync};
use flopwatch_model::ColumnId;

/// Calls that record an event in a stream.
const RECORDS: &str = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";

/// The tables that are read here.
pub(super) const TABLES: &[&str] = &[RECORDS];

/// The event that is recorded, or waited for.
pub(super) const EVENT: &str = "eventId";
/// What the record of an event and the waits for it have in common; newer schemas alone have it.
pub(super) const EVENT_SYNC: &str = "eventSyncId";
/// Kinds of synchronisations that wait for an event: of the host, of a stream.
const OF_EVENTS: [u32; 2] = [sync::EVENTS, sync::STREAM_WAITS];

/// The columns of a synchronisation that are filled here.
pub(super) const COLUMNS: [ColumnId; 2] = [ColumnId::WaitOnStream, ColumnId::WaitOnRecord];

/// A record of an event.
#[derive(Debug, Clone, Copy)]
struct Record {
    stream: u64,
    correlation: u32,
}

/// The records of one event in one context, by correlation, which rises from call to call of a
/// process.
#[derive(Debug)]
struct OfContext {
    context: u64,
    records: Vec<Record>,
}

/// All records of events.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// By process and event. The numbers of events may be those of their contexts.
    events: HashMap<(u64, u64), Vec<OfContext>>,
    /// By process and [`EVENT_SYNC`].
    linked: HashMap<(u64, u32), Record>,
}

impl Reader<'_> {
    /// Reads the records of events.
    pub(super) fn read_records(&self) -> Result<Records, Failure> {
        let mut records = Records::default();
        let Some(table) = self.table(RECORDS)? else {
            return Ok(records);
        };
        for slab in table.slabs() {
            let processes = table.optional_ids("globalPid", &slab)?;
            let contexts: Vec<u64> = table.optional("contextId", &slab)?;
            let streams: Vec<u64> = table.optional("streamId", &slab)?;
            let correlations: Vec<u32> = table.optional("correlationId", &slab)?;
            let events: Vec<u64> = table.optional(EVENT, &slab)?;
            let links: Vec<u32> = table.optional(EVENT_SYNC, &slab)?;
            let keys = processes.into_iter().zip(contexts);
            let made = streams.into_iter().zip(correlations);
            for (((process, context), (stream, correlation)), (event, link)) in
                keys.zip(made).zip(events.into_iter().zip(links))
            {
                let record = Record { stream, correlation };
                records.add((process, context), event, record);
                if is_link(link) {
                    records.linked.insert((process, link), record);
                }
            }
        }
        for of in records.events.values_mut().flatten() {
            of.records.sort_unstable_by_key(|record| record.correlation);
        }
        Ok(records)
    }
}

/// Whether that is a number, and none of those that stand for none.
fn is_link(link: u32) -> bool {
    link != 0 && link != u32::MAX
}

impl Records {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    fn add(&mut self, (process, context): (u64, u64), event: u64, record: Record) {
        let of_event = self.events.entry((process, event)).or_default();
        match of_event.iter_mut().find(|of| of.context == context) {
            Some(of) => of.records.push(record),
            None => of_event.push(OfContext {
                context,
                records: vec![record],
            }),
        }
    }

    /// The record that a wait for `event` by the call of that correlation is for: the one of the
    /// same `link`, else the last one before the call, in the context of the wait or, where the
    /// event has another one, in that.
    fn find(&self, (process, context): (u64, u64), event: u64, link: u32, call: u32) -> Option<Record> {
        if is_link(link)
            && let Some(record) = self.linked.get(&(process, link))
        {
            return Some(*record);
        }
        let of_event = self.events.get(&(process, event))?;
        let of = match &of_event[..] {
            [only] => only,
            several => several.iter().find(|of| of.context == context)?,
        };
        let earlier = of.records.partition_point(|record| record.correlation < call);
        of.records.get(earlier.checked_sub(1)?).copied()
    }

    /// Fills [`COLUMNS`] of synchronisations, whose words are those of their rows and are written
    /// over, and whose kinds and correlations are read.
    pub(super) fn fill(
        &self,
        worker: &mut WorkerState,
        piece: &mut Piece<'_, '_>,
        slot: &mut Slot<'_>,
    ) -> Result<(), Failure> {
        let [OptionalColumn::U64(streams), OptionalColumn::U32(records)] = slot.own.as_mut_slice() else {
            return Ok(());
        };
        let [processes, events, contexts, _] = &mut worker.words;
        piece.read(EVENT, events)?;
        piece.read(EVENT_SYNC, records)?;
        let waits = worker.kinds.iter().zip(processes.iter().zip(contexts.iter()));
        let waits = waits.zip(events.iter().zip(slot.correlation.iter()));
        let columns = streams.iter_mut().zip(records.iter_mut());
        for (((kind, (process, context)), (event, call)), (stream, record)) in waits.zip(columns) {
            let found = OF_EVENTS
                .contains(kind)
                .then(|| self.find((*process, *context), *event, *record, *call))
                .flatten();
            *stream = found.map_or(ColumnId::NO_STREAM, |found| found.stream);
            *record = found.map_or(0, |found| found.correlation);
        }
        Ok(())
    }
}
