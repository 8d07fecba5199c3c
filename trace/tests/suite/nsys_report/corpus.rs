//! Reports of other people, read in place: `../shared/corpus`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use flopwatch_model::{Category, ColumnId, Events, RowId, Timeline, Track};
use flopwatch_trace::{ReadLimits, Version, nsys_report, read};

use crate::capture::timeline_of;
use crate::nsys;

#[test]
fn every_report_of_the_corpus_opens() {
    for path in nsys::reports_of_corpus() {
        let capture = read(&path, &ReadLimits::default()).unwrap();
        let version = Version::parse(&capture.source.tool_version);
        assert!(version.is_some() && !capture.events.is_empty(), "{}", path.display());
        let start = capture.session_start_utc_ns.unwrap();
        assert!((1_500..2_000).contains(&(start / 1_000_000_000_000_000)), "{start}");
        // What a report counts of itself is there, and the names of all events.
        for loss in capture.losses.list() {
            let fits = !loss.what.contains("the report") && !loss.what.contains("no string");
            assert!(fits && !loss.is_of_impossible_times(), "{}: {loss:?}", path.display());
        }
    }
}

#[test]
fn reports_of_the_corpus_hold_as_many_events_as_its_readme_says() {
    // Report, kernels, copies, API calls, NVTX ranges, OS runtime calls. Ranges of MPI are NVTX in
    // a report.
    for (report, counts) in [
        ("gpubootcamp-jacobi/jacobi_report.qdrep", [1001, 3001, 6016, 2, 0]),
        (
            "gpubootcamp-jacobi/jacobi_memcpy_sys_report.qdrep",
            [3003, 13011, 18054, 3, 0],
        ),
        ("gpubootcamp-jacobi-mpi/mpi_report2.qdrep", [2002, 5002, 26784, 4006, 0]),
        ("alpa-jax/jax_profile_mem.nsys-rep", [14, 13, 777, 0, 10995]),
        ("trt-controlnet/cudagraph.nsys-rep", [0, 0, 13283, 837, 48788]),
        ("torchcodec/torchcodec_report1.nsys-rep", [3632, 1196, 7320, 0, 0]),
    ] {
        let Some(path) = nsys::corpus(report) else { continue };
        let capture = read(&path, &ReadLimits::default()).unwrap();
        let count = |categories: &[Category]| -> u64 {
            let events = categories.iter().filter_map(|category| capture.events.get(category));
            events.map(Events::count).sum()
        };
        let found = [
            count(&[Category::CudaKernel]),
            count(&Category::MEMCPY),
            count(&[Category::CudaApi]),
            count(&[Category::NvtxRange]),
            count(&[Category::OsRuntime]),
        ];
        assert_eq!(found, counts, "{report}");
    }
}

/// The events of a category as their row, name, times and columns say, in the timeline's order.
fn described(timeline: &Timeline, category: Category, ids: &[ColumnId]) -> Vec<String> {
    let Some(events) = timeline.capture.events.get(&category) else {
        return Vec::new();
    };
    let described = (0..events.len()).map(|at| {
        let own = ids.iter().map(|id| match events.text(*id, at) {
            Some(text) => text.to_owned(),
            None => format!("{:?}", events.number(*id, at)),
        });
        let own: Vec<String> = own.collect();
        format!(
            "{:?} {} {} {} {} {own:?}",
            timeline.row(events.row[at]).unwrap(),
            events.name_of(at),
            events.start_ns[at],
            events.duration_ns[at],
            events.correlation[at],
        )
    });
    described.collect()
}

/// The same of ranges, less those of MPI, which newer exports have in tables that are not read.
fn without_mpi(described: Vec<String>) -> Vec<String> {
    described.into_iter().filter(|event| !event.contains(" MPI:")).collect()
}

