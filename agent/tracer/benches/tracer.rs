//! What the CUDA tracer costs, how soon it begins and ends, and what it keeps: `cargo xtask bench
//! tracer`.
//!
//! Arguments: a file to be made, seconds of the long window, rounds. Runs a program with stand-ins
//! for NVIDIA's libraries (`tests/rig/fake-cupti`), copies what a window of a million records left
//! to the file, and prints a line of JSON.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    dead_code,
    reason = "a measurement fails by panicking, prints and sleeps; the tests use more of what they share with it"
)]

#[path = "../tests/tracer/agent.rs"]
mod agent;
#[path = "../tests/tracer/kills.rs"]
mod kills;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use flopwatch_tracer_file::DEFAULT_BYTES;
use flopwatch_tracer_file::process::{Count, Phase};
use flopwatch_tracer_file::wanted::{Kinds, Mode, Wanted};
use serde_json::{Value, json};

use agent::{Agent, lost, window};
use flopwatch_fake_cupti as rig;
use rig::{Program, Rig};

/// The release of libcupti that is stood in for.
const RELEASE: u32 = 1305;
/// Bytes of the file, as by default.
const FILE_BYTES: u32 = 64 << 20;
/// Bytes of a file that a million records fit.
const MILLION_FILE_BYTES: u32 = 128 << 20;
/// Launches that are timed while nobody asks.
const TIMED_LAUNCHES: u64 = 50_000_000;
/// Launches that are timed while kernels are recorded all the time.
const RECORDED_LAUNCHES: u64 = 2_000_000;
/// Kernels a second, the most that the agent has recorded all the time, and milliseconds for which
/// they are launched: as long as a file takes to go round, whose kernels have two slots each.
const CONTINUOUS_PER_SECOND: u64 = 100_000;
const CONTINUOUS_MILLISECONDS: u64 = 5_000;
/// Between two orders that have kernels recorded all the time, as the agent gives them.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(1);
/// Windows that are begun and ended, behind the first one.
const WINDOWS: usize = 200;
/// Programs that are killed.
const KILLS: u64 = 100;
/// Records a second of which each one's cost is measured.
const RECORDS_PER_SECOND: u64 = 2_000_000;
/// Milliseconds for which that lasts.
const RATE_MILLISECONDS: u64 = 5_000;
/// Launches a second that are recorded with both calls of each.
const LAUNCHES_PER_SECOND: u64 = 100_000;
/// Between two reads of the file.
const DRAIN_INTERVAL: Duration = Duration::from_millis(5);
/// The thread of the library.
const OWN_THREAD: &str = "flopwatch-cuda";
/// The thread of libcupti, on which the library takes records.
const CUPTI_THREAD: &str = "fake-cupti";

fn main() {
    // Cargo adds an argument of its own.
    let given: Vec<String> = std::env::args().skip(1).filter(|given| given != "--bench").collect();
    let [file, seconds, rounds] = given.as_slice() else {
        panic!("arguments: FILE SECONDS ROUNDS");
    };
    let calls = Kinds::RUNTIME.with(Kinds::DRIVER);
    let line = json!({
        "off": off(rounds.parse().unwrap()),
        "continuous": continuous(rounds.parse().unwrap()),
        "windows": windows(),
        "kernels": rate(&working(FILE_BYTES).in_memory(), Kinds::KERNELS, RECORDS_PER_SECOND),
        // A launch is three records.
        "kernels_and_calls": rate(
            &working(FILE_BYTES).in_memory(),
            Kinds::KERNELS.with(calls),
            RECORDS_PER_SECOND / 3,
        ),
        "kernels_on_disk": rate(&working(FILE_BYTES), Kinds::KERNELS, RECORDS_PER_SECOND),
        "sustained": sustained(Kinds::KERNELS.with(calls), seconds.parse().unwrap()),
        "kills": kills(),
        "million": million(Path::new(file)),
    });
    println!("{line}");
}

/// A rig whose libcupti hands over buffers as the real one does, and notes no calls.
fn working(file_bytes: u32) -> Rig {
    Rig::new(RELEASE)
        .failing("worker=1")
        .with("FLOPWATCH_CUDA_BYTES", &file_bytes)
        .with("FLOPWATCH_FAKE_LOG", &"")
}

/// What a launch takes while nobody asks, beside one without the library, in ns of the launching
/// thread.
fn off(rounds: u32) -> Value {
    let line = format!("timed {TIMED_LAUNCHES}");
    let (mut bare, mut loaded) = (Vec::new(), Vec::new());
    let (mut callbacks, mut is_mapped) = (0, false);
    for _ in 0..rounds {
        let rig = Rig::new(RELEASE);
        let mut program = Program::of(rig.bare());
        assert_eq!(program.ask("init"), "init 0");
        let [_, took] = answer(&program.ask(&line));
        bare.push(took);
        let mut program = rig.start();
        let [recorded, took] = answer(&program.ask(&line));
        loaded.push(took);
        assert!(program.has_mapped("libflopwatch_cuda"));
        is_mapped |= program.has_mapped("libcupti");
        callbacks += rig.calls().len();
        assert!(recorded < 0.5, "{recorded} records of a program that nobody asked");
    }
    json!({"bare_ns": least(&bare), "loaded_ns": least(&loaded), "callbacks": callbacks, "is_mapped": is_mapped})
}

