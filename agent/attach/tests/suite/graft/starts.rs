//! The launcher: what it waits for, what it becomes, what it leaves alone.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use flopwatch_attach::nsys::{LaunchOptions, SessionState};
use nix::sys::signal::Signal;

use super::container::{Container, Spec, Tools, WORKLOAD, rig, wait_until};
use super::{SESSION, graft, grafted, members};

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
    let mut plain = Spec::of(&command).launcher(None).environment(&environment).start(rig);
    assert_eq!(plain.end().code(), Some(0));
    let own = environment_lines(&plain.stdout());
    assert_eq!(own.len(), environment.len());

    let mut container = Spec::of(&command).environment(&environment).start(rig);
    let (_, state) = graft(rig, &container);
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
    let mut container = Spec::of(&command).stdin(&input).start(rig);
    grafted(rig, &container);
    assert_eq!(container.end().code(), Some(9));
    assert!(container.stdout().contains("stdin bytes=20000\n"));

    for (command, code) in [
        ("/absent", 127),
        ("absent", 127),
        ("/etc", 126),
        ("/proc/1/status", 126),
    ] {
        let options = ["--claim-seconds", "0"];
        let mut container = Spec::of(&[command]).launcher(Some(&options)).start(rig);
        assert_eq!(container.end().code(), Some(code), "{command}");
        let stderr = std::fs::read_to_string(container.file("out/stderr")).unwrap();
        assert!(
            stderr.starts_with(&format!("flopwatch-launcher: cannot run {command}: ")),
            "{stderr}"
        );
    }
}

#[test]
fn signals_descriptors_umask_and_folder_are_as_without_a_launcher() {
    let Some(rig) = rig() else { return };
    let script = "grep -E '^Sig(Blk|Ign)' /proc/self/status; umask; pwd; exec ls /proc/self/fd";
    let command = ["/bin/sh", "-c", script];
    let waits_for_nobody = ["--claim-seconds", "0"];
    let mut seen = Vec::new();
    for launcher in [None, Some(&waits_for_nobody[..])] {
        let mut container = Spec::of(&command).launcher(launcher).start(rig);
        assert_eq!(container.end().code(), Some(0));
        seen.push(container.stdout());
    }
    assert_eq!(seen[0], seen[1]);
    let mut container = Spec::of(&command).start(rig);
    grafted(rig, &container);
    assert_eq!(container.end().code(), Some(0));
    // The profiler's library opens descriptors of its own in the process; the launcher adds none,
    // as the first half shows.
    let grafted = container.stdout();
    let expected: Vec<&str> = seen[0].lines().take(4).collect();
    assert_eq!(expected, grafted.lines().take(4).collect::<Vec<_>>());
}

#[test]
fn signals_reach_the_workloads_own_handlers() {
    let Some(rig) = rig() else { return };
    let mut container = Container::workload(rig);
    grafted(rig, &container);
    container.reports();
    container.signal(Signal::SIGHUP);
    wait_until("SIGHUP", || container.stdout().contains("hup=1 int=0"));
    container.signal(Signal::SIGINT);
    wait_until("SIGINT", || container.stdout().contains("hup=1 int=1"));
    container.terminates(0);
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
        let mut container = Spec::of(&[WORKLOAD]).start(rig);
        container.target(rig);
        let sent = Instant::now();
        container.signal(signal);
        assert_eq!(container.end().code(), Some(code));
        assert!(sent.elapsed() < Duration::from_secs(40), "{:?}", sent.elapsed());
        assert!(container.stdout().is_empty(), "the workload ran");
        assert!(container.state().contains("\"interrupted\""));
    }
}