/// Fails where the timelines of both differ in an event, a device or the start.
pub(super) fn assert_equal(what: &str, report: &Path, export: &Path) {
    let limits = ReadLimits::default();
    let ours = timeline_of(nsys_report::read(report, &limits).unwrap());
    let theirs = timeline_of(read(export, &limits).unwrap());
    let categories: BTreeSet<Category> = [&ours, &theirs]
        .iter()
        .flat_map(|timeline| timeline.capture.events.keys().copied())
        .collect();
    for category in categories {
        // A schema may lack a column that the report has.
        let ids = |timeline: &Timeline| -> Vec<ColumnId> {
            let events = timeline.capture.events.get(&category).into_iter();
            events
                .flat_map(|events| events.columns.iter().map(|column| column.id))
                .collect()
        };
        let mut both = ids(&ours);
        let known = ids(&theirs);
        both.retain(|id| known.contains(id));
        assert_eq!(
            both.len(),
            known.len(),
            "{what}: {category:?} lacks columns of the export"
        );
        let pair = [&ours, &theirs].map(|timeline| without_mpi(described(timeline, category, &both)));
        let differing = pair[0].iter().zip(&pair[1]).find(|(ours, theirs)| ours != theirs);
        assert_eq!(differing, None, "{what}: {category:?}");
        assert_eq!(pair[0].len(), pair[1].len(), "{what}: {category:?}");
    }
    assert_eq!(ours.capture.call_stacks, theirs.capture.call_stacks, "{what}");
    assert_eq!(
        ours.capture.session_start_utc_ns, theirs.capture.session_start_utc_ns,
        "{what}"
    );
    let ids = |timeline: &Timeline| -> Vec<(u32, String)> {
        let devices = timeline.capture.devices.iter();
        devices.map(|device| (device.id, device.name.clone())).collect()
    };
    assert_eq!(ids(&ours), ids(&theirs), "{what}");
}

#[test]
fn a_report_gives_the_timeline_that_its_export_gives() {
    for report in nsys::REPORTS {
        let Some(export) = nsys::export(report) else { continue };
        assert_equal(report, export.report(), &export.path());
        // Which alone says what waits are for.
        assert_equal(report, export.report(), &export.sqlite());
        println!("{report}: equal");
    }
}

#[test]
fn every_launch_of_a_newer_report_is_found_and_streams_never_overlap_themselves() {
    for path in nsys::reports_of_corpus() {
        let timeline = timeline_of(read(&path, &ReadLimits::default()).unwrap());
        let version = Version::parse(&timeline.capture.source.tool_version).unwrap();
        if version.is_older_than(Version::parse("2024.1").unwrap()) {
            continue;
        }
        let what = path.display();
        let mut work: BTreeMap<RowId, Vec<(u64, u64)>> = BTreeMap::new();
        let calls = &timeline.capture.events[&Category::CudaApi];
        for category in Category::ALL.iter().copied().filter(|category| category.is_gpu_work()) {
            let Some(events) = timeline.capture.events.get(&category) else {
                continue;
            };
            for at in 0..events.len() {
                let launch = events.number(ColumnId::Launch, at).unwrap();
                assert_ne!(launch, u64::from(ColumnId::NO_LAUNCH), "{what}: {category:?} {at}");
                let call = calls.start_ns[usize::try_from(launch).unwrap()];
                let start = events.start_ns[at];
                assert!(call <= start, "{what}: {category:?} {at}");
                let end = start + events.duration_ns[at];
                assert!(end <= timeline.capture.duration_ns, "{what}: {category:?} {at}");
                work.entry(events.row[at]).or_default().push((start, end));
            }
        }
        assert!(!work.is_empty(), "{what}");
        for (row, mut of_stream) in work {
            assert_eq!(timeline.capture.rows[row.index()].track, Track::GpuStream);
            of_stream.sort_unstable();
            let overlapping = of_stream.windows(2).find(|pair| pair[1].0 < pair[0].1);
            assert_eq!(overlapping, None, "{what}: row {row}");
        }
    }
}