/// What kernels take that are recorded all the time, beside a program alone: a launch, in ns of the
/// launching thread, and the threads on which the library works, while they touch the file's pages
/// for the first time and from then on.
fn continuous(rounds: u32) -> Value {
    let line = format!("timed {RECORDED_LAUNCHES}");
    let (mut bare, mut recorded) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let rig = working(FILE_BYTES).in_memory();
        let mut program = Program::of(rig.bare());
        assert_eq!(program.ask("init"), "init 0");
        let [_, took] = answer(&program.ask(&line));
        bare.push(took);
        let mut program = rig.start();
        let mut agent = Agent::of(&rig);
        agent.order(all_the_time());
        assert_eq!(agent.settle(0), Phase::Recording);
        let [count, took] = answer(&program.ask(&line));
        assert!(count >= 1e6, "{count} records");
        recorded.push(took);
    }
    let rig = working(FILE_BYTES).in_memory();
    let mut program = rig.start();
    let mut agent = Agent::of(&rig);
    agent.order(all_the_time());
    assert_eq!(agent.settle(0), Phase::Recording);
    // The file goes round once.
    let first = paced(&mut program, &mut agent);
    let later = paced(&mut program, &mut agent);
    let process = agent.process(0);
    json!({
        "bare_ns": least(&bare), "recorded_ns": least(&recorded), "first": first, "later": later,
        "lost": lost(&process), "windows": process.count(Count::Windows),
    })
}

/// What the threads on which the library works take of some seconds of kernels that are recorded
/// all the time.
fn paced(program: &mut Program, agent: &mut Agent) -> Value {
    let before = [OWN_THREAD, CUPTI_THREAD].map(|thread| Work::of(program, thread));
    let begin = Instant::now();
    program.tell(&format!("pace {CONTINUOUS_PER_SECOND} {CONTINUOUS_MILLISECONDS}"));
    while begin.elapsed() < Duration::from_millis(CONTINUOUS_MILLISECONDS) {
        std::thread::sleep(RENEWAL_INTERVAL);
        agent.order(all_the_time());
    }
    let [records, _] = answer(&program.line());
    let after = [OWN_THREAD, CUPTI_THREAD].map(|thread| Work::of(program, thread));
    let seconds = begin.elapsed().as_secs_f64();
    let [own, cupti] = [after[0].since(&before[0]), after[1].since(&before[1])];
    json!({
        "records": records, "seconds": seconds, "spent_ns": own.spent_ns + cupti.spent_ns,
        "own_ns": own.spent_ns, "page_faults": own.page_faults + cupti.page_faults,
    })
}

/// The order that has kernels recorded all the time.
fn all_the_time() -> Wanted {
    Wanted {
        mode: Mode::Continuous,
        ..window(Kinds::KERNELS.with(Kinds::GRAPHS).with(Kinds::PLACES))
    }
}

