//! The reader of SQLite exports: the same results as from HDF5, and nothing of the file is trusted.

use std::time::Duration;

use flopwatch_model::{Category, ColumnId, Events, Timeline, Track};
use flopwatch_trace::nsys_hdf::Failure;
use flopwatch_trace::{ReadLimits, nsys_sqlite};

use crate::capture::{counted, published, timeline_of};
use crate::export::{Export, Finished, Kernel, Nvtx, Schema, global, text};
use crate::limits::limited;
use crate::nsys;
use crate::sample::sample;

fn timeline(export: &Finished) -> Timeline {
    published(export.read_sqlite().unwrap())
}

/// The timeline of a database of the corpus, or nothing where it is not there.
fn of_corpus(name: &str) -> Option<Timeline> {
    let capture = nsys_sqlite::read(&nsys::corpus(name)?, &ReadLimits::default());
    Some(timeline_of(capture.unwrap()))
}

/// An export with one kernel, changed by some SQL.
fn forged(sql: &str) -> Finished {
    let kernel = Kernel {
        start: 1,
        end: 2,
        demangledName: 1,
        ..Kernel::default()
    };
    Export::new(Schema::V2023, &[(1, "gemm")])
        .table("CUPTI_ACTIVITY_KIND_KERNEL", &[kernel])
        .forge_sqlite(sql)
        .finish()
}

fn refusal(sql: &str) -> String {
    forged(sql).read_sqlite().unwrap_err().to_string()
}

#[test]
fn both_containers_of_a_report_give_the_same_timeline() {
    for report in nsys::REPORTS {
        let Some(export) = nsys::export(report) else { continue };
        let hdf = crate::corpus::timeline_of(&export.path());
        let capture = nsys_sqlite::read(&export.sqlite(), &ReadLimits::default()).unwrap();
        let mut sqlite = published(capture);
        // The HDF5 of nsys 2023.4 has one empty row where its SQLite says what it was asked to
        // record, and one for all records of events.
        let asked = &hdf.capture.source.capture_options;
        if asked.is_empty() && hdf.capture.source.tool_version.starts_with("2023.4") {
            sqlite.capture.source.capture_options.clear();
        }
        let waits = [ColumnId::WaitOnStream, ColumnId::WaitOnRecord];
        let syncs = hdf.capture.events.get(&Category::CudaSync);
        let lost = |id: &ColumnId| syncs.is_some_and(|syncs| syncs.column(*id).is_none());
        if let Some(syncs) = sqlite.capture.events.get_mut(&Category::CudaSync) {
            let lost = waits.into_iter().filter(lost).collect::<Vec<_>>();
            syncs.columns.retain(|column| !lost.contains(&column.id));
        }
        assert_eq!(sqlite.capture.rows, hdf.capture.rows, "{report}");
        assert_eq!(sqlite.capture.losses, hdf.capture.losses, "{report}");
        assert!(sqlite == hdf, "{report}");
        assert!(hdf.total_events() > 10_000, "{report}");
    }
}

#[test]
fn both_containers_of_our_own_exports_give_the_same_timeline_in_any_row_order() {
    for schema in [Schema::V2022, Schema::V2023] {
        for reverse in [false, true] {
            let export = sample(schema, reverse);
            assert_eq!(timeline(&export), export.timeline(), "{schema:?}, reversed: {reverse}");
        }
    }
}

#[test]
fn a_table_of_many_slabs_is_read_whole_and_in_order() {
    let ranges: Vec<Nvtx> = (0..50_000)
        .map(|at| Nvtx {
            start: at,
            end: at + 1,
            eventType: 59,
            text: text(&format!("step {}", at % 7)),
            globalTid: global(1, 2),
            ..Nvtx::default()
        })
        .collect();
    let export = Export::new(Schema::V2023, &[]).table("NVTX_EVENTS", &ranges).finish();
    assert_eq!(timeline(&export), export.timeline());
    // Numbers without holes begin anywhere.
    let export = Export::new(Schema::V2023, &[])
        .table("NVTX_EVENTS", &ranges)
        .forge_sqlite("UPDATE NVTX_EVENTS SET _rowid_ = _rowid_ - 60000")
        .finish();
    assert_eq!(timeline(&export), export.timeline());
    // Rows that are gone leave holes in the numbers that SQLite gives them.
    let export = Export::new(Schema::V2023, &[])
        .table("NVTX_EVENTS", &ranges)
        .forge_sqlite("DELETE FROM NVTX_EVENTS WHERE start % 3 = 1 OR start BETWEEN 9999 AND 29999")
        .finish();
    let events = &timeline(&export).capture.events[&Category::NvtxRange];
    let expected: Vec<u64> = (0..50_000)
        .filter(|at| at % 3 != 1 && !(9999..=29999).contains(at))
        .collect();
    assert_eq!(events.start_ns, expected);
    assert_eq!(events.name_of(2), "step 3");
}

