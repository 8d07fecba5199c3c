//! What runs in a container, or on a foreign file, and what it may do there.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use flopwatch_attach::enter::{self, Entry};
use flopwatch_attach::reexec::End;
use flopwatch_attach::sandbox::{self, MemoryBound, Sandboxed};
use nix::sys::signal::Signal;

use super::capture::sandboxed;
use super::container::{Container, Rig, rig, wait_until};
use super::{SESSION, members, options};

#[test]
fn what_runs_in_a_container_has_its_user_and_no_right() {
    let Some(rig) = rig() else { return };
    let mut container = Container::asleep(rig);
    let entry = |script: &str, seconds| Entry {
        environment: vec![("ONLY".into(), "this".into())],
        deadline: Duration::from_secs(seconds),
        ..container.entry(script)
    };
    let run = |script: &str, seconds| enter::run(&rig.reexec, &entry(script, seconds)).unwrap();
    let output = run(
        "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs)' /proc/self/status; hostname; env; ls /proc/self/fd; cat",
        60,
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
    assert_eq!(run("exit 5", 60).end, End::Exited(5));
    assert_eq!(run("kill -9 $$", 60).end, End::Signaled(9));
    assert_eq!(run("sleep 60", 1).end, End::TimedOut);
    let loud = run("head -c 1000000 /dev/zero", 60);
    assert!(loud.success() && loud.truncated && loud.stdout.len() == 65536);
    let mut wrong = entry("true", 60);
    wrong.process.start_time += 1;
    assert!(
        enter::run(&rig.reexec, &wrong).is_err(),
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
        "grep -E '^(Uid|Cap|NoNewPrivs)' /proc/self/status; wc -l < /proc/net/dev; nice; cat /proc/self/oom_score_adj; ls /proc/self/fd",
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
    assert!(text.contains("\n3\n10\n1000\n"), "{text}");
    assert!(text.ends_with("\n0\n1\n2\n3\n"), "descriptors leaked: {text}");
    assert!(!run("head -c 100000 /dev/zero > big", &|tool| tool.file_bytes = 1000).success());
    let allocate = "python3 -c 'x = bytes(500_000_000)'";
    assert!(run(allocate, &|_| {}).success());
    assert!(!run(allocate, &|tool| tool.memory_bytes = 256 << 20).success());
    let data = |tool: &mut Sandboxed| {
        tool.memory_bytes = 256 << 20;
        tool.memory = MemoryBound::Data;
    };
    assert!(!run(allocate, &data).success());
    // What the CUDA driver does: a terabyte of addresses that nobody may write to.
    let reserve = "python3 -c 'import mmap; mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | 0x4020, prot=0)'";
    assert!(run(reserve, &data).success());
    assert!(!run(reserve, &|_| {}).success());
    let start = Instant::now();
    let late = run("sleep 600 & sleep 600", &|tool| tool.deadline = Duration::from_secs(1));
    assert_eq!(late.end, End::TimedOut);
    assert!(start.elapsed() < Duration::from_mins(1));
    assert_eq!(
        run("while :; do :; done", &|tool| tool.cpu_seconds = 1).end,
        End::Signaled(9)
    );
}

#[test]
fn a_sandboxed_tool_that_nobody_wants_any_more_is_killed_and_reaped_with_its_children() {
    let Some(rig) = rig() else { return };
    let folder = tempfile::tempdir().unwrap();
    // No other test's: by it the tool's processes are told from outside, where they have other PIDs
    // than inside.
    let user = 4322;
    nix::unistd::chown(folder.path(), Some(user.into()), Some(user.into())).unwrap();
    let tool = Sandboxed {
        user,
        ..sandboxed(
            vec!["/bin/sh".into(), "-c".into(), "setsid sleep 600 & sleep 600".into()],
            vec![("PATH".into(), "/usr/bin:/bin".into())],
            folder.path(),
        )
    };
    for is_ahead in [false, true] {
        let (cancelled, cancel) = std::io::pipe().unwrap();
        let (reexec, tool, cancelled) = (rig.reexec.clone(), tool.clone(), OwnedFd::from(cancelled));
        let running = std::thread::spawn(move || {
            if is_ahead {
                let frame = tool.clone();
                let ran = sandbox::run_ahead(&reexec, &frame, || Some((tool, cancelled)));
                ran.unwrap().unwrap()
            } else {
                sandbox::run_until(&reexec, &tool, &cancelled).unwrap()
            }
        });
        // The sandbox's first process, the shell, and what it started.
        wait_until("the tool's processes", || running_as(user).len() == 4);
        let start = Instant::now();
        drop(cancel);
        assert_eq!(running.join().unwrap().end, End::Cancelled);
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
        assert_eq!(running_as(user).len(), 0, "killed and reaped before the caller goes on");
    }
}

/// The processes of a user.
fn running_as(user: u32) -> Vec<i32> {
    let of_user = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.contains(&format!("\nUid:\t{user}\t"))
    };
    let pids = flopwatch_attach::process::Procfs::default().pids().unwrap();
    pids.into_iter().filter(of_user).collect()
}

#[test]
fn a_session_has_a_cgroup_of_its_own_which_can_be_removed() {
    let Some(rig) = rig() else { return };
    let mut container = Container::workload(rig);
    let target = container.target(rig);
    let cgroup = container.cgroup.0.clone();
    target.start_session(&options()).unwrap();
    assert!(target.await_state(Duration::from_mins(1)).unwrap().grafted);
    let init = container.init().pid;
    let path = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    assert!(!path(init).contains(&cgroup.name), "the workload was moved");
    let ours = members(init);
    assert!(ours.len() > 2, "no supervisor, no session");
    for pid in ours {
        let text = path(pid);
        assert!(
            text.lines().all(|line| line.ends_with(&format!(":/{}", cgroup.name))),
            "{text}"
        );
    }
    assert!(!cgroup.remove().unwrap(), "removed under the session's feet");
    container.reports();
    target.shutdown_session(SESSION).unwrap();
    container.terminates(0);
    wait_until("the cgroup's end", || cgroup.remove().unwrap());
    assert!(cgroup.remove().unwrap(), "a second removal is fine");
}

#[test]
fn the_agents_capabilities_are_enough_to_take_a_capture_out() {
    let Some(rig) = rig() else { return };
    let mut container = Container::workload(rig);
    let target = container.target(rig);
    let write = "umask 077; echo captured > /flopwatch/run/out/x.qdstrm";
    let entry = Entry {
        proc_root: "/proc".into(),
        process: target.process,
        volumes: None,
        cgroup: target.cgroup.clone(),
        program: "/bin/sh".into(),
        arguments: vec!["sh".into(), "-c".into(), write.into()],
        environment: Vec::new(),
        deadline: Duration::from_mins(1),
        detach: false,
    };
    assert!(enter::run(&rig.reexec, &entry).unwrap().success());
    // Read through the container's root and removed there, as another user than the file's, with no
    // right to override modes.
    let file = format!("/proc/{}/root/flopwatch/run/out/x.qdstrm", target.process.pid);
    let script = format!("cat {file} && rm -f {file} && grep CapEff /proc/self/status");
    let output = Rig::as_the_agent().args(["sh", "-c", &script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("captured\nCapEff:\t"), "{text}");
    let held = u64::from_str_radix(text.trim().rsplit('\t').next().unwrap(), 16).unwrap();
    assert_eq!(held & (1 << 1), 0, "CAP_DAC_OVERRIDE was there after all");
    container.terminates(143);
}
