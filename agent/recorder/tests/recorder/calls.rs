//! Every function of NVTX, as every set of headers calls it.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flopwatch_model::{Capture, ColumnId, NameDetail};
use flopwatch_trace::recorder::{self, Extent, Heartbeat, NamedRanges};

use super::rig::{Rig, headers, lost, ranges, ranges_of};

/// Name, style, category and colour of each range.
fn told(capture: &Capture) -> BTreeMap<String, (u64, Option<String>, u64)> {
    let events = ranges(capture);
    let number = |id, at| events.column(id).unwrap().get(at).unwrap();
    let one = |at| {
        let category = events.text(ColumnId::RangeCategory, at).map(str::to_owned);
        let told = (number(ColumnId::RangeStyle, at), category, number(ColumnId::Color, at));
        (events.name_of(at).to_owned(), told)
    };
    (0..events.len()).map(one).collect()
}

pub(crate) fn every_call_is_there(capture: &Capture) {
    let category = |name: &str| Some(name.to_owned());
    let expected = [
        ("push a", (0, None, 0)),
        ("püsh w", (0, None, 0)),
        ("push ex", (0, category("loading"), 0xff11_2233)),
        ("start a", (1, None, 0)),
        ("start w", (1, None, 0)),
        ("start ex", (1, None, 0)),
        ("library:registered", (0, category("domain's"), 0)),
        ("library:registriert", (0, category("domain's wide"), 0)),
        ("weit:wïde", (0, None, 0)),
        ("library:domain start", (1, None, 0)),
    ];
    let expected: BTreeMap<_, _> = expected.map(|(name, told)| (name.to_owned(), told)).into();
    assert_eq!(told(capture), expected);
    assert_eq!(lost(capture, "NVTX marks"), 4);
    assert_eq!(lost(capture, "payloads of NVTX events"), 1);
    assert_eq!(capture.losses.list().len(), 2, "{:?}", capture.losses.list());
    let row = &capture.rows[0];
    assert_eq!(capture.rows.len(), 1);
    assert_eq!(
        row.label,
        format!("größter thread (process {0}) thread {0}", row.process)
    );
    let at = ranges(capture)
        .names
        .iter()
        .position(|name| name == "weit:wïde")
        .unwrap();
    let domains = &ranges(capture).name_details[&NameDetail::Domain];
    assert_eq!(domains[at], "weit");
}

#[test]
fn every_function_that_a_set_of_headers_has_is_recorded() {
    for headers in headers() {
        println!("with the headers of {}", headers.of);
        let rig = Rig::new(&headers);
        assert_eq!(rig.run(&["every"]), 10);
        every_call_is_there(&rig.capture());
    }
}

#[test]
fn the_library_wants_nothing_of_a_version_and_cannot_panic() {
    let Some(rig) = Rig::any() else { return };
    let mut nm = Command::new("nm");
    let output = nm
        .args(["-D", "--undefined-only"])
        .arg(rig.path("libflopwatch-recorder.so"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let wanted: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().last()).collect();
    let weak = ["clock_gettime", "dlopen", "dlsym", "getenv"];
    let compilers = ["memcpy", "memset", "memmove", "memcmp", "bcmp", "strlen"];
    for name in wanted {
        assert!(weak.contains(&name) || compilers.contains(&name), "{name}");
    }
}

#[test]
fn a_range_that_another_thread_ends_is_one_range() {
    let Some(rig) = Rig::any() else { return };
    assert_eq!(rig.run(&["across"]), 1);
    let capture = rig.capture();
    assert_eq!((ranges(&capture).len(), ranges(&capture).name_of(0)), (1, "across"));
    assert_eq!(capture.losses.list(), []);
}

#[test]
fn more_names_than_the_table_holds_stand_beside_their_events() {
    let Some(rig) = Rig::any() else { return };
    assert_eq!(rig.run(&["names", "9000"]), 9000);
    let capture = rig.capture();
    let events = ranges(&capture);
    let mut names: Vec<&str> = (0..events.len()).map(|at| events.name_of(at)).collect();
    names.sort_unstable();
    let mut expected: Vec<String> = (0..9000).map(|at| format!("step number {at} of many")).collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert_eq!(capture.losses.list(), []);
}

#[test]
fn a_name_is_not_read_beyond_the_page_that_it_ends_with() {
    let Some(rig) = Rig::any() else { return };
    assert_eq!(rig.run(&["page-end"]), 40);
    let capture = rig.capture();
    let events = ranges(&capture);
    let mut lengths: Vec<usize> = (0..events.len()).map(|at| events.name_of(at).len()).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, (0..40).collect::<Vec<_>>());
}