#[test]
fn without_an_agent_the_workload_starts_plain_within_the_bound() {
    let Some(rig) = rig() else { return };
    let mut container = Spec::of(&[WORKLOAD, "--print-env"]).launcher(Some(&[])).start(rig);
    assert_eq!(container.end().code(), Some(0));
    let took = container.started.elapsed();
    assert!(
        took > Duration::from_secs(3) && took < Duration::from_secs(30),
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
        ("missing", Tools::Missing, "session_failed", "60"),
        ("hanging", Tools::Script(hang), "session_timeout", "2"),
        ("crashing", Tools::Script(crash), "session_failed", "60"),
    ];
    for (what, tools, reason, seconds) in cases {
        let options = ["--claim-seconds", "60", "--session-seconds", seconds];
        let mut container = Spec::of(&[WORKLOAD]).tools(tools).launcher(Some(&options)).start(rig);
        let target = container.target(rig);
        let start = Instant::now();
        target
            .start_session(&LaunchOptions {
                session: what.into(),
                ..super::options()
            })
            .unwrap();
        let state = target.await_state(Duration::from_mins(1)).unwrap();
        assert!(
            start.elapsed() < Duration::from_secs(40),
            "{what}: {:?}",
            start.elapsed()
        );
        assert_eq!((state.grafted, state.reason.as_str()), (false, reason), "{what}");
        // Nothing of ours stays beside the workload.
        let init = container.init();
        wait_until("the supervisor's end", || members(init.pid).is_empty());
        container.reports();
        container.terminates(0);
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

#[test]
fn of_containers_with_the_same_shared_memory_one_has_a_session() {
    let Some(rig) = rig() else { return };
    let memory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(memory.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
    let spec = Spec::of(&[WORKLOAD]).shared_memory(Some(memory.path()));
    let (mut first, mut second) = (spec.start(rig), spec.start(rig));
    let (target, state) = graft(rig, &first);
    assert!(state.grafted, "{state:?}");
    let (refused, state) = graft(rig, &second);
    assert_eq!((state.grafted, state.reason.as_str()), (false, "session_failed"));
    let why = refused.failure().unwrap();
    assert!(why.contains("another container of this pod"), "{why}");
    for container in [&first, &second] {
        container.reports();
    }
    assert_eq!(target.session_state(SESSION).unwrap(), SessionState::Idle);

    // The place comes free with the container that had it.
    for container in [&mut first, &mut second] {
        container.terminates(0);
    }
    let third = spec.start(rig);
    grafted(rig, &third);
}

#[test]
fn a_launch_that_trips_over_itself_is_begun_again() {
    let Some(rig) = rig() else { return };
    // As nsys does now and then on a busy machine: an error, or the loss of its own session, which
    // it ends with 0.
    let tools = "#!/bin/sh\n\
                 [ \"$1\" = launch ] || exit 0\n\
                 cd /flopwatch/run/tmp\n\
                 mkdir first 2>/dev/null && exit 1\n\
                 mkdir second 2>/dev/null && exit 0\n\
                 while [ \"$1\" != /flopwatch/tools/launcher ]; do shift; done\n\
                 GIVEN=1 exec \"$@\"\n";
    let mut container = Spec::of(&[WORKLOAD, "--print-env"])
        .tools(Tools::Script(tools))
        .start(rig);
    grafted(rig, &container);
    assert_eq!(container.end().code(), Some(0));
    assert!(container.stdout().contains("env GIVEN=1"));
}

#[test]
fn a_refusal_of_the_agent_starts_the_workload_at_once() {
    let Some(rig) = rig() else { return };
    let mut container = Container::workload(rig);
    let target = container.target(rig);
    target.refuse("captures are switched off").unwrap();
    let state = target.await_state(Duration::from_secs(40)).unwrap();
    assert_eq!((state.grafted, state.reason.as_str()), (false, "session_failed"));
    assert_eq!(target.failure().as_deref(), Some("captures are switched off"));
    container.reports();
    container.terminates(0);
}

#[test]
fn a_workload_with_another_profiler_is_left_alone() {
    let Some(rig) = rig() else { return };
    let environment = ["NVTX_INJECTION64_PATH=/own/library"];
    let spec = Spec::of(&[WORKLOAD, "--print-env"]).environment(&environment);
    let mut container = spec.start(rig);
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
    let spec = Spec::of(&[WORKLOAD, "--print-env", "--fail-code", "3"]);
    let container = spec.start(rig);
    let (_, state) = graft(rig, &container);
    assert!(state.grafted);
    let folder = container.finish();
    let mut container = Container::start_in(rig, &spec, folder);
    assert_eq!(container.end().code(), Some(3));
    assert!(
        container.started.elapsed() < Duration::from_secs(50),
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
fn a_life_of_more_than_thirty_seconds_lets_the_next_start_be_grafted() {
    let Some(rig) = rig() else { return };
    let spec = Spec::of(&[WORKLOAD]);
    let container = spec.start(rig);
    grafted(rig, &container);
    let marker = container.file("run/marker");
    assert!(std::fs::read_to_string(&marker).unwrap().contains("survived=false"));
    wait_until("the mark", || {
        std::fs::read_to_string(&marker).unwrap().contains("survived=true")
    });
    assert!(container.started.elapsed() > Duration::from_secs(30));
    container.signal(Signal::SIGTERM);
    let mut container = Container::start_in(rig, &spec, container.finish());
    grafted(rig, &container);
    container.reports();
    container.terminates(0);
}

/// Fifty, or as many as a soak asks for. Where the profiler trips over itself again and again the
/// start is a plain one, which is seldom and costs the workload nothing.
#[test]
fn many_starts_lose_none() {
    const LANES: usize = 4;
    let Some(rig) = rig() else { return };
    let count = std::env::var("FLOPWATCH_STARTS").map_or(50, |count| count.parse().unwrap());
    let start = |number: usize| {
        let mut container = Spec::of(&[WORKLOAD, "--print-env"]).start(rig);
        let (_, state) = graft(rig, &container);
        assert_eq!(container.end().code(), Some(0), "start {number}: {state:?}");
        assert!(
            container.stdout().contains("start pid=1 wait=ECHILD"),
            "start {number}: {state:?}"
        );
        if !state.grafted {
            println!("start {number} was a plain one: {state:?}");
        }
        (state.grafted, state.waited_ms)
    };
    let start = &start;
    let ended: Vec<(bool, u64)> = std::thread::scope(|scope| {
        let lane = |lane| scope.spawn(move || (lane..count).step_by(LANES).map(start).collect::<Vec<_>>());
        let lanes: Vec<_> = (0..LANES).map(lane).collect();
        lanes.into_iter().flat_map(|lane| lane.join().unwrap()).collect()
    });
    assert_eq!(ended.len(), count);
    let grafted = ended.iter().filter(|(grafted, _)| *grafted).count();
    assert!(grafted * 20 >= count * 19, "{grafted} of {count} starts were grafted");
    let mut waited: Vec<u64> = ended.into_iter().map(|(_, waited_ms)| waited_ms).collect();
    waited.sort_unstable();
    let at = |share: usize| waited[(waited.len() - 1) * share / 100];
    println!(
        "{count} starts, {grafted} of them grafted, none lost; the launcher's wait in ms: median {}, 99th percentile {}, longest {}",
        at(50),
        at(99),
        at(100)
    );
}
