//! The graft with the real Nsight Systems, in a container that the test makes.
//!
//! Needs root and Nsight Systems; says so and passes without. `FLOPWATCH_LAUNCHER` names another launcher than the one that
//! is built here (the static one), `FLOPWATCH_NSYS_TARGET` and `FLOPWATCH_NSYS_HOST` the tools' two folders.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests say what they expect by failing"
)]

mod container;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use container::{Container, Rig, Spec, Tools, WORKLOAD, pause, rig, wait_for};
use flopwatch_attach::graft::{Bounds, GraftError, LauncherState, Target};
use flopwatch_attach::nsys::{HostTools, LaunchOptions, SessionState};
use flopwatch_attach::process::Procfs;
use flopwatch_attach::sandbox::{self, Sandboxed};
use nix::sys::signal::Signal;

const SESSION: &str = "fw-test";
const LOOSE: Bounds = Bounds {
    limit: Duration::from_secs(60),
    max_bytes: 1 << 30,
    min_free_bytes: 0,
};

fn options() -> LaunchOptions {
    LaunchOptions {
        session: SESSION.into(),
        trace: vec!["cuda".into(), "nvtx".into()],
        cuda_graph_trace: None,
        trace_fork_before_exec: false,
    }
}

/// Does the agent's part of a start.
fn graft(rig: &Rig, container: &Container) -> (Target, LauncherState) {
    let target = container.target(rig);
    target.start_session(&options()).unwrap();
    let state = target.await_state(Duration::from_secs(20)).unwrap();
    (target, state)
}

fn now_ns() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}

/// A count that one of the workload's processes reported.
struct Count {
    t: u128,
    pid: String,
    ranges: u64,
}

fn counts(stdout: &str) -> Vec<Count> {
    let field = |line: &str, name: &str| {
        line.split(' ')
            .find_map(|word| word.strip_prefix(name).map(str::to_owned))
    };
    stdout
        .lines()
        .filter(|line| line.starts_with("t="))
        .map(|line| Count {
            t: field(line, "t=").unwrap().parse().unwrap(),
            pid: field(line, "pid=").unwrap(),
            ranges: field(line, "ranges=").unwrap().parse().unwrap(),
        })
        .collect()
}

/// Ranges that all processes together finished between two times: at least and at most.
fn between(counts: &[Count], outer: (u128, u128), inner: (u128, u128)) -> (u64, u64) {
    let pids: BTreeSet<&str> = counts.iter().map(|count| count.pid.as_str()).collect();
    let (mut least, mut most) = (0, 0);
    for pid in pids {
        let of = |keep: &dyn Fn(u128) -> bool| {
            counts
                .iter()
                .filter(|count| count.pid == pid && keep(count.t))
                .map(|count| count.ranges)
                .collect::<Vec<_>>()
        };
        let inside = of(&|t| t >= inner.0 && t <= inner.1);
        least += inside.last().unwrap() - inside.first().unwrap();
        let before = of(&|t| t <= outer.0).last().copied().unwrap_or(0);
        most += of(&|t| t >= outer.1).first().unwrap() - before;
    }
    (least, most)
}

/// Imports and exports a raw capture in the sandbox and counts its finished ranges by name.
fn ranges_in(rig: &Rig, raw: &Path) -> Vec<(String, u64)> {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let user = if sandbox::is_open_to_others(&rig.nsys_host) {
        4321
    } else {
        0
    };
    nix::unistd::chown(folder, Some(user.into()), Some(user.into())).unwrap();
    std::fs::copy(raw, folder.join("x.qdstrm")).unwrap();
    let tools = HostTools {
        nsys: rig.nsys_target.join("nsys"),
        importer: rig.nsys_host.join("QdstrmImporter"),
        libraries: rig.libraries.clone(),
    };
    let (report, sqlite) = (folder.join("x.nsys-rep"), folder.join("x.sqlite"));
    for command in [
        tools.import(&folder.join("x.qdstrm"), &report),
        tools.export_sqlite(&report, &sqlite),
    ] {
        let tool = Sandboxed {
            user,
            ..sandboxed(command, tools.environment(folder), folder)
        };
        let output = sandbox::run(&rig.reexec, &tool).unwrap();
        assert!(
            output.success(),
            "{:?}: {}",
            output.end,
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(output.missing.is_empty());
    }
    let script = "import sqlite3,sys
for row in sqlite3.connect(sys.argv[1]).execute('select coalesce(n.text, s.value), count(*) from NVTX_EVENTS n left join StringIds s on s.id = n.textId where n.eventType = 59 and n.end is not null group by 1'): print(*row)";
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(&sqlite)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, count)| (name.to_owned(), count.parse().unwrap()))
        .collect()
}

