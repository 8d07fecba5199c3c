//! What goes wrong in libcupti, and what a program sees of it: nothing.

use std::time::{Duration, Instant};

use flopwatch_tracer_file::process::{Count, Phase, Reason};
use flopwatch_tracer_file::record::Record;
use flopwatch_tracer_file::wanted::{Kinds, Mode, Wanted};

use super::agent::{Agent, window};
use super::rig::{Program, Rig};

/// A window with 1,000 kernels in it.
fn recorded(rig: &Rig) -> (Agent, Program, u64) {
    recorded_of(rig, 1000)
}

/// A window with so many kernels in it: 132 are in the first buffer.
fn recorded_of(rig: &Rig, kernels: u64) -> (Agent, Program, u64) {
    let (mut program, mut agent) = Agent::started(rig);
    agent.begin(Kinds::KERNELS);
    let count = program.recorded(&format!("launch {kernels}"));
    agent.end();
    (agent, program, count)
}

fn off() -> Wanted {
    Wanted {
        mode: Mode::Off,
        ..window(Kinds::KERNELS)
    }
}

#[test]
fn a_call_that_fails_is_the_reason_with_cupti_s_code() {
    for (faults, code) in [
        ("version=999", 999),
        ("subscribe=999", 999),
        ("subscribe=15", 15),
        ("attribute=1", 1),
        ("register=14", 14),
        ("enable=14", 14),
    ] {
        let rig = Rig::new(1305).failing(faults);
        let (mut program, mut agent) = Agent::started(&rig);
        for _ in 0..2 {
            agent.order(window(Kinds::KERNELS));
            assert_eq!(agent.settle(0), Phase::Refused, "{faults}");
            let process = agent.process(0);
            assert_eq!((process.reason, process.result), (Reason::Cupti, code), "{faults}");
        }
        let of = |wanted: &str| rig.calls().iter().filter(|(name, ..)| name == wanted).count();
        // Whoever got the subscription has given it back.
        let subscribed = if faults.starts_with("version") || faults.starts_with("subscribe") {
            0
        } else {
            2
        };
        assert_eq!(of("unsubscribe"), subscribed, "{faults}");
        assert_eq!(program.ask("launch 10"), "recorded 0");
        assert!(program.end().success());
    }
}

#[test]
fn kernels_without_times_are_counted_and_left_out() {
    for faults in ["zero_times=10", "backwards=10"] {
        let rig = Rig::new(1305).failing(faults);
        let (mut agent, _program, _) = recorded(&rig);
        assert_eq!(agent.events().len(), 900);
        assert_eq!(agent.process(0).count(Count::RecordsTimeless), 100);
    }
}

#[test]
fn what_cupti_drops_or_nobody_knows_is_counted() {
    let rig = Rig::new(1305).failing("drop=4");
    let (mut agent, _program, count) = recorded(&rig);
    assert_eq!((count, agent.events().len()), (750, 750));
    assert_eq!(agent.losses(0).records(), 250);
    let rig = Rig::new(1305).failing("unknown=1,disorder=1");
    let (mut agent, _program, _) = recorded(&rig);
    assert_eq!(agent.events().len(), 1000);
    assert_eq!(agent.process(0).count(Count::RecordsUnknown), 1000);
    // In one buffer, which no tick takes part of.
    let rig = Rig::new(1305).failing("malformed=11,hoard=1");
    let (mut agent, _program, _) = recorded_of(&rig, 100);
    assert_eq!(agent.events().len(), 10);
    assert_eq!(agent.process(0).count(Count::RecordsMalformed), 1);
}

#[test]
fn buffers_beyond_the_pool_are_thrown_away_and_counted() {
    let rig = Rig::new(1305).failing("hoard=1");
    let (mut program, mut agent) = Agent::started(&rig);
    agent.begin(Kinds::KERNELS);
    // A buffer of 1 MiB holds 4,228 kernels, one of 32 KiB 132.
    let launched = 16 * 4228 + 2640;
    assert_eq!(program.recorded(&format!("launch {launched}")), launched);
    assert_eq!(agent.process(0).held, 16);
    agent.end();
    let process = agent.process(0);
    assert!(process.count(Count::BuffersDiscarded) > 0, "{process:?}");
    let records = process.count(Count::Records);
    assert!((16 * 132..=16 * 4228).contains(&records), "{records}");
    assert_eq!(process.count(Count::BytesDiscarded) / 248 + records, launched);
    assert_eq!(process.held, 0);
    agent.drain();
    // The pool is whole again.
    agent.begin(Kinds::KERNELS);
    agent.drain();
    program.recorded("launch 100");
    agent.end();
    assert_eq!(agent.events().len(), 100);
    assert!(program.end().success());
}

