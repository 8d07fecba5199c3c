//! What comes while a window is open, and what a program that ends in it leaves.

use std::time::{Duration, Instant};

use flopwatch_tracer_file::process::Phase;
use flopwatch_tracer_file::record::Record;
use flopwatch_tracer_file::wanted::Kinds;

use super::agent::Agent;
use super::rig::Rig;

/// Ten ticks and more.
const MANY_TICKS_DURATION: Duration = Duration::from_millis(600);
/// How long ten ticks may take on a machine that is busy.
const RECORDS_TIMEOUT: Duration = Duration::from_secs(10);

/// Drains until so many events have come, and gives all records.
fn drained(agent: &mut Agent, events: usize) -> Vec<Record> {
    let begin = Instant::now();
    let mut found: Vec<Record> = Vec::new();
    loop {
        found.extend(agent.drain().into_iter().map(|(_, record)| record));
        let count = found.iter().filter(|record| record.times().is_some()).count();
        if count >= events {
            assert_eq!(count, events);
            return found;
        }
        assert!(
            begin.elapsed() < RECORDS_TIMEOUT,
            "{count} of {events} events have come"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Flushes that libcupti was asked for.
fn flushes(rig: &Rig) -> usize {
    rig.calls().iter().filter(|(name, ..)| name == "flush").count()
}

#[test]
fn what_a_program_did_comes_with_its_names_while_the_window_is_open() {
    let (_rig, mut program, mut agent) = Agent::anew();
    agent.begin(Kinds::KERNELS.with(Kinds::RUNTIME));
    let mut found = Vec::new();
    for _ in 0..3 {
        assert_eq!(program.recorded("launch 10"), 20);
        found.extend(drained(&mut agent, 20));
        agent.wait(0, |process| process.held == 0);
    }
    for record in &found {
        if let Record::Kernel(kernel) = record {
            assert!(agent.name(kernel.run.name).starts_with("void kernel_"));
        }
    }
    // The function of the calls was told once, behind the first ones.
    let told = found.iter().filter(|record| matches!(record, Record::CallName(_)));
    assert_eq!(told.count(), 1);
    assert_eq!(agent.process(0).phase, Phase::Recording);
    agent.end();
    assert_eq!(agent.drain(), []);
}

#[test]
fn a_buffer_with_a_kernel_that_still_runs_comes_when_it_has_ended() {
    let (_rig, mut program, mut agent) = Agent::anew();
    agent.begin(Kinds::KERNELS);
    let begin = Instant::now();
    assert_eq!(program.recorded("launch 10"), 10);
    drained(&mut agent, 10);
    assert_eq!(program.recorded("long 2000"), 1);
    while begin.elapsed() < Duration::from_millis(900) {
        assert_eq!(agent.events(), []);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(agent.process(0).held, 1);
    let found = drained(&mut agent, 1);
    let ran = |record: &Record| record.times().map(|(start, end)| end - start);
    assert_eq!(ran(&found[0]), Some(2_000_000_000));
    agent.end();
}

#[test]
fn a_program_that_ends_behind_a_moment_leaves_all_that_it_did() {
    let (_rig, mut program, mut agent) = Agent::anew();
    agent.begin(Kinds::KERNELS);
    assert_eq!(program.recorded("launch 500"), 500);
    agent.wait(0, |process| process.held == 0);
    program.tell("exit 7");
    assert_eq!(program.child.wait().unwrap().code(), Some(7));
    assert_eq!(agent.events().len(), 500);
    let process = agent.process(0);
    assert_eq!((process.phase, process.held), (Phase::Recording, 0));
}

#[test]
fn a_program_that_ends_at_once_leaves_how_many_buffers_cupti_still_had() {
    let rig = Rig::new(1305);
    for _ in 0..20 {
        let (mut program, mut agent) = Agent::started(&rig);
        let slot = agent
            .processes()
            .iter()
            .position(|process| process.pid == program.child.id());
        let slot = slot.unwrap();
        agent.order(super::agent::window(Kinds::KERNELS));
        assert_eq!(agent.settle(slot), Phase::Recording);
        agent.drain();
        assert_eq!(program.recorded("launch 100"), 100);
        program.tell("exit 0");
        program.child.wait().unwrap();
        let (left, held) = (agent.events().len(), agent.process(slot).held);
        // They are in one buffer.
        assert!(left == 100 || held == 1, "{left} kernels, {held} buffers");
    }
}

#[test]
fn a_window_is_asked_for_what_it_has_twenty_times_a_second_and_no_program_outside_of_one() {
    let rig = Rig::new(1305);
    let _program = rig.start();
    let mut agent = Agent::of(&rig);
    std::thread::sleep(MANY_TICKS_DURATION);
    assert_eq!(flushes(&rig), 0);
    let begin = Instant::now();
    agent.begin(Kinds::KERNELS);
    std::thread::sleep(MANY_TICKS_DURATION);
    let (asked, took) = (flushes(&rig), begin.elapsed());
    let most = usize::try_from(took.as_millis() / 50).unwrap() + 1;
    assert!((2..=most).contains(&asked), "{asked} times in {took:?}");
    agent.end();
    let behind = flushes(&rig);
    std::thread::sleep(MANY_TICKS_DURATION);
    assert_eq!(flushes(&rig), behind);
}

#[test]
fn a_libcupti_that_takes_long_over_a_flush_is_asked_less_often() {
    let rig = Rig::new(1305).failing("flush_ms=40");
    let _program = rig.start();
    let mut agent = Agent::of(&rig);
    let begin = Instant::now();
    agent.begin(Kinds::KERNELS);
    std::thread::sleep(MANY_TICKS_DURATION);
    let (asked, took) = (flushes(&rig), begin.elapsed());
    // 40 ms are a twentieth of 800 ms.
    let most = usize::try_from(took.as_millis() / 800).unwrap() + 1;
    assert!((1..=most).contains(&asked), "{asked} times in {took:?}");
    agent.end();
}