fn sandboxed(command: Vec<String>, environment: Vec<(String, String)>, directory: &Path) -> Sandboxed {
    Sandboxed {
        command,
        environment,
        directory: directory.to_owned(),
        user: 4321,
        memory_bytes: 4 << 30,
        file_bytes: 1 << 30,
        cpu_seconds: 60,
        deadline: Duration::from_secs(60),
    }
}

#[test]
fn two_windows_hold_the_ranges_of_the_workload_which_stays_pid_one_and_childless() {
    let Some(rig) = rig() else { return };
    let command = [WORKLOAD, "--threads", "2", "--fail-code", "7"];
    let mut container = Container::start(
        &rig,
        &Spec {
            command: &command,
            ..Spec::default()
        },
    );
    let (target, state) = graft(&rig, &container);
    assert!(state.grafted, "{state:?}");
    assert_eq!((state.pid, state.reason.as_str()), (1, "session"));
    eprintln!(
        "start-up: the launcher held the workload back for {} ms, {:?} in all",
        state.waited_ms,
        container.started.elapsed()
    );
    assert_eq!(target.session_state(SESSION).unwrap(), SessionState::Idle);
    assert!(target.tools_version().unwrap().is_some());

    for name in ["first", "second"] {
        pause(Duration::from_millis(300));
        let before = now_ns();
        target.start_collection(SESSION, name, false, LOOSE).unwrap();
        let started = now_ns();
        assert_eq!(target.session_state(SESSION).unwrap(), SessionState::Collecting);
        pause(Duration::from_secs(2));
        let stopping = now_ns();
        let path = target.stop_collection(SESSION, name).unwrap();
        let after = now_ns();
        pause(Duration::from_millis(300));
        let raw = container.file("raw");
        let taken = target
            .take_capture(&path, &mut std::fs::File::create(&raw).unwrap(), 1 << 30, |_| true)
            .unwrap();
        assert_eq!(taken, raw.metadata().unwrap().len());
        assert!(!container.file("run/collecting").exists());
        assert_eq!(std::fs::read_dir(container.file("run/out")).unwrap().count(), 0);

        let ranges = ranges_in(&rig, &raw);
        let names: Vec<&str> = ranges.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["backward", "forward", "optimizer", "step"]);
        let captured: u64 = ranges.iter().map(|(_, count)| count).sum();
        let (least, most) = between(&counts(&container.stdout()), (before, after), (started, stopping));
        eprintln!("{name}: {captured} ranges captured, the workload counted {least} to {most}, {taken} bytes");
        // One unfinished step of each of the two threads at either edge is neither's fault.
        assert!(
            captured + 16 >= least && captured <= most + 16,
            "{captured} not in {least}..{most}"
        );
        assert!(least > 100);
    }

    container.signal(Signal::SIGTERM);
    assert_eq!(container.end().code(), Some(7));
    let stdout = container.stdout();
    assert!(stdout.starts_with("start pid=1 wait=ECHILD\n"), "{stdout}");
    assert!(
        stdout
            .lines()
            .filter(|line| line.starts_with("t="))
            .all(|line| line.ends_with("wait=ECHILD")),
        "{stdout}"
    );
    assert!(stdout.lines().next_back().unwrap().starts_with("total pid=1 "));
}