#[test]
fn buffers_that_come_back_late_or_are_not_ours_are_counted() {
    let rig = Rig::new(1305).failing("keep=1");
    let (mut agent, program, _) = recorded_of(&rig, 100);
    assert_eq!(agent.events(), []);
    let process = agent.process(0);
    assert_eq!((process.count(Count::BuffersOpen), process.held), (1, 1));
    assert!(program.end().success());
    let rig = Rig::new(1305).failing("foreign=1,late_callback=1");
    let (mut agent, program, _) = recorded(&rig);
    assert_eq!(agent.events().len(), 1000);
    assert!(agent.process(0).count(Count::BuffersForeign) > 0);
    assert!(program.end().success());
}

#[test]
fn names_that_went_with_their_module_are_counted_and_long_ones_are_cut() {
    // No tick takes what is there before the module goes.
    let rig = Rig::new(1305).failing("hoard=1");
    let (mut program, mut agent) = Agent::started(&rig);
    agent.begin(Kinds::KERNELS);
    assert_eq!(program.recorded("launch 100"), 100);
    assert_eq!(program.ask("unload"), "unloaded");
    agent.end();
    let found = agent.events();
    assert!(
        found
            .iter()
            .all(|record| matches!(record, Record::Kernel(kernel) if kernel.run.name == 0))
    );
    assert_eq!(found.len(), 100);
    assert!(agent.process(0).count(Count::NamesUnread) >= 50);
    agent.begin(Kinds::KERNELS);
    assert_eq!(program.recorded("name 63"), 1);
    agent.end();
    let found = agent.events();
    let [Record::Kernel(kernel)] = found[..] else {
        panic!("{found:?}");
    };
    let name = agent.name(kernel.run.name);
    assert!(name.starts_with("void kernel_63<") && name.len() == 2048, "{name}");
    assert!(program.end().success());
}

#[test]
fn a_session_after_which_nothing_comes_hurts_nobody() {
    let rig = Rig::new(1305).failing("poison=1");
    let (mut agent, mut program, _) = recorded(&rig);
    agent.drain();
    agent.begin(Kinds::KERNELS);
    assert_eq!(program.recorded("launch 1000"), 0);
    agent.end();
    assert_eq!(agent.process(0).count(Count::Windows), 2);
    assert_eq!(agent.events(), []);
}

#[test]
fn a_call_that_takes_too_long_is_the_last_one() {
    for faults in ["enable_ms=2300", "flush_ms=2300", "subscribe_ms=2300"] {
        let rig = Rig::new(1305).failing(faults);
        let (mut program, mut agent) = Agent::started(&rig);
        agent.order(window(Kinds::KERNELS));
        let begin = Instant::now();
        let process = agent.wait(0, |process| process.phase == Phase::Stuck);
        assert_eq!(process.phase_at(u64::MAX), Phase::Stuck);
        // The reader tells while the call still takes its time.
        assert!(
            begin.elapsed() > Duration::from_millis(1900),
            "{faults}: {:?}",
            begin.elapsed()
        );
        std::thread::sleep(Duration::from_millis(500));
        let before = rig.calls().len();
        assert_eq!(agent.process(0).reason, Reason::Stuck, "{faults}");
        for wanted in [off(), window(Kinds::KERNELS)] {
            agent.order(wanted);
        }
        program.ask("work 3000");
        std::thread::sleep(Duration::from_millis(400));
        assert_eq!(rig.calls().len(), before, "{faults}");
        assert_eq!(agent.process(0).phase, Phase::Stuck);
        assert!(program.end().success(), "{faults}");
    }
}
