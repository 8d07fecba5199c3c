//! What is measured of windows against what real programs count themselves:
//! `cargo xtask bench overhead`.
//!
//! Programs with the recorder's library work at a pace that is known and noisy. The agent's own
//! code reads their recordings, watches windows and judges them, at its own cadence; while a window
//! is open the program is slowed by a known amount, or its load changes. Every window is held
//! against the ends of the program's steps, which it writes down itself.
//!
//! Arguments: windows of a kind, seconds of a window, nodes, programs of each node, and percent by
//! which a step varies. Prints a line of JSON with the figures, and a line for each window on
//! standard error.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "a measurement fails by panicking, prints, and counts in floats"
)]

mod course;
mod ends;
mod figures;
#[path = "../../tests/suite/paced.rs"]
mod paced;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flopwatch_agent::node::heartbeats::{HEARTBEAT_INTERVAL, Heartbeats};
use flopwatch_nvml::ProcessorClock;
use serde_json::json;

use course::{Case, Course, Drift, Seen};
use paced::Paced;

/// Names the sample workload.
const WORKLOAD: &str = "FLOPWATCH_WORKLOAD";

/// Time over which the first windows of all programs are spread: about a whole course.
const SPREAD_DURATION: Duration = Duration::from_secs(100);

/// What is asked for.
struct Plan {
    windows: usize,
    window: Duration,
    nodes: usize,
    programs: usize,
    variation: u32,
}

fn main() {
    // Cargo adds an argument of its own.
    let given: Vec<u32> = std::env::args().filter_map(|text| text.parse().ok()).collect();
    let [windows, seconds, nodes, programs, variation] = given[..] else {
        panic!("arguments: WINDOWS SECONDS NODES PROGRAMS VARIATION");
    };
    let plan = Plan {
        windows: windows.try_into().unwrap(),
        window: Duration::from_secs(seconds.into()),
        nodes: nodes.try_into().unwrap(),
        programs: programs.try_into().unwrap(),
        variation,
    };
    let (seen, reading) = measure(&plan);
    let figures = json!({
        "windows": plan.windows, "seconds": seconds, "programs": plan.nodes * plan.programs, "step_variation_percent": variation,
        "reading_percent_of_a_core": 100.0 * reading, "cases": figures::of(&seen),
    });
    println!("{figures}");
}

/// Cases in an order that spreads each kind over the whole time.
fn cases(windows: usize) -> VecDeque<Case> {
    let mut cases = Vec::new();
    for number in 0..windows {
        // Twice as many without harm: false aborts are counted of 200.
        cases.extend([0, 0, 200, 500, 2000].map(Case::Harm));
        let kind = number % Drift::ALL.len();
        cases.push(Case::Drift(Drift::ALL[kind]));
    }
    fastrand::shuffle(&mut cases);
    cases.into()
}

/// Every window, and the share of a core that it takes to read one program's counters.
fn measure(plan: &Plan) -> (Vec<Seen>, f64) {
    let cases = Mutex::new(cases(plan.windows));
    let (seen, stop) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let folder = tempfile::tempdir().unwrap();
    let workload = PathBuf::from(std::env::var_os(WORKLOAD).unwrap());
    let spent = std::thread::scope(|scope| {
        let mut readers = Vec::new();
        let mut courses = Vec::new();
        for node in 0..plan.nodes {
            // The recorder's series are not asked for.
            let heartbeats = Heartbeats::new(Duration::ZERO);
            for program in 0..plan.programs {
                let id = format!("program-{}", node * plan.programs + program);
                // The pace of a program on a busy machine would be the machine's: it goes before
                // other work, where this may ask for that.
                let mut command = Command::new("nice");
                command.args(["-n", "-10"]).arg(&workload);
                let target = Paced::start(command, folder.path(), &id, plan.variation);
                let heartbeats = heartbeats.clone();
                heartbeats.begin(&target.id, target.whose(), Arc::clone(&target.ring));
                let (cases, seen) = (&cases, &seen);
                courses.push(scope.spawn(move || {
                    // Not all windows at once: what they cost this machine would be a change of
                    // every program's load.
                    wait_until(Instant::now() + SPREAD_DURATION.mul_f64(0.01 + fastrand::f64()));
                    let next = || cases.lock().unwrap().pop_front();
                    while let Some(case) = next() {
                        let found = Course::new(&heartbeats, &target, plan.window).run(case);
                        eprintln!("{}", found.line());
                        seen.lock().unwrap().push(found);
                    }
                }));
            }
            let stop = &stop;
            readers.push(scope.spawn(move || read(&heartbeats, stop)));
        }
        for course in courses {
            course.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        let spent: f64 = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
        spent / (plan.nodes * plan.programs) as f64
    });
    (seen.into_inner().unwrap(), spent)
}

/// Reads as the agent does, until it is to stop; the share of a core that it took.
fn read(heartbeats: &Heartbeats, stop: &AtomicBool) -> f64 {
    let (begin, clock) = (Instant::now(), ProcessorClock::start());
    let (mut next, mut reading) = (begin, Duration::ZERO);
    while !stop.load(Ordering::Relaxed) {
        // Files are read on threads of their own.
        reading += heartbeats.read();
        next = (next + HEARTBEAT_INTERVAL).max(Instant::now());
        wait_until(next);
    }
    (clock.elapsed() + reading).as_secs_f64() / begin.elapsed().as_secs_f64()
}

#[expect(clippy::disallowed_methods, reason = "there is no runtime")]
pub(crate) fn wait_until(time: Instant) {
    std::thread::sleep(time.saturating_duration_since(Instant::now()));
}