/// The two numbers behind the word that a program answers with.
fn answer(said: &str) -> [f64; 2] {
    let numbers: Vec<f64> = said.split(' ').skip(1).map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// From an order to the first moment of the window, and from the next one to the end of it.
fn windows() -> Value {
    let rig = Rig::new(RELEASE).with("FLOPWATCH_FAKE_LOG", &"");
    let mut program = rig.start();
    let mut agent = Agent::of(&rig);
    let (mut begins, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..=WINDOWS {
        let begin = Instant::now();
        agent.begin(Kinds::ALL);
        begins.push(begin.elapsed());
        program.recorded("launch 1000");
        let end = Instant::now();
        agent.end();
        ends.push(end.elapsed());
        agent.drain();
    }
    // The first one opens libcupti.
    let first = begins.remove(0);
    ends.remove(0);
    json!({"first_begin_ms": milliseconds(first), "begin": spread(begins), "end": spread(ends)})
}

/// How far times lie apart, in ms.
fn spread(mut times: Vec<Duration>) -> Value {
    times.sort_unstable();
    let at = |percent: usize| milliseconds(times[(times.len() - 1) * percent / 100]);
    json!({"median": at(50), "p95": at(95), "longest": at(100)})
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// What a record takes of the threads on which the library works, at so many launches a second.
fn rate(rig: &Rig, kinds: Kinds, launches_per_second: u64) -> Value {
    let mut program = rig.start();
    let mut agent = Agent::of(rig);
    agent.begin(kinds);
    let before = [OWN_THREAD, CUPTI_THREAD].map(|thread| Work::of(&program, thread));
    let said = program.ask(&format!("pace {launches_per_second} {RATE_MILLISECONDS}"));
    agent.end();
    let after = [OWN_THREAD, CUPTI_THREAD].map(|thread| Work::of(&program, thread));
    let [own, cupti] = [after[0].since(&before[0]), after[1].since(&before[1])];
    let spent = own.spent_ns + cupti.spent_ns;
    assert!(spent > 0, "the kernel does not say what threads take");
    let process = agent.process(0);
    let [recorded, took_ns] = answer(&said);
    json!({
        "spent_ns": spent, "own_ns": own.spent_ns, "page_faults": own.page_faults + cupti.page_faults,
        "user_ticks": own.user_ticks + cupti.user_ticks,
        "kernel_ticks": own.kernel_ticks + cupti.kernel_ticks,
        "records": process.count(Count::Records), "lost": lost(&process),
        "recorded": recorded, "took_ns": took_ns,
    })
}

/// What threads took.
#[derive(Clone, Copy, Default)]
struct Work {
    /// Processor time.
    spent_ns: u64,
    /// Pages that were mapped when they were first touched.
    page_faults: u64,
    /// Hundredths of a second in the program.
    user_ticks: u64,
    /// Hundredths of a second in the kernel.
    kernel_ticks: u64,
}

impl Work {
    /// What the threads of a name took until now; nothing where there is none yet.
    fn of(program: &Program, name: &str) -> Self {
        let tasks = fs::read_dir(format!("/proc/{}/task", program.child.id())).unwrap();
        let mut all = Self::default();
        for task in tasks.map(|task| task.unwrap().path()) {
            let read = |file: &str| fs::read_to_string(task.join(file)).unwrap_or_default();
            if read("comm").trim_end() != name {
                continue;
            }
            let (schedstat, stat) = (read("schedstat"), read("stat"));
            // The name stands in parentheses; behind it is the third field.
            let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
            let field = |text: &str, at: usize| {
                let word = text.split(' ').nth(at).and_then(|word| word.parse::<u64>().ok());
                word.unwrap_or(0)
            };
            all.spent_ns += field(&schedstat, 0);
            all.page_faults += field(fields, 7);
            all.user_ticks += field(fields, 11);
            all.kernel_ticks += field(fields, 12);
        }
        all
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            spent_ns: self.spent_ns - before.spent_ns,
            page_faults: self.page_faults - before.page_faults,
            user_ticks: self.user_ticks - before.user_ticks,
            kernel_ticks: self.kernel_ticks - before.kernel_ticks,
        }
    }
}

/// Launches with their calls for some time, while the file is drained.
fn sustained(kinds: Kinds, seconds: u64) -> Value {
    let rig = working(FILE_BYTES);
    let mut program = rig.start();
    let mut agent = Agent::of(&rig);
    // Until it is told to end.
    agent.order(Wanted {
        deadline_ns: 0,
        ..window(kinds)
    });
    assert_eq!(agent.settle(0), Phase::Recording);
    program.tell(&format!("pace {LAUNCHES_PER_SECOND} {}", seconds * 1000));
    let mut read = 0;
    let said = std::thread::scope(|scope| {
        let said = scope.spawn(|| program.line());
        while !said.is_finished() {
            read += agent.events().len();
            std::thread::sleep(DRAIN_INTERVAL);
        }
        said.join().unwrap()
    });
    agent.end();
    read += agent.events().len();
    let [recorded, took_ns] = answer(&said);
    let losses = agent.losses(0);
    json!({
        "launches": LAUNCHES_PER_SECOND * seconds, "recorded": recorded, "read": read, "took_ns": took_ns,
        "overwritten": losses.overwritten, "lost": lost(&losses.process),
    })
}

/// Programs that are killed in a window: what they wrote, what of it was read, and how many left
/// something else.
fn kills() -> Value {
    let (mut tagged, mut read, mut unequal) = (0, 0, 0);
    for round in 0..KILLS {
        let left = kills::killed(round, DEFAULT_BYTES);
        tagged += left.tagged;
        read += left.read;
        unequal += usize::from(left.tagged != left.read);
    }
    json!({"programs": KILLS, "tagged": tagged, "read": read, "unequal": unequal})
}

/// Makes a file with a million records: kernels, each with the call that launched it.
fn million(file: &Path) -> Value {
    let rig = working(MILLION_FILE_BYTES);
    let mut program = rig.start();
    let mut agent = Agent::of(&rig);
    agent.begin(Kinds::KERNELS.with(Kinds::RUNTIME).with(Kinds::PLACES));
    let mut recorded = 0;
    // As fast as libcupti's thread takes them.
    for _ in 0..100 {
        recorded += program.recorded("launch 5000");
        std::thread::sleep(DRAIN_INTERVAL);
    }
    agent.end();
    assert_eq!((recorded, lost(&agent.process(0))), (1_000_000, 0));
    fs::copy(rig.trace(), file).unwrap();
    json!({"records": recorded})
}
