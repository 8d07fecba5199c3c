//! Runs test programs side by side, as many as their needs allow.

use super::need::{Load, Need, Needs};
use super::schedule::{Machine, order};
use super::tally::{self, Failure, Outcome};
use flopwatch_toolchain::command::interrupted;
use flopwatch_toolchain::meter;
use flopwatch_toolchain::progress::{human, say};
use flopwatch_toolchain::project::TestProgram;
use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// How long one program may run.
const PROGRAM_TIMEOUT: Duration = Duration::from_mins(45);
/// How often a program that runs for long tells how far it is.
const PROGRESS_INTERVAL: Duration = Duration::from_mins(1);
/// Niceness of a program that computes: tests that wait for an answer hold its time to a bound, and
/// have the processor first.
const COMPUTING_NICENESS: u8 = 10;
/// What a program is taken for that no earlier round has measured and whose package declares
/// nothing: longer than most.
const UNKNOWN_DURATION: Duration = Duration::from_mins(1);
/// How the test harness is told how many tests to run at once.
const TEST_THREADS: &str = "RUST_TEST_THREADS";
/// Has the harness tell how long each test took, an option that it keeps for unstable compilers
/// otherwise.
const REPORT_TIME: [&str; 3] = ["--show-output", "-Zunstable-options", "--report-time"];

/// A test program, what it needs and how long it is taken for.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// Package and target, for people and for the ledger.
    pub(crate) name: String,
    pub(crate) need: Need,
    pub(crate) expected: Duration,
    pub(crate) test: TestProgram,
}

/// What became of a program.
struct Ended {
    outcome: Outcome,
    /// What the program's processes took of the processors.
    processor: Duration,
}

