//! Heartbeats of files that tests write.

use std::os::unix::fs::FileExt as _;

use flopwatch_ring::{Layout, header, name};
use flopwatch_trace::recorder::NamedRanges;

use super::hanging::Hanging;
use super::*;

const RING_DURATION: Duration = Duration::from_mins(1);
/// Longest wait for what a thread does.
const STATE_TIMEOUT: Duration = Duration::from_mins(1);
const OPENED: Opened = Opened {
    attach_ns: 1_790_000_000_000_000_000,
    open_ns: 1_790_000_000_000_000_000,
};

fn whose(pod: &str) -> ContainerIdentity {
    ContainerIdentity {
        namespace: "team".to_owned(),
        pod: pod.to_owned(),
        container: "main".to_owned(),
    }
}

/// A recorder's file with one name, of which nothing was counted.
fn ring(bytes: u64) -> Arc<File> {
    let file = tempfile::tempfile().unwrap();
    file.set_len(bytes).unwrap();
    let write = |bytes: &[u8], at: usize| file.write_all_at(bytes, u64::try_from(at).unwrap()).unwrap();
    write(&flopwatch_ring::MAGIC, header::MAGIC_AT);
    write(&flopwatch_ring::VERSION.to_le_bytes(), header::VERSION_AT);
    write(&bytes.to_le_bytes(), header::BYTES_AT);
    let entry = Layout::of(usize::try_from(bytes).unwrap()).unwrap().names_at;
    write(&1_u64.to_le_bytes(), entry + name::HASH_AT);
    write(b"step", entry + name::TEXT_AT);
    write(&4_u32.to_le_bytes(), entry + name::LENGTH_AT);
    Arc::new(file)
}

fn small() -> Arc<File> {
    ring(u64::try_from(flopwatch_ring::LEAST_BYTES).unwrap())
}

/// Has the one name of a file been called so often.
fn count(ring: &File, calls: u64) {
    let bytes = ring.metadata().unwrap().len();
    let entry = Layout::of(usize::try_from(bytes).unwrap()).unwrap().names_at;
    let at = u64::try_from(entry + name::CALLS_AT).unwrap();
    ring.write_all_at(&calls.to_le_bytes(), at).unwrap();
}

/// How often the ranges of a container ran, by the last reading.
fn calls(heartbeats: &Heartbeats, id: &str) -> Option<u64> {
    let beat = heartbeats.of(id)?;
    let (longest, _) = lock(&beat.rates).longest(1);
    longest.first().map(|named| named.calls)
}

