//! Which record of an event a synchronisation of nsys waits for.

use flopwatch_model::{Category, ColumnId, Events};
use hdf5::H5Type as DeriveH5Type;
use rusqlite::types::Value;

use crate::capture::names;
use crate::export::{Export, Schema, SqlCell, Synchronization, TableRow, global, table_row};

const NONE: u32 = u32::MAX;

table_row!(Record {
    deviceId: u32,
    contextId: u64,
    streamId: u64,
    correlationId: u32,
    globalPid: u64,
    eventId: u32,
    eventSyncId: u32,
});
table_row!(Wait: work {
    syncType: u32,
    eventId: u32,
    eventSyncId: u32,
});

/// A record of event 5.
fn record(stream: u64, correlation: u32, link: u32) -> Record {
    Record {
        contextId: 1,
        streamId: stream,
        correlationId: correlation,
        globalPid: global(100, 0),
        eventId: 5,
        eventSyncId: link,
        ..Record::default()
    }
}

/// A wait by stream 13, or of the host.
fn wait(kind: u32, correlation: u32, event: u32, link: u32) -> Wait {
    Wait {
        start: i64::from(correlation) * 10,
        end: i64::from(correlation) * 10 + 5,
        contextId: 1,
        streamId: 13,
        correlationId: correlation,
        globalPid: global(100, 0),
        syncType: kind,
        eventId: event,
        eventSyncId: link,
        ..Wait::default()
    }
}

fn column(events: &Events, id: ColumnId) -> Vec<Option<u64>> {
    (0..events.len()).map(|at| events.number(id, at)).collect()
}

#[test]
fn a_wait_names_the_stream_of_the_last_record_before_it_or_of_the_one_that_the_schema_links() {
    let waits = [
        wait(2, 22, 5, 0),
        // Of streams: linked to the earlier of two records, by the time of the call, of an event
        // that was never recorded.
        wait(3, 35, 5, 100),
        wait(3, 36, 5, 0),
        wait(3, 37, 6, 0),
        // Of a stream and of a context.
        wait(3, 38, NONE, NONE),
        wait(1, 39, 5, 101),
        // Before the first record.
        wait(3, 15, 5, NONE),
    ];
    let export = Export::new(Schema::V2023, &[])
        .table("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", &waits)
        .table(
            "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
            &[record(9, 30, 101), record(7, 20, 100)],
        )
        .finish();
    let capture = export.read().unwrap();
    assert_eq!(export.read_sqlite().unwrap(), capture);
    let syncs = &capture.events[&Category::CudaSync];
    let streams = [Some(7), Some(7), Some(9), None, None, None, None];
    assert_eq!(column(syncs, ColumnId::WaitOnStream), streams);
    let records = [20, 20, 30, 0, 0, 0, 0].map(Some);
    assert_eq!(column(syncs, ColumnId::WaitOnRecord), records);
    assert!(capture.losses.list().is_empty(), "{:?}", capture.losses);
}

table_row!(NewWait: work {
    deprecatedSyncType: u32,
    syncType: u32,
    eventId: u32,
    eventSyncId: u32,
});

#[test]
fn the_numbers_of_2024_and_of_2025_name_the_same_synchronisations() {
    let old = [
        wait(1, 10, NONE, 0),
        wait(2, 11, 5, 0),
        wait(3, 12, NONE, 0),
        wait(3, 13, 5, 0),
    ];
    let newer = |deprecated, kind, correlation, event| NewWait {
        start: i64::from(correlation) * 10,
        end: i64::from(correlation) * 10 + 5,
        contextId: 1,
        streamId: 13,
        correlationId: correlation,
        globalPid: global(100, 0),
        deprecatedSyncType: deprecated,
        syncType: kind,
        eventId: event,
        ..NewWait::default()
    };
    let new = [
        newer(0, 4, 10, NONE),
        newer(0, 1, 11, 5),
        // 2025.1 to 2026.1 call this 2, 2026.2 calls it 3.
        newer(0, 2, 12, NONE),
        newer(0, 2, 13, 5),
        newer(0, 3, 14, NONE),
        // A report of 2024 that a later version exported.
        newer(1, 0, 15, NONE),
        newer(2, 0, 16, 5),
        newer(3, 0, 17, NONE),
        newer(3, 0, 18, 5),
    ];
    let waits = ["Context sync", "Event sync", "Stream sync", "Stream wait sync"];
    let table = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
    let old = Export::new(Schema::V2023, &[]).table(table, &old).finish();
    let new = Export::new(Schema::V2023, &[]).table(table, &new).finish();
    for capture in [old.read().unwrap(), old.read_sqlite().unwrap()] {
        assert_eq!(names(&capture.events[&Category::CudaSync]), waits);
    }
    for capture in [new.read().unwrap(), new.read_sqlite().unwrap()] {
        let expected = [&waits[..], &["Stream sync"], &waits].concat();
        assert_eq!(names(&capture.events[&Category::CudaSync]), expected);
    }
}

#[test]
fn a_schema_without_events_names_none() {
    let sync = Synchronization {
        start: 1,
        end: 2,
        globalPid: global(100, 0),
        correlationId: 40,
        syncType: 3,
        ..Synchronization::default()
    };
    let export = Export::new(Schema::V2022, &[])
        .table("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", &[sync])
        .table("CUPTI_ACTIVITY_KIND_CUDA_EVENT", &[record(7, 20, 0)])
        .finish();
    let capture = export.read().unwrap();
    let syncs = &capture.events[&Category::CudaSync];
    assert_eq!(syncs.column(ColumnId::WaitOnStream), None);
}
