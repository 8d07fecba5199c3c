//! Collections: what is captured, who ends them, what survives them.

use std::collections::BTreeSet;
use std::time::Duration;

use flopwatch_attach::graft::{Bounds, GraftError};
use flopwatch_attach::nsys::{Collection, SessionState};
use flopwatch_attach::process::Procfs;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::capture::{Capture, counts};
use super::container::{Container, Spec, WORKLOAD, rig, wait_until};
use super::{LOOSE, SESSION, collect, graft, grafted, members};

#[test]
fn a_session_whose_launch_is_gone_records_all_the_same() {
    let Some(rig) = rig() else { return };
    let mut container = Container::workload(rig);
    let target = grafted(rig, &container);
    container.reports();
    let procfs = Procfs::default();
    let launch = members(container.init().pid).into_iter().find(|pid| {
        let words = procfs.command_line(*pid).unwrap_or_default();
        words.first().is_some_and(|program| program.ends_with("/nsys"))
            && words.get(1).is_some_and(|word| word == "launch")
    });
    kill(Pid::from_raw(launch.unwrap()), Signal::SIGKILL).unwrap();
    // The supervisor looks several times in that time.
    container.works_for(Duration::from_millis(1500));
    collect(&target, "after");
    container.works_for(Duration::from_millis(500));
    let path = target.stop_collection(SESSION, "after").unwrap();
    let raw = container.file("raw");
    let mut file = std::fs::File::create(&raw).unwrap();
    target.copy_capture(&path, &mut file, 1 << 30, |_| true).unwrap();
    assert_eq!(
        Capture::read(rig, &raw).names(),
        ["backward", "forward", "optimizer", "step"]
    );
    container.terminates(0);
}

#[test]
fn two_windows_hold_the_ranges_of_the_workload_which_stays_pid_one_and_childless() {
    let Some(rig) = rig() else { return };
    let command = [WORKLOAD, "--threads", "2", "--fail-code", "7"];
    let mut container = Spec::of(&command).start(rig);
    let (target, state) = graft(rig, &container);
    assert!(state.grafted, "{state:?}");
    assert_eq!((state.pid, state.reason.as_str()), (1, "session"));
    eprintln!(
        "held back for {} ms, grafted {:?} after unshare began",
        state.waited_ms,
        container.started.elapsed()
    );
    container.reports();
    assert_eq!(target.session_state(SESSION).unwrap(), SessionState::Idle);
    assert!(target.tools_version().unwrap().is_some());

    for name in ["first", "second"] {
        collect(&target, name);
        assert_eq!(target.session_state(SESSION).unwrap(), SessionState::Collecting);
        container.works_for(Duration::from_millis(1500));
        let path = target.stop_collection(SESSION, name).unwrap();
        let raw = container.file("raw");
        let taken = target
            .copy_capture(&path, &mut std::fs::File::create(&raw).unwrap(), 1 << 30, |_| true)
            .unwrap();
        assert!(target.remove_capture(&path).unwrap());
        assert!(!target.remove_capture(&path).unwrap());
        assert_eq!(taken, raw.metadata().unwrap().len());
        assert!(!container.file("run/collecting").exists());
        assert_eq!(std::fs::read_dir(container.file("run/out")).unwrap().count(), 0);
        let capture = Capture::read(rig, &raw);
        assert_eq!(capture.names(), ["backward", "forward", "optimizer", "step"]);
        capture.agrees_with(&counts(&container.stdout()), 1, 2);
    }

    container.terminates(7);
    let stdout = container.stdout();
    assert!(stdout.starts_with("start pid=1 wait=ECHILD\n"), "{stdout}");
    let mut reports = stdout.lines().filter(|line| line.starts_with("t="));
    assert!(reports.all(|line| line.ends_with("wait=ECHILD")), "{stdout}");
    assert!(stdout.lines().next_back().unwrap().starts_with("total pid=1 "));
}