/// Waits for something that a thread does, for as long as `limit`.
fn wait(what: &str, limit: Duration, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !done() {
        assert!(Instant::now() < deadline, "waited for {what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_file_that_never_answers_holds_up_its_own_container_alone() {
    let Some(Hanging { file, fuse }) = Hanging::new() else {
        return;
    };
    let heartbeats = Heartbeats::new(RING_DURATION);
    heartbeats.begin("hangs", whose("hangs"), file);
    let of = heartbeats.clone();
    let reading = std::thread::spawn(move || of.read());
    wait("the reading that hangs", STATE_TIMEOUT, || {
        heartbeats.gate.is_taken("hangs")
    });
    // What a capture of another container asks for while its window is open.
    let (told, answer) = sync_channel(1);
    let of = heartbeats.clone();
    std::thread::spawn(move || {
        let watched = of.watch("other", &OverheadSpec::default(), OPENED).is_ok();
        told.send((watched, of.within("other", 0..u64::MAX))).ok();
    });
    let limit = Duration::from_secs(1);
    assert_eq!(answer.recv_timeout(limit), Ok((false, Vec::new())));
    wait("the round of readings", STATE_TIMEOUT, || reading.is_finished());
    let ring = small();
    heartbeats.begin("other", whose("other"), Arc::clone(&ring));
    for number in 1..3 {
        count(&ring, number);
        wait("another container's heartbeat", STATE_TIMEOUT, || {
            heartbeats.read();
            calls(&heartbeats, "other") == Some(number)
        });
    }
    assert!(
        heartbeats.gate.is_taken("hangs"),
        "one thread waits, and it is the first"
    );
    // Its container ends before it answers, and so does the wait.
    heartbeats.end("hangs");
    drop(fuse);
    wait("what waited", STATE_TIMEOUT, || !heartbeats.gate.is_taken("hangs"));
    reading.join().unwrap();
}

#[test]
fn a_file_that_takes_long_to_read_rests_alone() {
    let heartbeats = Heartbeats::new(RING_DURATION);
    let costly = ring(256 << 20);
    // Whoever writes it says that all of its segments were taken: each is read.
    let cursor = u64::try_from(header::CURSOR_AT).unwrap();
    costly.write_all_at(&u64::MAX.to_le_bytes(), cursor).unwrap();
    heartbeats.begin("costly", whose("costly"), costly);
    let ring = small();
    count(&ring, 1);
    heartbeats.begin("other", whose("other"), Arc::clone(&ring));
    let costly = heartbeats.of("costly").unwrap();
    wait("both readings", STATE_TIMEOUT, || {
        heartbeats.read();
        calls(&heartbeats, "other") == Some(1) && lock(&costly.turn).rests(Instant::now())
    });
    count(&ring, 7);
    let soon = Duration::from_secs(5);
    wait("another container's next heartbeat", soon, || {
        heartbeats.read();
        calls(&heartbeats, "other") == Some(7)
    });
    let then = Instant::now();
    assert!(
        lock(&costly.turn).rests(then),
        "200 times what the reading took have not passed"
    );
}

#[test]
fn many_files_are_read_in_one_round_and_each_rests_for_all_of_them() {
    let heartbeats = Heartbeats::new(RING_DURATION);
    let ids: Vec<String> = (0..3 * MAX_CONCURRENT).map(|number| format!("c{number}")).collect();
    for id in &ids {
        let ring = small();
        count(&ring, 1);
        heartbeats.begin(id, whose(id), ring);
    }
    wait("the heartbeats of all", STATE_TIMEOUT, || {
        heartbeats.read();
        ids.iter().all(|id| calls(&heartbeats, id) == Some(1))
    });
    let held = u32::try_from(ids.len()).unwrap();
    assert_eq!(heartbeats.rest(), REST_FACTOR * held);
    for id in &ids {
        heartbeats.end(id);
    }
    assert_eq!((heartbeats.rest(), heartbeats.all().len()), (REST_FACTOR, 0));
    assert_eq!(heartbeats.read(), Duration::ZERO, "there is nothing to read");
}

#[test]
fn a_file_that_is_no_ring_has_no_heartbeat_and_takes_none_from_others() {
    let heartbeats = Heartbeats::new(RING_DURATION);
    let ring = small();
    count(&ring, 1);
    heartbeats.begin("a", whose("a"), Arc::new(tempfile::tempfile().unwrap()));
    heartbeats.begin("b", whose("b"), ring);
    let none = heartbeats.of("a").unwrap();
    wait("both readings", STATE_TIMEOUT, || {
        heartbeats.read();
        calls(&heartbeats, "b") == Some(1) && lock(&none.turn).rests(Instant::now())
    });
    assert_eq!(heartbeats.within("a", 0..u64::MAX), []);
    assert_eq!(calls(&heartbeats, "a"), None);
    heartbeats.end("a");
    assert!(heartbeats.of("a").is_none());
}

#[test]
fn nothing_is_known_of_a_container_that_is_not_held() {
    let heartbeats = Heartbeats::new(RING_DURATION);
    assert_eq!(heartbeats.within("another", 0..u64::MAX), []);
    assert!(heartbeats.samples("another", 0).is_empty());
}

#[test]
fn prometheus_has_the_longest_names_of_each_container_and_the_number_of_the_others() {
    let heartbeats = Heartbeats::new(RING_DURATION);
    heartbeats.begin("a", whose("p"), small());
    let second = 1_000_000_000;
    let counted = [("step", 7, 2 * second), ("load", 3, second), ("log", 1, 1)];
    let counted = counted.map(|(name, calls, total_ns)| NamedRanges {
        name: name.to_owned(),
        calls,
        total_ns,
        last_utc_ns: None,
    });
    let beat = heartbeats.of("a").unwrap();
    lock(&beat.rates).take(Reading::now(counted.into()), RING_DURATION);
    let registry = Registry::new();
    heartbeats.publish(2, &registry).unwrap();
    let text = prometheus::TextEncoder::new()
        .encode_to_string(&registry.gather())
        .unwrap();
    let whose = "container=\"main\",namespace=\"team\",pod=\"p\"";
    for line in [
        format!("flopwatch_range_calls_total{{{whose},range=\"step\"}} 7"),
        format!("flopwatch_range_seconds_total{{{whose},range=\"load\"}} 1"),
        format!("flopwatch_range_names_left_out{{{whose}}} 1"),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    assert!(!text.contains("log"), "{text}");
}
