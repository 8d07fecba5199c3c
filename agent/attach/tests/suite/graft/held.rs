//! Containers that are held: a collection before the first instruction, and a capture after the
//! last.

use std::time::{Duration, Instant};

use flopwatch_attach::graft::Target;
use nix::sys::signal::Signal;

use super::capture::Capture;
use super::container::{Container, PATIENT, Rig, WORKLOAD, children, rig, wait_for, wait_until, waiting};
use super::{SESSION, collect, options};

const LAUNCHER: &str = "/flopwatch/tools/launcher";

/// The command of a container that admission prepared for a session's own pod.
fn held<'a>(limit: &'a str, program: &[&'a str]) -> Vec<&'a str> {
    let hold = [LAUNCHER, "hold", "--limit-seconds", limit, "--", LAUNCHER, "run"];
    hold.iter()
        .chain(&PATIENT)
        .chain(&["--"])
        .chain(program)
        .copied()
        .collect()
}

/// The waiting launcher, and the first process of its container, which stays when the program has
/// ended.
fn targets(rig: &Rig, container: &Container) -> (Target, Target) {
    let first = container.init();
    let process = waiting(|candidate| children(first.pid).contains(&candidate.process.pid));
    let launcher = container.way_in(rig, process);
    let holder = Target {
        process: first,
        ..launcher.clone()
    };
    (launcher, holder)
}

/// Does the agent's part of a start without a collection; returns the first process.
fn grafted(rig: &Rig, container: &Container) -> Target {
    let (launcher, holder) = targets(rig, container);
    launcher.start_session(&options()).unwrap();
    assert!(launcher.await_state(Duration::from_mins(1)).unwrap().grafted);
    holder
}

#[test]
fn a_collection_before_the_first_instruction_holds_every_range_and_outlives_the_program() {
    let Some(rig) = rig() else { return };
    let command = held("60", &[WORKLOAD, "--seconds", "1", "--fail-code", "5"]);
    let mut container = Container::bare(rig, &command);
    let (launcher, holder) = targets(rig, &container);
    launcher.start_session_held(&options()).unwrap();
    assert!(launcher.await_held(Duration::from_mins(1)).unwrap());
    collect(&holder, "start");
    assert_eq!(container.stdout(), "", "the program waits for the collection");
    holder.release().unwrap();
    holder.release().unwrap();
    let state = holder.await_state(Duration::from_mins(1)).unwrap();
    assert!(state.grafted, "{state:?}");

    wait_until("the program's end", || holder.has_ended().unwrap());
    assert!(
        container.unshare.try_wait().unwrap().is_none(),
        "the container stays for its capture"
    );
    let path = holder.stop_collection(SESSION, "start").unwrap();
    let raw = container.file("raw");
    holder
        .copy_capture(&path, &mut std::fs::File::create(&raw).unwrap(), 1 << 30, |_| true)
        .unwrap();
    assert!(holder.remove_capture(&path).unwrap());
    let taken = Instant::now();
    assert_eq!(container.end().code(), Some(5), "the program's own exit code");
    assert!(taken.elapsed() < Duration::from_secs(40), "{:?}", taken.elapsed());

    let stdout = container.stdout();
    let total = stdout
        .lines()
        .find_map(|line| {
            line.strip_prefix("total ")?
                .split("ranges=")
                .nth(1)?
                .split(' ')
                .next()?
                .parse::<usize>()
                .ok()
        })
        .unwrap();
    assert_eq!(
        Capture::read(rig, &raw).len(),
        total,
        "from the first range to the last"
    );
}

#[test]
fn a_program_that_nobody_captures_ends_at_once_with_its_code_and_gets_the_signals() {
    let Some(rig) = rig() else { return };
    let command = held("60", &[WORKLOAD, "--fail-code", "6"]);
    let mut container = Container::bare(rig, &command);
    grafted(rig, &container);
    wait_until("the program's first report", || container.stdout().contains("ranges="));
    container.signal(Signal::SIGHUP);
    wait_until("the signal's report", || container.stdout().contains("hup=1"));
    let asked = Instant::now();
    container.terminates(6);
    assert!(asked.elapsed() < Duration::from_secs(40), "{:?}", asked.elapsed());
    assert!(container.stdout().contains("wait=ECHILD"), "no child of ours");
}

#[test]
fn a_capture_that_nobody_takes_does_not_keep_the_container_for_ever() {
    let Some(rig) = rig() else { return };
    let command = held("2", &[WORKLOAD]);
    let mut container = Container::bare(rig, &command);
    let holder = grafted(rig, &container);
    container.reports();
    collect(&holder, "left");
    container.signal(Signal::SIGTERM);
    wait_until("the program's end", || holder.has_ended().unwrap());
    let ended = Instant::now();
    assert_eq!(container.end().code(), Some(0));
    let stayed = ended.elapsed();
    assert!(
        Duration::from_secs(1) < stayed && stayed < Duration::from_secs(40),
        "{stayed:?}"
    );
}

#[test]
fn a_launcher_whose_session_is_never_released_starts_its_program_plainly() {
    let Some(rig) = rig() else { return };
    let program = [
        LAUNCHER,
        "hold",
        "--",
        LAUNCHER,
        "run",
        "--claim-seconds",
        "60",
        "--session-seconds",
        "8",
        "--",
        WORKLOAD,
        "--seconds",
        "1",
    ];
    let mut container = Container::bare(rig, &program);
    let (launcher, _) = targets(rig, &container);
    launcher.start_session_held(&options()).unwrap();
    assert!(launcher.await_held(Duration::from_mins(1)).unwrap());
    let state = launcher.await_state(Duration::from_mins(1)).unwrap();
    assert_eq!((state.grafted, state.reason.as_str()), (false, "session_timeout"));
    assert_eq!(container.end().code(), Some(0));
}

#[test]
fn a_held_program_finds_the_signals_as_in_an_unprepared_container() {
    let Some(rig) = rig() else { return };
    let script = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status";
    let program = ["/bin/sh", "-c", script];
    for given in [&[][..], &["--ignore-signal=PIPE,USR2", "--block-signal=WINCH"]] {
        let changed =
            |command: &[&'static str]| -> Vec<&'static str> { [&["/usr/bin/env"][..], given, command].concat() };
        let waits_for_nobody = [LAUNCHER, "hold", "--", LAUNCHER, "run", "--claim-seconds", "0", "--"];
        let mut seen = Vec::new();
        for command in [changed(&program), changed(&[&waits_for_nobody[..], &program].concat())] {
            let mut container = Container::bare(rig, &command);
            assert_eq!(container.end().code(), Some(0));
            seen.push(container.stdout());
        }
        assert_eq!(seen[0].lines().count(), 3, "{}", seen[0]);
        assert_eq!(seen[0], seen[1], "{given:?}");
    }
}

#[test]
fn a_signal_ends_a_held_program_that_does_nothing_about_it() {
    let Some(rig) = rig() else { return };
    let command = [
        LAUNCHER,
        "hold",
        "--",
        LAUNCHER,
        "run",
        "--claim-seconds",
        "0",
        "--",
        "/bin/sleep",
        "600",
    ];
    let mut container = Container::bare(rig, &command);
    let first = container.init();
    wait_for("the program", || {
        let child = *children(first.pid).first()?;
        let line = std::fs::read(format!("/proc/{child}/cmdline")).ok()?;
        line.starts_with(b"/bin/sleep\0").then_some(())
    });
    let sent = Instant::now();
    container.terminates(143);
    assert!(sent.elapsed() < Duration::from_secs(5), "{:?}", sent.elapsed());
}
