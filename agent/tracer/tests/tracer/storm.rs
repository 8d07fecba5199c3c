//! Random faults in random releases, and what a program sees of them: nothing.
//!
//! 120 programs, or as many as `FLOPWATCH_TRACER_FAULTS` says (`cargo xtask soak --cycles 0
//! --tracer-faults 10000`); `FLOPWATCH_SEED` draws the faults. In every hundredth program a call
//! hangs, more or less, and every hundredth one has so many windows that it shows whether it grows.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use flopwatch_tracer_file::process::{Count, Phase};
use flopwatch_tracer_file::wanted::{Kinds, Mode, Wanted};
use rustix::process::{Pid, Signal, kill_process};

use super::agent::{Agent, now_ns, window};
use super::rig::{Program, RELEASES, Rig};

/// The longest that a program may take for what it is told, and for its end.
const MAX_ANSWER_DURATION: Duration = Duration::from_secs(2);
/// How long a program may take in all, until it is killed: whoever waits for it fails.
const PROGRAM_TIMEOUT: Duration = Duration::from_mins(3);
/// Windows of a program that shows whether it grows.
const MANY_WINDOWS: u64 = 15;
/// The window of it behind which it has all that it will ever map.
const LAST_NEW_WINDOW: u64 = 5;
/// Memory of a program's own, in KiB: the pool of buffers is 16 MiB and 64 KiB.
const MAX_OWN_KIB: u64 = 20 << 10;
/// What a program is told to do.
const WORK: &str = "work 2000";

const FAULTS: [&str; 21] = [
    "version",
    "subscribe",
    "enable",
    "register",
    "attribute",
    "flush",
    "disable",
    "zero_times",
    "backwards",
    "drop",
    "keep",
    "hoard",
    "worker",
    "foreign",
    "late_callback",
    "poison",
    "unknown",
    "malformed",
    "disorder",
    "enable_ms",
    "flush_ms",
];
const HANGS: [&str; 4] = ["subscribe_ms", "enable_ms", "flush_ms", "disable_ms"];

/// Numbers of a seed (xorshift).
struct Random(u64);

impl Random {
    /// Those of a program.
    fn new(seed: u64, program: u64) -> Self {
        let start = (seed ^ program.rotate_right(16)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = Self(start.max(1));
        // Seeds next to each other begin alike.
        for _ in 0..8 {
            random.below(2);
        }
        random
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        let at = self.below(u64::try_from(all.len()).unwrap());
        all[usize::try_from(at).unwrap()]
    }
}

/// What a program says and how it ends without the library.
struct Without {
    said: String,
    code: Option<i32>,
}

/// How programs went.
#[derive(Default)]
struct Outcome {
    windows: u64,
    stuck: u64,
    longest: Duration,
}

#[test]
fn any_faults_in_any_release_leave_what_the_program_says_and_its_end_as_they_are() {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let count = number("FLOPWATCH_TRACER_FAULTS").unwrap_or(120);
    let seed = number("FLOPWATCH_SEED").unwrap_or_else(|| now_ns() % 1_000_000_000);
    println!("{count} programs with faults, seed {seed}");
    let without = {
        let rig = Rig::new(1305);
        let mut program = Program::of(rig.bare());
        let said = program.ask(WORK);
        let code = program.end().code();
        Without { said, code }
    };
    let mut all = Outcome::default();
    for number in 0..count {
        let mut random = Random::new(seed, number);
        let faults = faults(&mut random);
        let release = random.of(&RELEASES);
        let windows = if number % 100 == 99 {
            MANY_WINDOWS
        } else {
            1 + random.below(3)
        };
        let what = format!("seed {seed}, program {number}: {release} {faults}");
        // Threads of the stand-in that meet in malloc would get 64 MiB of addresses each.
        let rig = Rig::new(release).failing(&faults).with("MALLOC_ARENA_MAX", &1);
        strike(&what, &rig, windows, &mut random, &without, &mut all);
        if (number + 1).is_multiple_of(1000) {
            println!("{} programs of {count}", number + 1);
        }
    }
    println!(
        "{} windows were recorded, {} programs were stuck, the longest answer took {:?}",
        all.windows, all.stuck, all.longest
    );
    assert!(all.windows > 0);
}

/// What goes wrong in a program.
fn faults(random: &mut Random) -> String {
    let mut list = Vec::new();
    for _ in 0..random.below(4) {
        let word = random.of(&FAULTS);
        let largest = if word.ends_with("_ms") { 39 } else { 999 };
        let value = random.of(&[1, 2, 3, 14, 15, 39, 999]).min(largest);
        list.push(format!("{word}={value}"));
    }
    if random.below(100) == 0 {
        list.push(format!("{}=2300", random.of(&HANGS)));
    }
    list.join(",")
}

/// Runs a program with faults through windows.
fn strike(what: &str, rig: &Rig, windows: u64, random: &mut Random, without: &Without, all: &mut Outcome) {
    let mut program = rig.start();
    let _watch = watch(&program);
    let mut agent = Agent::of(rig);
    let mut mapped_kib = None;
    for at in 0..windows {
        let kinds = Kinds::of(u32::try_from(random.below(1024)).unwrap());
        agent.order(window(kinds));
        let begin = Instant::now();
        assert_eq!(program.ask(WORK), without.said, "{what}");
        all.longest = all.longest.max(in_time(what, begin));
        if windows == MANY_WINDOWS || random.below(2) == 0 {
            agent.settle(0);
            agent.order(Wanted {
                mode: Mode::Off,
                ..window(kinds)
            });
            agent.settle(0);
        }
        if at == LAST_NEW_WINDOW {
            mapped_kib = Some(program.memory_kib("VmSize:"));
        }
    }
    agent.drain();
    if let Some(mapped_kib) = mapped_kib {
        let now_kib = program.memory_kib("VmSize:");
        assert_eq!(now_kib, mapped_kib, "{what}: the program grows");
    }
    let own_kib = program.memory_kib("RssAnon:");
    assert!(own_kib <= MAX_OWN_KIB, "{what}: {own_kib} KiB");
    let pid = format!("pid {}", program.child.id());
    assert_eq!(program.ask("pid"), pid, "{what}");
    let process = agent.process(0);
    all.windows += process.count(Count::Windows);
    all.stuck += u64::from(process.phase == Phase::Stuck);
    let begin = Instant::now();
    assert_eq!(program.end().code(), without.code, "{what}");
    all.longest = all.longest.max(in_time(what, begin));
    let calls = rig.calls();
    assert!(calls.iter().all(|(name, ..)| name != "finalize"), "{what}");
}

/// How long ago that was, which is soon enough for an answer.
fn in_time(what: &str, begin: Instant) -> Duration {
    let took = begin.elapsed();
    assert!(took <= MAX_ANSWER_DURATION, "{what}: the program took {took:?}");
    took
}

/// Kills a program that takes too long, unless what is given here was dropped before.
fn watch(program: &Program) -> SyncSender<()> {
    let (sender, over) = sync_channel(1);
    let pid = Pid::from_child(&program.child);
    std::thread::spawn(move || {
        if over.recv_timeout(PROGRAM_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            // One that has ended meanwhile needs no signal.
            kill_process(pid, Signal::KILL).ok();
        }
    });
    sender
}