#[test]
fn child_processes_of_the_workload_are_captured_too() {
    let Some(rig) = rig() else { return };
    let mut container = Spec::of(&[WORKLOAD, "--processes", "3"]).start(rig);
    let target = grafted(rig, &container);
    wait_until("the children", || {
        let pids: BTreeSet<u64> = counts(&container.stdout()).iter().map(|count| count.pid).collect();
        pids.len() == 3
    });
    collect(&target, "x");
    container.works_for(Duration::from_millis(1500));
    target.stop_collection(SESSION, "x").unwrap();
    Capture::read(rig, &container.file("run/out/x.qdstrm")).agrees_with(&counts(&container.stdout()), 3, 1);
    container.terminates(0);
}

#[test]
fn the_death_of_the_session_leaves_the_workload_running() {
    let Some(rig) = rig() else { return };
    let mut container = Container::workload(rig);
    let target = grafted(rig, &container);
    container.reports();
    collect(&target, "x");
    container.works_for(Duration::from_millis(300));
    let init = container.init();
    let sessions: Vec<i32> = members(init.pid)
        .into_iter()
        .filter(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
                .unwrap_or_default()
                .contains("--start-agent")
        })
        .collect();
    assert_eq!(sessions.len(), 1);
    kill(Pid::from_raw(sessions[0]), Signal::SIGKILL).unwrap();
    wait_until("the session's end", || {
        target.session_state(SESSION).unwrap() != SessionState::Collecting
    });
    assert!(matches!(
        target.stop_collection(SESSION, "x"),
        Err(GraftError::Refused { .. } | GraftError::NoCapture { .. })
    ));
    let last = counts(&container.stdout()).pop().unwrap().ranges;
    wait_until("more ranges", || {
        counts(&container.stdout()).pop().unwrap().ranges > last + 100
    });
    container.terminates(0);
    assert!(
        container
            .stdout()
            .lines()
            .filter(|line| line.starts_with("t="))
            .all(|line| line.ends_with("wait=ECHILD"))
    );
}

#[test]
fn the_supervisor_ends_a_collection_whose_agent_never_returns() {
    let Some(rig) = rig() else { return };
    let mut container = Container::workload(rig);
    let target = grafted(rig, &container);
    container.reports();
    let cases = [
        (
            "time",
            Bounds {
                limit: Duration::from_secs(3),
                ..LOOSE
            },
            "deadline",
            true,
        ),
        (
            "size",
            Bounds {
                max_bytes: 200_000,
                ..LOOSE
            },
            "too_large",
            true,
        ),
        (
            "space",
            Bounds {
                min_free_bytes: u64::MAX,
                ..LOOSE
            },
            "no_space",
            false,
        ),
    ];
    for (name, bounds, verdict, kept) in cases {
        target
            .start_collection(SESSION, name, &Collection::default(), bounds)
            .unwrap();
        wait_until("the guard", || !container.file("run/collecting").exists());
        assert_eq!(target.guard_verdict().unwrap().as_str(), verdict);
        assert_eq!(
            container.file("run/out").join(format!("{name}.qdstrm")).exists(),
            kept,
            "{name}"
        );
        assert_eq!(target.session_state(SESSION).unwrap(), SessionState::Idle, "{name}");
    }
    assert_eq!(target.recorded().unwrap(), None);
    collect(&target, "unwanted");
    assert_eq!(target.recorded().unwrap().as_deref(), Some("unwanted"));
    let mut lying = target.captures().unwrap();
    lying.sort();
    assert_eq!(lying, ["size", "time"]);
    for _ in 0..2 {
        target.discard_collection(SESSION, "unwanted").unwrap();
        assert!(!container.file("run/out/unwanted.qdstrm").exists());
    }
    // What the supervisor saved is still there for an agent that comes back late.
    assert!(
        target
            .stop_collection(SESSION, "time")
            .unwrap()
            .ends_with("time.qdstrm")
    );
    assert!(
        !Capture::read(rig, &container.file("run/out/time.qdstrm"))
            .names()
            .is_empty()
    );
    container.terminates(0);
}