#[test]
fn ranges_are_counted_by_name_beyond_what_the_ring_holds() {
    let Some(rig) = Rig::any() else { return };
    let ranges_said = rig.run(&["threads", "4", "200000"]);
    let mut counts = recorder::counts(&rig.ring()).unwrap();
    counts.sort_by(|one, other| one.name.cmp(&other.name));
    let calls: Vec<(&str, u64)> = counts.iter().map(|count| (count.name.as_str(), count.calls)).collect();
    assert_eq!(calls, [("inner", ranges_said / 2), ("outer", ranges_said / 2)]);
    assert!(
        counts[1].total_ns > counts[0].total_ns && counts[0].total_ns > 0,
        "{counts:?}"
    );
    let capture = rig.capture();
    assert!(ranges(&capture).count() < ranges_said);
    assert!(lost(&capture, "NVTX events that the ring no longer holds") > 0);
}

#[test]
fn the_end_of_the_last_range_of_each_name_is_known_beyond_what_the_ring_holds() {
    let Some(rig) = Rig::any() else { return };
    let unix_ns = || u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap();
    let begin = unix_ns();
    rig.run(&["threads", "4", "200000"]);
    let end = unix_ns();
    let counts = recorder::counts(&rig.ring()).unwrap();
    let last = |name: &str| {
        counts
            .iter()
            .find(|count| count.name == name)
            .unwrap()
            .last_utc_ns
            .unwrap()
    };
    assert!(
        begin < last("inner") && last("inner") <= last("outer") && last("outer") < end,
        "{counts:?}"
    );
    // Of the ranges that the ring still holds, those that ended last.
    let capture = rig.capture();
    let events = ranges(&capture);
    let ended = |name: &str| {
        let of_name = (0..events.len()).filter(|at| events.name_of(*at) == name);
        of_name
            .map(|at| events.start_ns[at] + events.duration_ns[at])
            .max()
            .unwrap()
    };
    let apart = last("outer") - last("inner");
    assert!(apart.abs_diff(ended("outer") - ended("inner")) < 1_000, "{apart}");
}

#[test]
fn counts_that_are_read_while_threads_record_never_go_back_and_are_exact_at_the_end() {
    let Some(rig) = Rig::any() else { return };
    let mut program = rig.command(&["threads", "4", "400000"]);
    let mut running = program.stdout(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_mins(1);
    let (file, mut heartbeat) = loop {
        // The program makes it once it has ranges, and fills its header last.
        if let Ok(file) = File::open(rig.ring())
            && let Ok(heartbeat) = Heartbeat::open(&file)
        {
            break (file, heartbeat);
        }
        assert!(Instant::now() < deadline, "no file after a minute");
        std::thread::yield_now();
    };
    let mut before: BTreeMap<String, u64> = BTreeMap::new();
    let mut readings = 0;
    while running.try_wait().unwrap().is_none() {
        let extent = [Extent::Whole, Extent::Known][readings % 2];
        for NamedRanges { name, calls, .. } in heartbeat.read(&file, extent).unwrap() {
            let known = before.insert(name, calls).unwrap_or(0);
            assert!(calls >= known, "{calls} after {known}");
        }
        readings += 1;
    }
    assert!(readings > 0, "none beside the program");
    let ranges_said = ranges_of(&running.wait_with_output().unwrap());
    let all = heartbeat.read(&file, Extent::Whole).unwrap();
    let calls: Vec<u64> = all.iter().map(|named| named.calls).collect();
    assert_eq!(calls, [ranges_said / 2, ranges_said / 2]);
    assert_eq!(
        all,
        recorder::counts(&rig.ring()).unwrap(),
        "as somebody who begins now reads them"
    );
}

#[test]
fn a_program_runs_on_where_nothing_can_be_recorded() {
    let Some(rig) = Rig::any() else { return };
    let mut missing = rig.command(&["every"]);
    missing.env("FLOPWATCH_RECORDER_DIR", rig.path("no such folder"));
    assert!(missing.output().unwrap().status.success());
    // A file of another kind stays as it is.
    for content in [b"another file".to_vec(), vec![0; 300 << 10]] {
        std::fs::write(rig.ring(), &content).unwrap();
        assert_eq!(rig.run(&["every"]), 10);
        assert_eq!(std::fs::read(rig.ring()).unwrap(), content);
    }
    std::fs::remove_file(rig.ring()).unwrap();
    std::os::unix::fs::symlink(rig.path("elsewhere"), rig.ring()).unwrap();
    assert_eq!(rig.run(&["every"]), 10);
    assert!(!rig.path("elsewhere").exists());
    let left: Vec<_> = std::fs::read_dir(rig.path("ring")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