#[test]
fn child_processes_of_the_workload_are_captured_too() {
    let Some(rig) = rig() else { return };
    let mut container = Container::start(
        &rig,
        &Spec {
            command: &[WORKLOAD, "--processes", "3"],
            ..Spec::default()
        },
    );
    let (target, state) = graft(&rig, &container);
    assert!(state.grafted, "{state:?}");
    pause(Duration::from_millis(500));
    let before = now_ns();
    target.start_collection(SESSION, "x", false, LOOSE).unwrap();
    let started = now_ns();
    pause(Duration::from_secs(1));
    let stopping = now_ns();
    target.stop_collection(SESSION, "x").unwrap();
    let after = now_ns();
    pause(Duration::from_millis(300));
    let captured: u64 = ranges_in(&rig, &container.file("run/out/x.qdstrm"))
        .iter()
        .map(|(_, count)| count)
        .sum();
    let (least, most) = between(&counts(&container.stdout()), (before, after), (started, stopping));
    assert!(
        captured + 24 >= least && captured <= most + 24,
        "{captured} not in {least}..{most}"
    );
    container.signal(Signal::SIGTERM);
    assert_eq!(container.end().code(), Some(0));
}

fn environment_lines(stdout: &str) -> BTreeSet<String> {
    stdout
        .lines()
        .filter_map(|line| line.strip_prefix("env "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_workloads_own_environment_is_untouched() {
    let Some(rig) = rig() else { return };
    let environment = [
        "PATH=/usr/bin:/bin",
        "EMPTY=",
        "SPACED=a b=c",
        "__GL_CONSTANT_FRAME_RATE_HINT=own",
    ];
    let command = [WORKLOAD, "--print-env"];
    let mut plain = Container::start(
        &rig,
        &Spec {
            launcher: None,
            command: &command,
            environment: &environment,
            ..Spec::default()
        },
    );
    assert_eq!(plain.end().code(), Some(0));
    let own = environment_lines(&plain.stdout());
    assert_eq!(own.len(), environment.len());

    let mut container = Container::start(
        &rig,
        &Spec {
            command: &command,
            environment: &environment,
            ..Spec::default()
        },
    );
    let (_, state) = graft(&rig, &container);
    assert!(state.grafted, "{state:?}");
    assert_eq!(state.kept, ["__GL_CONSTANT_FRAME_RATE_HINT"]);
    assert_eq!(container.end().code(), Some(0));
    let grafted = environment_lines(&container.stdout());
    assert!(own.is_subset(&grafted), "{own:?} {grafted:?}");
    let added: BTreeSet<&str> = grafted
        .difference(&own)
        .map(|line| line.split_once('=').unwrap().0)
        .collect();
    assert!(
        added.contains("LD_PRELOAD") && added.contains("CUDA_INJECTION64_PATH"),
        "{added:?}"
    );
    for name in ["TMPDIR", "HOME", "PWD", "OLDPWD", "SHLVL", "_", "PATH"] {
        assert!(!added.contains(name), "{name} came from the stub");
    }
}

#[test]
fn exit_codes_and_standard_input_are_the_workloads() {
    let Some(rig) = rig() else { return };
    let input = vec![b'x'; 20_000];
    let command = [WORKLOAD, "--read-stdin", "--seconds", "1", "--fail-code", "9"];
    let mut container = Container::start(
        &rig,
        &Spec {
            command: &command,
            stdin: &input,
            ..Spec::default()
        },
    );
    let (_, state) = graft(&rig, &container);
    assert!(state.grafted);
    assert_eq!(container.end().code(), Some(9));
    assert!(container.stdout().contains("stdin bytes=20000\n"));

    for (command, code) in [
        ("/absent", 127),
        ("absent", 127),
        ("/etc", 126),
        ("/proc/1/status", 126),
    ] {
        let options = ["--claim-seconds", "0"];
        let mut container = Container::start(
            &rig,
            &Spec {
                launcher: Some(&options),
                command: &[command],
                ..Spec::default()
            },
        );
        assert_eq!(container.end().code(), Some(code), "{command}");
        let stderr = std::fs::read_to_string(container.file("out/stderr")).unwrap();
        assert!(
            stderr.starts_with(&format!("flopwatch-launcher: cannot run {command}: ")),
            "{stderr}"
        );
    }
}

#[test]
fn signals_reach_the_workloads_own_handlers() {
    let Some(rig) = rig() else { return };
    let mut container = Container::start(
        &rig,
        &Spec {
            command: &[WORKLOAD],
            ..Spec::default()
        },
    );
    let (_, state) = graft(&rig, &container);
    assert!(state.grafted);
    wait_for("the workload", || container.stdout().contains("t=").then_some(()));
    container.signal(Signal::SIGHUP);
    wait_for("SIGHUP", || container.stdout().contains("hup=1 int=0").then_some(()));
    container.signal(Signal::SIGINT);
    wait_for("SIGINT", || container.stdout().contains("hup=1 int=1").then_some(()));
    container.signal(Signal::SIGTERM);
    assert_eq!(container.end().code(), Some(0));
    assert!(
        container
            .stdout()
            .lines()
            .next_back()
            .unwrap()
            .ends_with("hup=1 int=1 term=1")
    );
}

#[test]
fn a_signal_ends_the_wait_promptly() {
    let Some(rig) = rig() else { return };
    for (signal, code) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGINT, 130),
        (Signal::SIGHUP, 129),
        (Signal::SIGQUIT, 131),
    ] {
        let options = ["--claim-seconds", "30"];
        let mut container = Container::start(
            &rig,
            &Spec {
                launcher: Some(&options),
                command: &[WORKLOAD],
                ..Spec::default()
            },
        );
        container.target(&rig);
        let sent = Instant::now();
        container.signal(signal);
        assert_eq!(container.end().code(), Some(code));
        assert!(sent.elapsed() < Duration::from_secs(1), "{:?}", sent.elapsed());
        assert!(container.stdout().is_empty(), "the workload ran");
        assert!(container.state().contains("\"interrupted\""));
    }
}

#[test]
fn without_an_agent_the_workload_starts_plain_within_the_bound() {
    let Some(rig) = rig() else { return };
    let mut container = Container::start(
        &rig,
        &Spec {
            command: &[WORKLOAD, "--print-env"],
            ..Spec::default()
        },
    );
    assert_eq!(container.end().code(), Some(0));
    let took = container.started.elapsed();
    assert!(
        took > Duration::from_secs(3) && took < Duration::from_secs(5),
        "{took:?}"
    );
    assert!(
        container
            .state()
            .starts_with("{\"grafted\":false,\"reason\":\"unclaimed\""),
        "{}",
        container.state()
    );
    assert_eq!(
        environment_lines(&container.stdout()),
        BTreeSet::from(["A=1".to_owned(), "PATH=/usr/bin:/bin".to_owned()])
    );
}

#[test]
fn tools_that_are_missing_hang_or_crash_mean_a_plain_start() {
    let Some(rig) = rig() else { return };
    let hang = "#!/bin/sh\nexec sleep 1000\n";
    let crash = "#!/bin/sh\nkill -SEGV $$\n";
    let cases = [
        ("missing", Tools::Missing, "session_failed", Duration::from_secs(2)),
        (
            "hanging",
            Tools::Script(hang),
            "session_timeout",
            Duration::from_secs(5),
        ),
        (
            "crashing",
            Tools::Script(crash),
            "session_failed",
            Duration::from_secs(2),
        ),
    ];
    for (what, tools, reason, bound) in cases {
        let options = ["--session-seconds", "2"];
        let command = [WORKLOAD, "--seconds", "2"];
        let mut container = Container::start(
            &rig,
            &Spec {
                tools,
                launcher: Some(&options),
                command: &command,
                ..Spec::default()
            },
        );
        let target = container.target(&rig);
        let start = Instant::now();
        target.start_session(&options_of(what)).unwrap();
        let state = target.await_state(Duration::from_secs(20)).unwrap();
        assert!(start.elapsed() < bound, "{what}: {:?}", start.elapsed());
        assert_eq!((state.grafted, state.reason.as_str()), (false, reason), "{what}");
        // Nothing of ours stays beside the workload.
        let init = container.init();
        wait_for("the keeper's end", || (others_in(init.pid) == 0).then_some(()));
        assert_eq!(container.end().code(), Some(0));
        assert!(container.stdout().contains("start pid=1 wait=ECHILD"), "{what}");
        assert!(
            !container
                .stdout()
                .lines()
                .any(|line| line.starts_with("t=") && !line.ends_with("wait=ECHILD")),
            "{what}"
        );
    }
}

fn options_of(session: &str) -> LaunchOptions {
    LaunchOptions {
        session: session.into(),
        ..options()
    }
}

/// Processes beside PID 1 in the PID namespace of `init`.
fn others_in(init: i32) -> usize {
    members(init).len()
}

fn members(init: i32) -> Vec<i32> {
    let namespace = |pid: i32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let own = namespace(init);
    Procfs::default()
        .pids()
        .unwrap()
        .into_iter()
        .filter(|pid| *pid != init && own.is_some() && namespace(*pid) == own)
        .collect()
}

#[test]
fn a_refusal_of_the_agent_starts_the_workload_at_once() {
    let Some(rig) = rig() else { return };
    let mut container = Container::start(
        &rig,
        &Spec {
            command: &[WORKLOAD, "--seconds", "1"],
            ..Spec::default()
        },
    );
    let target = container.target(&rig);
    target.refuse("captures are switched off").unwrap();
    let state = target.await_state(Duration::from_secs(2)).unwrap();
    assert_eq!((state.grafted, state.reason.as_str()), (false, "session_failed"));
    assert_eq!(target.failure().as_deref(), Some("captures are switched off"));
    assert_eq!(container.end().code(), Some(0));
}

#[test]
fn the_death_of_the_session_leaves_the_workload_running() {
    let Some(rig) = rig() else { return };
    let mut container = Container::start(
        &rig,
        &Spec {
            command: &[WORKLOAD],
            ..Spec::default()
        },
    );
    let (target, state) = graft(&rig, &container);
    assert!(state.grafted);
    target.start_collection(SESSION, "x", false, LOOSE).unwrap();
    pause(Duration::from_millis(300));
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
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(sessions[0]), Signal::SIGKILL).unwrap();
    pause(Duration::from_secs(2));
    assert_ne!(target.session_state(SESSION).unwrap(), SessionState::Collecting);
    assert!(matches!(
        target.stop_collection(SESSION, "x"),
        Err(GraftError::Refused { .. } | GraftError::NoCapture { .. })
    ));
    let last = counts(&container.stdout()).pop().unwrap().ranges;
    wait_for("more ranges", || {
        (counts(&container.stdout()).pop().unwrap().ranges > last + 100).then_some(())
    });
    container.signal(Signal::SIGTERM);
    assert_eq!(container.end().code(), Some(0));
    assert!(
        container
            .stdout()
            .lines()
            .filter(|line| line.starts_with("t="))
            .all(|line| line.ends_with("wait=ECHILD"))
    );
}

