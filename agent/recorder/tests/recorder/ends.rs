//! Programs that are killed, and rings that are read while they are written.

use std::os::unix::fs::FileExt as _;
use std::process::Child;
use std::time::{Duration, Instant};

use flopwatch_model::Capture;
use flopwatch_trace::{ReadLimits, recorder};

use super::rig::{Rig, ranges};

/// A program that is killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait().map(drop)) {
            println!("the program ended by itself: {error}");
        }
    }
}

fn start(rig: &Rig, pause: &str) -> Running {
    let lines = rig.path("lines");
    std::fs::write(&lines, "").unwrap();
    let lines = lines.display().to_string();
    let running = Running(rig.command(&["until-killed", &lines, pause]).spawn().unwrap());
    let begin = Instant::now();
    while std::fs::metadata(rig.path("lines")).unwrap().len() < 40 {
        assert!(begin.elapsed() < Duration::from_secs(20), "the program does nothing");
        std::thread::sleep(Duration::from_millis(1));
    }
    running
}

/// The last whole line: between which times the last range was.
fn last_line(rig: &Rig) -> (u64, u64) {
    let text = std::fs::read_to_string(rig.path("lines")).unwrap();
    let whole = text.rsplit_once('\n').unwrap().0;
    let (before, after) = whole.lines().last().unwrap().split_once(' ').unwrap();
    (before.parse().unwrap(), after.parse().unwrap())
}

/// How far the range that comes closest reaches out of those times.
fn apart(capture: &Capture, (before, after): (u64, u64)) -> u64 {
    let (events, start) = (ranges(capture), capture.session_start_utc_ns.unwrap());
    let one = |at| {
        let (begin, end) = (start + events.start_ns[at], start + events.end_ns(at));
        before.saturating_sub(begin).max(end.saturating_sub(after))
    };
    (0..events.len()).map(one).min().unwrap()
}

/// The end of the last range, since the epoch.
fn end(capture: &Capture) -> u64 {
    capture.session_start_utc_ns.unwrap() + ranges(capture).last_end_ns().unwrap()
}

#[test]
fn a_ring_ends_where_its_program_was_killed() {
    let Some(rig) = Rig::any() else { return };
    let mut worst = 0;
    for round in 0_u64..100 {
        let running = start(&rig, if round % 2 == 0 { "0" } else { "300" });
        std::thread::sleep(Duration::from_micros(round * 7919 % 20_000));
        drop(running);
        // Where the program was killed between a range and its line, the ring holds one more.
        worst = worst.max(apart(&rig.capture(), last_line(&rig)));
        std::fs::remove_file(rig.ring()).unwrap();
    }
    println!("the furthest of 100 last ranges was {worst} ns out of the times of the program's own last line");
    assert!(worst < 1_000_000, "{worst} ns");
}

#[test]
fn rubbish_that_somebody_writes_into_the_ring_hurts_neither_the_program_nor_the_reader() {
    let Some(rig) = Rig::any() else { return };
    // The ring is there before the rubbish: a file that is none would be left alone.
    rig.run(&["threads", "1", "10"]);
    let file = std::fs::OpenOptions::new().write(true).open(rig.ring()).unwrap();
    let length = file.metadata().unwrap().len();
    let mut command = rig.command(&["threads", "16", "60000"]);
    let mut child = Running(command.stdout(std::process::Stdio::null()).spawn().unwrap());
    let (mut random, mut rounds) = (88_172_645_463_325_252_u64, 0);
    let status = loop {
        for _ in 0..2_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // What says that it is a ring stays, or nobody would go on reading.
            let at = 64 + random % (length - 72);
            file.write_all_at(&random.rotate_left(31).to_le_bytes(), at).unwrap();
        }
        rounds += 1;
        drop(rig.capture());
        drop(recorder::counts(&rig.ring()).unwrap());
        if let Some(status) = child.0.try_wait().unwrap() {
            break status;
        }
    };
    assert!(status.success(), "{status} in round {rounds}");
}

#[test]
fn a_ring_is_read_while_it_is_written() {
    let Some(rig) = Rig::any() else { return };
    let running = start(&rig, "0");
    let mut before = 0;
    for _ in 0..30 {
        let capture = rig.capture();
        let last = end(&capture);
        assert!(last > before, "{last} is not behind {before}");
        before = last;
        let torn = capture
            .losses
            .list()
            .into_iter()
            .find(|loss| loss.what.contains("not whole"));
        assert_eq!(torn, None);
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(running);
}

#[test]
fn a_window_of_a_ring_holds_what_ran_in_it_and_says_what_it_cut() {
    let Some(rig) = Rig::any() else { return };
    rig.run(&["threads", "2", "2000"]);
    let whole = rig.capture();
    let (start, all) = (whole.session_start_utc_ns.unwrap(), ranges(&whole));
    // By ranges and not by time: a thread that begins late leaves the machine idle.
    let mut begins = all.start_ns.clone();
    begins.sort_unstable();
    let window = start + begins[begins.len() / 4]..start + begins[begins.len() / 2] + 1;
    let read = recorder::read_between(&rig.ring(), &ReadLimits::default(), window.clone()).unwrap();
    let held = ranges(&read);
    let times = |events: &flopwatch_model::Events, start: u64, at: usize| {
        (start + events.start_ns[at], start + events.end_ns(at))
    };
    let expected = (0..all.len())
        .map(|at| times(all, start, at))
        .filter(|(begin, end)| *begin < window.end && *end >= window.start)
        .count();
    assert_eq!(held.len(), expected);
    assert_eq!(
        (read.session_start_utc_ns, read.duration_ns),
        (Some(window.start), window.end - window.start)
    );
    for at in 0..held.len() {
        let (begin, end) = times(held, window.start, at);
        assert!(begin >= window.start && end <= window.end, "{begin} to {end}");
    }
    let beyond = (0..all.len())
        .map(|at| times(all, start, at))
        .filter(|(begin, end)| *begin < window.end && *end >= window.start)
        .filter(|(begin, end)| *begin < window.start || *end > window.end);
    let cut = super::rig::lost(&read, "ranges that go beyond the window");
    assert_eq!(usize::try_from(cut).unwrap(), beyond.count());
}

#[test]
fn a_copy_of_a_ring_reads_as_the_ring_does_also_while_it_is_written() {
    let Some(rig) = Rig::any() else { return };
    let copied = |to: &str| {
        let mut copy = std::fs::File::create(rig.path(to)).unwrap();
        let from = std::fs::File::open(rig.ring()).unwrap();
        recorder::snapshot(&from, &mut copy, &ReadLimits::default()).unwrap();
        recorder::read(&rig.path(to), &ReadLimits::default()).unwrap()
    };
    let running = start(&rig, "0");
    for round in 0..20 {
        let copy = copied(&format!("copy-{round}"));
        assert!(ranges(&copy).len() > 10, "{round}");
    }
    drop(running);
    assert_eq!(copied("copy"), rig.capture());
    std::fs::write(rig.ring(), "rubbish").unwrap();
    let from = std::fs::File::open(rig.ring()).unwrap();
    let mut copy = tempfile::tempfile().unwrap();
    assert!(recorder::snapshot(&from, &mut copy, &ReadLimits::default()).is_err());
}