/// The programs that cargo built, the one that goes first first. `before` has the durations of
/// earlier rounds.
pub(crate) fn list(built: &[TestProgram], needs: &Needs, before: &BTreeMap<String, Duration>) -> Vec<Program> {
    let mut programs: Vec<Program> = built.iter().map(|test| program(test, needs, before)).collect();
    // Cargo names them in the order in which they were compiled.
    programs.sort_by(|a, b| {
        let key = |program: &Program| order(&program.need, program.expected);
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    programs
}

fn program(test: &TestProgram, needs: &Needs, before: &BTreeMap<String, Duration>) -> Program {
    let package = needs.package(&test.folder);
    let library = test.in_source && test.target == package.replace('-', "_");
    let target = if library { "lib" } else { &test.target };
    let name = format!("{package} {target}");
    let need = needs.of(&test.folder, &test.target, library);
    let measured = before.get(&name).copied();
    Program {
        expected: measured.or(need.expected).unwrap_or(UNKNOWN_DURATION),
        need,
        test: test.clone(),
        name,
    }
}

/// Runs programs with these variables and arguments of the harness; gives what became of their
/// tests. Whatever one of them does, the others run.
pub(crate) fn run(programs: Vec<Program>, vars: &BTreeMap<String, String>, arguments: &[&str]) -> Outcome {
    let machine = Machine::new(available_parallelism().map_or(1, std::num::NonZero::get));
    let mut waiting = programs;
    let mut running: BTreeMap<usize, Need> = BTreeMap::new();
    let mut outcome = Outcome::default();
    // A program that ends waits until somebody listens.
    let (sender, ends) = mpsc::sync_channel(0);
    std::thread::scope(|scope| {
        for number in 0.. {
            let needs: Vec<&Need> = running.values().collect();
            let next = machine.next(waiting.iter().map(|program| &program.need), &needs);
            if let Some(place) = next.filter(|_| !interrupted()) {
                let program = waiting.remove(place);
                running.insert(number, program.need.clone());
                let sender = sender.clone();
                // Whoever listens has an end for every program that began.
                scope.spawn(move || sender.send((number, one(&program, machine, vars, arguments))).ok());
                continue;
            }
            if running.is_empty() {
                break;
            }
            let Ok((number, ended)) = ends.recv() else {
                break;
            };
            running.remove(&number);
            meter::add_processor(ended.processor);
            outcome.add(ended.outcome);
        }
    });
    outcome
}

/// Runs one program to its end.
fn one(program: &Program, machine: Machine, vars: &BTreeMap<String, String>, arguments: &[&str]) -> Ended {
    let begin = Instant::now();
    let mut reader = tally::Reader::default();
    let mut shown = Vec::new();
    let mut told = begin;
    let threads = machine.threads(&program.need).to_string();
    let run = program
        .test
        .run()
        // An error of ours names its own way; frames of the runtime bury it.
        .env("RUST_BACKTRACE", "0")
        .env("RUSTC_BOOTSTRAP", "1")
        .env(TEST_THREADS, threads)
        .envs(vars)
        .args(REPORT_TIME)
        .args(arguments)
        .deadline(PROGRAM_TIMEOUT);
    let run = match &program.need {
        Need { patient: true, .. } => run.patiently(),
        Need {
            load: Load::Busy,
            alone: false,
            ..
        } => run.behind(COMPUTING_NICENESS),
        _ => run,
    };
    let ended = run.watched(|line| {
        let line = reader.read(line);
        if let Some(line) = line.filter(|line| line.starts_with("test ") && !line.starts_with("test result: ")) {
            // A failure is known when it happens, not when the program ends.
            say(format_args!("{}: {line}", program.name));
        }
        shown.extend(line.map(str::to_owned));
        if told.elapsed() >= PROGRESS_INTERVAL {
            told = Instant::now();
            say(format_args!(
                "{}: {} tests after {}",
                program.name,
                reader.ended(),
                human(begin.elapsed())
            ));
        }
    });
    let wall = begin.elapsed();
    let processor = meter::take_processor();
    let mut outcome = reader.finish(&program.name);
    if let Err(error) = ended
        && outcome.tally.failed == 0
    {
        // It could not be started, or it ended outside of its tests: no result line tells of it.
        outcome.tally.failed = 1;
        outcome.failures.push(Failure {
            test: program.name.clone(),
            output: vec![format!("{error:#}")],
        });
    }
    if outcome.tally.failed > 0 || !outcome.skips.is_empty() {
        shown.iter().for_each(say);
    }
    say(format_args!(
        "{}: {} in {}, {} of processors",
        program.name,
        outcome.tally,
        human(wall),
        human(processor)
    ));
    outcome.programs.insert(program.name.clone(), wall);
    Ended { outcome, processor }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(folder: &str, target: &str, in_source: bool) -> TestProgram {
        TestProgram {
            folder: folder.into(),
            target: target.to_owned(),
            in_source,
            file: "/t/x".into(),
        }
    }

    #[test]
    fn programs_are_named_by_package_and_target_and_the_longest_goes_first() {
        let metadata = r#"{"packages":[
            {"name":"a-b","manifest_path":"/w/a/Cargo.toml"},
            {"name":"c","manifest_path":"/w/c/Cargo.toml","targets":[{"name":"alone"}],"metadata":{"tests":{"alone":{"alone":true}}}}]}"#;
        let needs = Needs::parse(metadata).unwrap();
        let built = [
            test("/w/c", "alone", false),
            test("/w/a", "a_b", true),
            test("/w/c", "suite", false),
            test("/w/c", "tool", true),
        ];
        let seconds = |seconds| Duration::from_secs(seconds);
        let before = BTreeMap::from([("a-b lib".to_owned(), seconds(3)), ("c suite".to_owned(), seconds(200))]);
        let names: Vec<String> = list(&built, &needs, &before)
            .into_iter()
            .map(|program| program.name)
            .collect();
        assert_eq!(
            names,
            ["c suite", "c tool", "a-b lib", "c alone"],
            "an unknown one is taken for a long one"
        );
    }
}

#[cfg(test)]
mod crate_tests {
    use super::*;
    use flopwatch_toolchain::project;

    /// A script of the folder `programs` beside this file.
    fn program(name: &str) -> Program {
        let folder = project::root().unwrap().join("xtask/src/test/programs");
        Program {
            name: name.to_owned(),
            need: Need::default(),
            expected: UNKNOWN_DURATION,
            test: TestProgram {
                file: folder.join(name),
                folder,
                target: name.to_owned(),
                in_source: false,
            },
        }
    }

    #[test]
    fn every_program_runs_whatever_becomes_of_the_others() {
        let programs = ["passes.sh", "falls.sh", "refuses.sh"].map(program);
        let outcome = run(programs.to_vec(), &BTreeMap::new(), &[]);
        assert_eq!((outcome.tally.passed, outcome.tally.failed), (1, 2));
        assert_eq!(outcome.times, [("passes.sh a".to_owned(), Duration::from_millis(250))]);
        assert_eq!(outcome.programs.len(), 3);
        let failed: Vec<&str> = outcome.failures.iter().map(|failure| failure.test.as_str()).collect();
        assert_eq!(failed, ["refuses.sh"]);
    }
}