#[test]
fn the_keeper_ends_a_collection_whose_agent_never_returns() {
    let Some(rig) = rig() else { return };
    let mut container = Container::start(
        &rig,
        &Spec {
            command: &[WORKLOAD],
            ..Spec::default()
        },
    );
    let (target, state) = graft(&rig, &container);
    assert!(state.grafted);
    let cases = [
        (
            "time",
            Bounds {
                limit: Duration::from_secs(1),
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
        target.start_collection(SESSION, name, false, bounds).unwrap();
        wait_for("the guard", || {
            (!container.file("run/collecting").exists()).then_some(())
        });
        assert_eq!(target.guard_verdict().unwrap().as_str(), verdict);
        assert_eq!(
            container.file("run/out").join(format!("{name}.qdstrm")).exists(),
            kept,
            "{name}"
        );
        assert_eq!(target.session_state(SESSION).unwrap(), SessionState::Idle, "{name}");
    }
    target.start_collection(SESSION, "unwanted", false, LOOSE).unwrap();
    for _ in 0..2 {
        target.discard_collection(SESSION, "unwanted").unwrap();
        assert!(!container.file("run/out/unwanted.qdstrm").exists());
    }
    // What the keeper saved is still there for an agent that comes back late.
    assert!(
        target
            .stop_collection(SESSION, "time")
            .unwrap()
            .ends_with("time.qdstrm")
    );
    assert!(!ranges_in(&rig, &container.file("run/out/time.qdstrm")).is_empty());
    container.signal(Signal::SIGTERM);
    assert_eq!(container.end().code(), Some(0));
}

#[test]
fn a_workload_with_another_profiler_is_left_alone() {
    let Some(rig) = rig() else { return };
    let environment = ["NVTX_INJECTION64_PATH=/own/library"];
    let spec = Spec {
        command: &[WORKLOAD, "--print-env"],
        environment: &environment,
        ..Spec::default()
    };
    let mut container = Container::start(&rig, &spec);
    assert_eq!(container.end().code(), Some(0));
    assert!(
        container.state().contains("\"other_profiler\""),
        "{}",
        container.state()
    );
    assert_eq!(
        environment_lines(&container.stdout()),
        BTreeSet::from([environment[0].to_owned()])
    );
}

#[test]
fn an_early_death_makes_the_next_start_plain_and_says_so() {
    let Some(rig) = rig() else { return };
    let spec = Spec {
        command: &[WORKLOAD, "--print-env", "--fail-code", "3"],
        ..Spec::default()
    };
    let container = Container::start(&rig, &spec);
    let (_, state) = graft(&rig, &container);
    assert!(state.grafted);
    let folder = container.finish();
    let mut container = Container::start_in(&rig, &spec, folder);
    assert_eq!(container.end().code(), Some(3));
    assert!(
        container.started.elapsed() < Duration::from_secs(2),
        "a plain start waits for nobody"
    );
    assert!(
        container
            .state()
            .starts_with("{\"grafted\":false,\"reason\":\"early_death\""),
        "{}",
        container.state()
    );
    assert!(!container.stdout().contains("LD_PRELOAD"));
}

#[test]
fn twenty_starts_lose_none() {
    let Some(rig) = rig() else { return };
    let mut waited = Vec::new();
    for _ in 0..20 {
        let mut container = Container::start(
            &rig,
            &Spec {
                command: &[WORKLOAD, "--print-env"],
                ..Spec::default()
            },
        );
        let (_, state) = graft(&rig, &container);
        assert!(state.grafted, "{state:?}");
        waited.push(state.waited_ms);
        assert_eq!(container.end().code(), Some(0));
    }
    waited.sort_unstable();
    eprintln!("launcher's wait in ms, sorted: {waited:?}");
}

#[test]
fn what_runs_in_a_container_has_its_user_and_no_right() {
    let Some(rig) = rig() else { return };
    let mut container = Container::start(
        &rig,
        &Spec {
            launcher: None,
            command: &["/bin/sleep", "60"],
            ..Spec::default()
        },
    );
    wait_for("the container's command", || {
        std::fs::read_to_string(format!("/proc/{}/comm", container.init().pid))
            .ok()
            .filter(|name| name == "sleep\n")
    });
    let entry = |script: &str, seconds| flopwatch_attach::enter::Entry {
        proc_root: "/proc".into(),
        process: container.init(),
        cgroup: None,
        command: vec!["/bin/sh".into(), "-c".into(), script.into()],
        environment: vec![("ONLY".into(), "this".into())],
        deadline: Duration::from_secs(seconds),
        detach: false,
    };
    let run = |script: &str, seconds| flopwatch_attach::enter::run(&rig.reexec, &entry(script, seconds)).unwrap();
    let output = run(
        "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs)' /proc/self/status; hostname; env; ls /proc/self/fd; cat",
        5,
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("Uid:\t1234\t1234\t1234\t1234\nGid:\t1234\t1234\t1234\t1234\nGroups:\t \n"),
        "{text}"
    );
    for set in ["Inh", "Prm", "Eff", "Bnd", "Amb"] {
        assert!(text.contains(&format!("Cap{set}:\t0000000000000000\n")), "{text}");
    }
    assert!(
        text.contains("NoNewPrivs:\t1\n") && text.contains("\ncontainer\n") && text.contains("ONLY=this\n"),
        "{text}"
    );
    assert!(text.ends_with("\n0\n1\n2\n3\n"), "descriptors leaked: {text}");
    assert_eq!(run("exit 5", 5).end, flopwatch_attach::reexec::End::Exited(5));
    assert_eq!(run("kill -9 $$", 5).end, flopwatch_attach::reexec::End::Signaled(9));
    assert_eq!(run("sleep 60", 1).end, flopwatch_attach::reexec::End::TimedOut);
    let loud = run("head -c 1000000 /dev/zero", 10);
    assert!(loud.success() && loud.truncated && loud.stdout.len() == 65536);
    let mut wrong = entry("true", 5);
    wrong.process.start_time += 1;
    assert!(
        flopwatch_attach::enter::run(&rig.reexec, &wrong).is_err(),
        "another process under the same PID"
    );
    container.signal(Signal::SIGKILL);
    container.end();
}

#[test]
fn a_sandboxed_tool_has_no_right_no_network_and_bounds() {
    let Some(rig) = rig() else { return };
    let folder = tempfile::tempdir().unwrap();
    nix::unistd::chown(folder.path(), Some(4321.into()), Some(4321.into())).unwrap();
    let run = |script: &str, change: &dyn Fn(&mut Sandboxed)| {
        let mut tool = sandboxed(
            vec!["/bin/sh".into(), "-c".into(), script.into()],
            vec![("PATH".into(), "/usr/bin:/bin".into())],
            folder.path(),
        );
        change(&mut tool);
        sandbox::run(&rig.reexec, &tool).unwrap()
    };
    let output = run(
        "grep -E '^(Uid|Cap|NoNewPrivs)' /proc/self/status; wc -l < /proc/net/dev; nice; ls /proc/self/fd",
        &|_| {},
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("Uid:\t4321\t")
            && text.contains("CapBnd:\t0000000000000000\n")
            && text.contains("NoNewPrivs:\t1\n"),
        "{text}"
    );
    // Two lines of heading and the loopback device, which is down.
    assert!(text.contains("\n3\n10\n"), "{text}");
    assert!(text.ends_with("\n0\n1\n2\n3\n"), "descriptors leaked: {text}");
    assert!(!run("head -c 100000 /dev/zero > big", &|tool| tool.file_bytes = 1000).success());
    assert!(
        !run(
            "head -c 300000000 /dev/zero | tail -c 300000000 | wc -c; [ ${PIPESTATUS:-1} = 0 ]",
            &|tool| tool.memory_bytes = 64 << 20
        )
        .success()
    );
    let start = Instant::now();
    let late = run("sleep 60 & sleep 60", &|tool| tool.deadline = Duration::from_secs(1));
    assert_eq!(late.end, flopwatch_attach::reexec::End::TimedOut);
    assert!(start.elapsed() < Duration::from_secs(3));
    assert_eq!(
        run("while :; do :; done", &|tool| tool.cpu_seconds = 1).end,
        flopwatch_attach::reexec::End::Signaled(9)
    );
}