#[test]
fn ids_that_use_all_64_bits_survive_the_signed_column() {
    let kernel = Kernel {
        start: 1,
        end: 2,
        demangledName: 1,
        globalPid: 0xFE00_0000_0000_0000 | (4711 << 24),
        ..Kernel::default()
    };
    let export = Export::new(Schema::V2023, &[(1, "gemm")])
        .table("CUPTI_ACTIVITY_KIND_KERNEL", &[kernel])
        .finish();
    let timeline = timeline(&export);
    assert_eq!(timeline, export.timeline());
    let row = &timeline.capture.rows[0];
    assert_eq!((row.machine, row.process), (0xFE00, 4711));
}

#[test]
fn columns_and_tables_of_schemas_to_come_change_nothing() {
    let reference = timeline(&forged(""));
    let newer = forged(
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN qmdLastCtaDone INTEGER;
         ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN tensorSizeMinusOneElements TEXT;
         ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN gridX;
         CREATE INDEX by_start ON CUPTI_ACTIVITY_KIND_KERNEL(start);
         CREATE TABLE CUPTI_ACTIVITY_KIND_TOMORROW (a INTEGER);
         CREATE VIEW of_somebody AS SELECT * FROM StringIds;",
    );
    assert_eq!(timeline(&newer), reference);
}

#[test]
fn an_empty_table_is_not_captured_and_rows_of_unread_ones_are_counted() {
    let export = forged(
        "CREATE TABLE OSRT_API (start INTEGER, \"end\" INTEGER, globalTid INTEGER, nameId INTEGER, eventClass INTEGER);
         CREATE TABLE SCHED_EVENTS (start INTEGER); INSERT INTO SCHED_EVENTS VALUES (1), (2);",
    );
    let capture = export.read_sqlite().unwrap();
    assert!(!capture.captured.contains(&Category::OsRuntime));
    let losses = counted(&capture);
    let unread = ("table SCHED_EVENTS".to_owned(), 2);
    assert!(losses.contains(&unread), "{losses:?}");
}

#[test]
fn what_would_run_something_of_the_files_making_is_refused_by_name() {
    const KERNEL: &str = "CUPTI_ACTIVITY_KIND_KERNEL";
    let endless = "WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM n)
                   SELECT start, start AS \"end\", 0 AS deviceId, 1 AS demangledName FROM n";
    let cases = [
        format!("ALTER TABLE {KERNEL} RENAME TO other; CREATE VIEW {KERNEL} AS SELECT * FROM other"),
        format!("DROP TABLE {KERNEL}; CREATE VIEW {KERNEL} AS {endless}"),
        format!(
            "DROP TABLE {KERNEL}; CREATE TABLE {KERNEL} (start INTEGER, \"end\" AS (length(hex(start))), deviceId INTEGER)"
        ),
        format!(
            "DROP TABLE {KERNEL}; CREATE TABLE {KERNEL} (start INTEGER PRIMARY KEY, \"end\" INTEGER) WITHOUT ROWID"
        ),
        format!("DROP TABLE {KERNEL}; CREATE TABLE {KERNEL} (_rowid_ INTEGER, start INTEGER, \"end\" INTEGER)"),
    ];
    for sql in cases {
        let error = refusal(&sql);
        for part in [KERNEL, "not read from a foreign file", "export.sqlite"] {
            assert!(error.contains(part), "{sql}: {error}");
        }
    }
}

#[test]
fn values_of_a_wrong_type_name_table_and_column() {
    let error = refusal("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'soon'");
    assert!(
        error.contains("CUPTI_ACTIVITY_KIND_KERNEL") && error.contains("column start"),
        "{error}"
    );
    let error = refusal("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN \"end\"");
    assert!(error.contains("has no column end"), "{error}");
}

#[test]
fn limits_on_rows_strings_and_time_are_kept() {
    let export = sample(Schema::V2023, false);
    let cases = [
        (limited(|of| of.max_table_rows = 9), "NVTX_EVENTS has 10 rows"),
        (limited(|of| of.max_string_bytes = 50), "StringIds"),
        (limited(|of| of.max_events = 3), "limit of 3"),
        (limited(|of| of.max_query_time = Duration::ZERO), "within the time"),
    ];
    let rows: Vec<Nvtx> = (0..20_000)
        .map(|start| Nvtx {
            start,
            ..Nvtx::default()
        })
        .collect();
    let large = Export::new(Schema::V2023, &[]).table("NVTX_EVENTS", &rows).finish();
    for (limits, expected) in cases {
        let is_slow = limits.max_query_time.is_zero();
        let export = if is_slow { &large } else { &export };
        let error = nsys_sqlite::read(export.sqlite(), &limits).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("export.sqlite"), "{error}");
    }
    let error = refusal("INSERT INTO StringIds VALUES (2, zeroblob(70000000))");
    assert!(error.contains("StringIds"), "{error}");
}

#[test]
fn what_is_no_database_or_not_finished_says_so() {
    let export = forged("");
    let log = export.beside("export.sqlite-wal");
    std::fs::write(&log, b"x").unwrap();
    let error = export.read_sqlite().unwrap_err();
    assert!(
        matches!(error.error, Failure::WriteAheadLog { .. }) && error.to_string().contains("-wal"),
        "{error}"
    );
    std::fs::remove_file(log).unwrap();
    assert!(export.read_sqlite().is_ok());
    std::fs::write(export.sqlite(), b"SQLite format 2\0 and more").unwrap();
    assert!(matches!(
        export.read_sqlite().unwrap_err().error,
        Failure::OpenSqlite(_)
    ));
    let error = refusal("DROP TABLE META_DATA_EXPORT; DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL");
    assert!(
        error.contains("META_DATA_EXPORT") && error.contains("not an export"),
        "{error}"
    );
}

