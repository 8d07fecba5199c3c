//! Captures of JAX itself.

use std::time::{Duration, Instant};

use flopwatch_api::profiler::JaxOptions;
use flopwatch_api::reason::CaptureReason;
use flopwatch_model::{Capture, Events};

use super::program::Program;
use super::rig::{Rig, wait};

/// A window.
const WINDOW_DURATION: Duration = Duration::from_secs(2);

fn events(capture: &Capture) -> usize {
    capture.events.values().map(Events::len).sum()
}

/// Length of the longest step and of the middle one, in milliseconds, and steps per second.
fn pace(steps: &[(f64, f64)]) -> (f64, f64, f64) {
    let mut lengths: Vec<_> = steps.iter().map(|(begun, ended)| (ended - begun) * 1000.0).collect();
    lengths.sort_by(f64::total_cmp);
    let (first, last) = (steps.first().unwrap(), steps.last().unwrap());
    let rate = f64::from(u32::try_from(lengths.len()).unwrap()) / (last.1 - first.0);
    (*lengths.last().unwrap(), lengths[lengths.len() / 2], rate)
}

/// Waits until the program has taken steps in a window that began.
fn takes_steps(program: &Program, port: u16) {
    let enough = program.steps(port).len() + 20;
    let until = Instant::now() + Duration::from_secs(30);
    while program.steps(port).len() < enough {
        assert!(Instant::now() < until, "the program takes no steps");
        wait(Duration::from_millis(20));
    }
}

#[test]
fn a_program_is_recorded_twice_as_it_runs_and_keeps_its_process_and_its_pace() {
    let Some(mut program) = Program::start(9012, 1) else {
        return;
    };
    let processes = program.processes();
    let services = program.services();
    wait(WINDOW_DURATION);
    let before = program.steps(9012);
    for capture in ["first", "second"] {
        let rig = Rig::new(&services, JaxOptions::default(), WINDOW_DURATION);
        let known = program.steps(9012).len();
        let recorded = rig.record();
        let steps = program.steps(9012);
        let during = &steps[known..];
        assert!(
            events(&recorded) > during.len(),
            "{capture}: {} events within {} ms, of {} steps",
            events(&recorded),
            recorded.duration_ns / 1_000_000,
            during.len()
        );
        let ((longest, middle, rate), (calm, usual, plain)) = (pace(during), pace(&before));
        println!(
            "{capture} capture: {} events; {rate:.0} steps/s, the middle one {middle:.2} ms, the longest {longest:.1} ms; \
             before it {plain:.0} steps/s, {usual:.2} ms, {calm:.1} ms",
            events(&recorded),
        );
    }
    assert!(program.is_alive());
    assert_eq!(program.processes(), processes);
}

#[test]
fn a_capture_that_is_ended_early_keeps_what_it_recorded() {
    let Some(program) = Program::start(9112, 1) else {
        return;
    };
    let rig = Rig::new(&program.services(), JaxOptions::default(), Duration::from_mins(5));
    rig.start().unwrap();
    wait(WINDOW_DURATION);
    let begun = Instant::now();
    let recorded = rig.taken();
    assert!(events(&recorded) > 100, "{} events", events(&recorded));
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    println!("stopped early: the answer came {:?} after the stop", begun.elapsed());
}

#[test]
fn a_capture_that_is_discarded_leaves_nothing_and_the_next_one_finds_the_service_free() {
    let Some(mut program) = Program::start(9212, 1) else {
        return;
    };
    let services = program.services();
    let rig = Rig::new(&services, JaxOptions::default(), Duration::from_mins(5));
    rig.start().unwrap();
    takes_steps(&program, 9212);
    rig.discard();
    rig.discard();
    assert_eq!(rig.stop().unwrap_err().reason, CaptureReason::CollectionFailed);
    wait(Duration::from_secs(1));
    let next = Rig::new(&services, JaxOptions::default(), WINDOW_DURATION);
    assert!(events(&next.record()) > 100);
    assert!(program.is_alive());
}

#[test]
fn a_program_that_ends_within_the_window_ends_the_capture_with_the_reason() {
    let Some(mut program) = Program::start(9312, 1) else {
        return;
    };
    let rig = Rig::new(&program.services(), JaxOptions::default(), Duration::from_mins(5));
    rig.start().unwrap();
    takes_steps(&program, 9312);
    rig.check().unwrap();
    program.kill();
    let failure = rig.failure();
    assert_eq!(failure.reason, CaptureReason::CollectionFailed);
    assert!(failure.message.contains("connection"), "{failure}");
    assert_eq!(rig.stop().unwrap_err().reason, CaptureReason::CollectionFailed);
}

#[test]
fn each_of_eight_processes_is_found_and_recorded_at_its_port() {
    let Some(mut program) = Program::start(9412, 8) else {
        return;
    };
    let services = program.services();
    for port in [9412, 9416, 9419] {
        let options = JaxOptions {
            port: Some(port),
            python_tracer_level: Some(1),
            ..JaxOptions::default()
        };
        let recorded = Rig::new(&services, options, WINDOW_DURATION).record();
        assert!(events(&recorded) > 100, "{port}: {} events", events(&recorded));
    }
    assert!(program.is_alive());
}

#[test]
fn what_the_compiler_wrote_is_taken_with_the_capture_where_it_is_asked_for() {
    let Some((program, variables)) = Program::start_dumping(9512) else {
        return;
    };
    let options = JaxOptions {
        dumps: Some(true),
        ..JaxOptions::default()
    };
    let rig = Rig::with_variables(&program.services(), options, WINDOW_DURATION, &variables);
    rig.start().unwrap();
    wait(WINDOW_DURATION);
    let raw = rig.stop().unwrap();
    assert_eq!(rig.files(), ["jax-dumps.tar", "profile.xplane.pb"]);
    let mut archive = tar::Archive::new(std::fs::File::open(raw.path("jax-dumps.tar")).unwrap());
    let mut found = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
        found.push((name, content));
    }
    let holds = |end: &str, text: &str| {
        found.iter().any(|(name, content)| {
            name.ends_with(end) && content.windows(text.len()).any(|part| part == text.as_bytes())
        })
    };
    println!(
        "dumps: {} files of {} bytes",
        found.len(),
        found.iter().map(|(_, content)| content.len()).sum::<usize>()
    );
    let names: Vec<_> = found.iter().map(|(name, _)| name).collect();
    assert!(holds("before_optimizations.txt", "HloModule jit_step"), "{names:?}");
    assert!(holds("after_optimizations.txt", "HloModule jit_step"), "{names:?}");
    assert!(holds(".mlir", "stablehlo.tanh"), "{names:?}");
    assert!(names.iter().any(|name| name.ends_with("memory.prof")), "{names:?}");
    assert!(holds("index.json", "\"leftOutCount\": 0"), "{names:?}");

    let without = Rig::new(
        &program.services(),
        JaxOptions {
            dumps: Some(false),
            ..JaxOptions::default()
        },
        WINDOW_DURATION,
    );
    without.record();
}

#[test]
fn dumps_of_a_program_that_names_no_folder_for_them_are_refused_before_the_window() {
    let Some(program) = Program::start(9612, 1) else {
        return;
    };
    let options = JaxOptions {
        dumps: Some(true),
        ..JaxOptions::default()
    };
    let failure = Rig::refused(&program.services(), options);
    assert_eq!(failure.reason, CaptureReason::ProfilerUnavailable);
    assert!(failure.message.contains("flopwatch.dev/jax-dumps"), "{failure}");
}
