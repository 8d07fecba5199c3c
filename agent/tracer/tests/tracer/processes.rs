//! Several processes in one file.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;

use flopwatch_attach::process::Procfs;
use flopwatch_trace::ReadLimits;
use flopwatch_trace::tracer::read;
use flopwatch_tracer_file::Layout;
use flopwatch_tracer_file::process::{BYTES, CLAIM_AT, PID_AT, Phase, SLOTS, STARTED_AT, USED, claim};
use flopwatch_tracer_file::wanted::Kinds;

use super::agent::{Agent, lost};
use super::rig::{Program, Rig};

#[test]
fn a_child_of_fork_is_silent_and_its_parent_goes_on() {
    let (_rig, mut program, mut agent) = Agent::anew();
    agent.begin(Kinds::KERNELS);
    assert_eq!(program.recorded("launch 10"), 10);
    // More than a buffer, so that the child is called with one.
    assert_eq!(program.ask("fork 20000"), "child 3");
    assert_eq!(program.recorded("launch 10"), 10);
    agent.end();
    assert_eq!(agent.events().len(), 20);
    assert_eq!((agent.processes().len(), lost(&agent.process(0))), (1, 0));
    assert!(program.end().success());
}

#[test]
fn a_program_that_another_one_follows_leaves_its_slot() {
    let (_rig, mut program, mut agent) = Agent::anew();
    agent.begin(Kinds::KERNELS);
    assert_eq!(program.recorded("launch 5000"), 5000);
    assert_eq!(program.ask("exec"), "exec");
    assert_eq!(program.ask("init"), "init 0");
    assert_eq!(agent.settle(1), Phase::Recording);
    assert_eq!(program.recorded("launch 30"), 30);
    let processes = agent.processes();
    let phases: Vec<Phase> = processes.iter().map(|process| process.phase).collect();
    assert_eq!(phases, [Phase::Replaced, Phase::Recording]);
    assert_eq!(
        (processes[0].pid, processes[0].started),
        (processes[1].pid, processes[1].started)
    );
    agent.order(super::agent::window(Kinds::COPIES));
    assert_eq!(agent.settle(1), Phase::Recording);
    let found = agent.drain();
    let of = |slot: usize| found.iter().filter(|(origin, _)| origin.slot == slot).count();
    assert_eq!(of(1), 30);
    // What the first program had in CUPTI's buffers went with it, and its slot says so.
    let missing = 5000 - u64::try_from(of(0)).unwrap();
    assert!(
        of(0) > 0 && missing <= processes[0].held * 4228,
        "{missing} are missing of {:?}",
        processes[0]
    );
    assert!(program.end().success());
}

#[test]
fn processes_that_begin_at_once_share_one_file() {
    let rig = Rig::new(1305);
    let mut programs: Vec<_> = (0..12).map(|_| Program::of(rig.command())).collect();
    for program in &mut programs {
        program.tell("init");
    }
    assert!(programs.iter_mut().all(|program| program.line() == "init 0"));
    let mut agent = Agent::of(&rig);
    agent.begin(Kinds::KERNELS);
    for slot in 0..12 {
        assert_eq!(agent.settle(slot), Phase::Recording);
    }
    for program in &mut programs {
        program.tell("launch 1000");
    }
    for program in &mut programs {
        assert_eq!(program.line(), "recorded 1000");
    }
    agent.end();
    for slot in 0..12 {
        assert_eq!(agent.settle(slot), Phase::Idle);
    }
    let found = agent.drain();
    for program in &programs {
        let own = found.iter().filter(|(origin, _)| origin.pid == program.child.id());
        assert_eq!(own.count(), 1000);
    }
    assert_eq!(std::fs::read_dir(rig.path("trace")).unwrap().count(), 1);
    assert!(programs.into_iter().all(|program| program.end().success()));
}

#[test]
fn slots_of_processes_that_have_ended_are_taken_anew() {
    let rig = Rig::new(1305);
    for _ in 0..SLOTS + 20 {
        assert!(rig.start().end().success());
    }
    let mut last = rig.start();
    let mut agent = Agent::of(&rig);
    let slot = agent
        .processes()
        .iter()
        .position(|process| process.pid == last.child.id());
    let slot = slot.unwrap();
    assert!(slot < 30, "{slot}");
    assert_eq!((agent.processes().len(), agent.process(slot).serial), (SLOTS, 2));
    agent.order(super::agent::window(Kinds::KERNELS));
    assert_eq!(agent.settle(slot), Phase::Recording);
    assert_eq!(last.recorded("launch 10"), 10);
}

#[test]
fn a_program_that_finds_no_slot_runs_as_without_us_and_the_capture_tells_of_it() {
    let rig = Rig::new(1305);
    let without = Program::of(rig.bare()).ask("work 1000");
    assert!(rig.start().end().success());
    let file = OpenOptions::new().write(true).open(rig.trace()).unwrap();
    let layout = Layout::of(usize::try_from(file.metadata().unwrap().len()).unwrap()).unwrap();
    // Whoever has the file may say that one process has them all, and does not end.
    let own = std::process::id();
    let started = Procfs::default().identify(i32::try_from(own).unwrap()).unwrap();
    let mut slot = [0; BYTES];
    slot[PID_AT..][..4].copy_from_slice(&own.to_le_bytes());
    slot[STARTED_AT..][..8].copy_from_slice(&started.start_time.to_le_bytes());
    slot[CLAIM_AT..][..8].copy_from_slice(&claim(1, USED).to_le_bytes());
    for at in 0..SLOTS {
        let at = u64::try_from(layout.process(at).unwrap()).unwrap();
        file.write_all_at(&slot, at).unwrap();
    }
    let mut late = rig.start();
    let threads = std::fs::read_dir(format!("/proc/{}/task", late.child.id())).unwrap();
    assert_eq!(threads.count(), 1, "it does nothing");
    assert_eq!(late.ask("work 1000"), without);
    assert!(late.end().success());
    let losses = read(&rig.trace(), &ReadLimits::default()).unwrap().losses.list();
    let told = losses.iter().find(|loss| loss.what.contains("beyond the 256"));
    assert_eq!(told.map(|loss| loss.count), Some(1), "{losses:?}");
}