#[test]
fn an_export_of_2021_which_names_no_version_is_told_by_its_tables() {
    let whole = forged("").read_sqlite().unwrap();
    let mut old = forged("DROP TABLE META_DATA_EXPORT").read_sqlite().unwrap();
    assert_eq!(old.source.tool, "NVIDIA Nsight Systems");
    assert_eq!(old.source.tool_version, "");
    assert_eq!(old.events[&Category::CudaKernel].len(), 1);
    // Nothing else is lacking, and nothing is lost.
    old.source = whole.source.clone();
    assert!(old == whole && old.losses.list().is_empty());
}

#[test]
fn damage_at_any_place_is_an_error_or_a_result_and_never_a_panic() {
    let export = sample(Schema::V2022, false);
    let whole = std::fs::read(export.sqlite()).unwrap();
    let damaged = export.beside("damaged.sqlite");
    let limits = limited(|of| of.max_query_time = Duration::from_secs(2));
    let mut errors = 0;
    for round in 0..400_usize {
        let mut bytes = whole.clone();
        match round % 4 {
            0 => bytes.truncate(round * whole.len() / 400),
            // Headers of pages and their cell pointers stand at the pages' beginnings.
            1 => bytes[(round * 4096 + round % 97) % whole.len()] ^= 0x55,
            2 => bytes[round * 7919 % whole.len()] = 0xFF,
            _ => {
                let at = round * 104_729 % (whole.len() - 64);
                bytes[at..at + 64].fill(u8::try_from(round % 256).unwrap());
            }
        }
        std::fs::write(&damaged, &bytes).unwrap();
        errors += usize::from(nsys_sqlite::read(&damaged, &limits).is_err());
    }
    assert!(errors > 100, "{errors}");
}

#[test]
fn every_database_of_the_corpus_holds_what_is_told_of_it() {
    // File, kernels, kernel time in ns, API calls, NVTX ranges.
    let cases = [
        ("nsys-ai/mfu_2gpu_before.sqlite", 4010, Some(535_200_000), 7466, 19118),
        ("nsightful/power_iteration__baseline.sqlite", 3689, None, 7417, 0),
        ("nsys-ai/mock.sqlite", 2, None, 9, 0),
        // Another 38 rows of the calls' table repeat calls, for their call stacks.
        ("pipit-nsys/saxpy-mpi-cuda_nsys_perlmutter0.sqlite", 5, None, 57, 0),
    ];
    for (file, kernels, kernel_ns, calls, ranges) in cases {
        let Some(timeline) = of_corpus(file) else { continue };
        let count = |category| timeline.capture.events.get(&category).map_or(0, Events::len);
        assert_eq!(count(Category::CudaKernel), kernels, "{file}");
        assert_eq!(count(Category::CudaApi), calls, "{file}");
        if ranges > 0 {
            assert_eq!(count(Category::NvtxRange), ranges, "{file}");
        }
        if let Some(expected) = kernel_ns {
            // The corpus tells it in hundredths of a millisecond.
            let total: u64 = timeline.capture.events[&Category::CudaKernel].duration_ns.iter().sum();
            assert!(total.abs_diff(expected) < 5_000, "{file}: {total}");
        }
    }
}

#[test]
fn kernels_of_two_processes_find_the_launches_of_their_own_in_a_real_capture() {
    let Some(timeline) = of_corpus("nsys-ai/mfu_2gpu_before.sqlite") else {
        return;
    };
    let kernels = &timeline.capture.events[&Category::CudaKernel];
    let calls = &timeline.capture.events[&Category::CudaApi];
    let launches = kernels.column(ColumnId::Launch).unwrap();
    let launches = (0..kernels.len()).map(|at| usize::try_from(launches.get(at).unwrap()).unwrap());
    // By correlation alone they would be 4,280 of 4,010; 24 were launched before the capture began.
    assert_eq!(launches.filter(|launch| *launch < calls.len()).count(), 3986);
    // One kernel begins before its predecessor in the stream has ended.
    assert_eq!(kernels.lane.iter().filter(|lane| **lane > 0).count(), 1);
}

#[test]
fn a_synchronisation_is_on_the_device_of_its_context_where_the_export_says_0() {
    let Some(timeline) = of_corpus("nsys-ai/mfu_2gpu_before.sqlite") else {
        return;
    };
    let waits = timeline.capture.rows.iter().filter(|row| row.track == Track::CudaSync);
    let mut devices: Vec<_> = waits.map(|row| (row.process, row.device)).collect();
    devices.sort_unstable();
    devices.dedup();
    // The kernels of process 145 ran on GPU 1, those of the other one on GPU 0.
    assert_eq!(devices, [(144, Some(0)), (145, Some(1))]);
}
