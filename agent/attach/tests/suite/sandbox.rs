//! What a converter that was taken over can do: a script in its place tries it. The sandboxes are
//! made with the rights of the node's agent, with those of an ordinary user, and in a container
//! whose /proc is covered in part.
//!
//! Needs root; says so and passes without.

mod memory;
mod rig;
mod work;

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::chown;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use flopwatch_attach::reexec::{End, Output};
use flopwatch_attach::sandbox::users::Users;
use flopwatch_attach::sandbox::{self, MemoryBound, Sandboxed, product};
use rig::{CAPABILITIES, ORDINARY, Rig, USER, running_as, text, wait_for};

/// What a curious tool must have said.
fn assert_saw_only_its_own(message: &str) {
    assert!(
        !message.contains("the key") && !message.contains("another's"),
        "{message}"
    );
    assert!(
        !message.contains("reads ") && !message.contains("sees /etc"),
        "{message}"
    );
    assert!(
        !message.contains("entry secret") && !message.contains("entry other"),
        "{message}"
    );
    assert!(message.contains("foreign\n"), "its own input: {message}");
    assert!(message.matches("read-only").count() >= 2, "{message}");
}

#[test]
fn a_converter_sees_no_process_no_key_and_no_other_capture() {
    let Some(rig) = Rig::new() else { return };
    let (output, message) = rig.run(&rig.curious());
    assert!(output.missing.is_empty(), "{message}");
    assert_saw_only_its_own(&message);
    assert!(message.contains("process reexec"), "{message}");
    let processes: Vec<&str> = message
        .lines()
        .filter_map(|line| line.strip_prefix("process "))
        .collect();
    // The sandbox's first process, the shell, and what the shell runs to ask.
    assert!(
        (2..=4).contains(&processes.len()) && processes.iter().all(|name| ["reexec", "sh", "cat"].contains(name)),
        "{message}"
    );
    assert_eq!(std::fs::read_to_string(rig.at("spool/own/work/made")).unwrap(), "out\n");
    assert_eq!(std::fs::read_to_string(rig.at("spool/own/input")).unwrap(), "foreign\n");
}

#[test]
fn a_sandbox_that_was_made_ready_before_its_tool_was_known_is_as_closed_as_any() {
    let Some(rig) = Rig::new() else { return };
    let curious = rig.curious();
    let frame = Sandboxed {
        command: Vec::new(),
        readable: Vec::new(),
        ..curious.clone()
    };
    let (cancelled, _cancel) = std::io::pipe().unwrap();
    let ran = sandbox::run_ahead(&rig.agent(), &frame, || Some((curious, cancelled.into())));
    let output = ran.unwrap().unwrap();
    let message = text(&output);
    assert!(output.missing.is_empty(), "{message}");
    assert_saw_only_its_own(&message);
    assert_eq!(std::fs::read_to_string(rig.at("spool/own/work/made")).unwrap(), "out\n");
}

#[test]
fn a_sandbox_that_was_made_ready_for_no_tool_runs_none() {
    let Some(rig) = Rig::new() else { return };
    let frame = rig.tool("touch made");
    assert!(sandbox::run_ahead(&rig.agent(), &frame, || None).unwrap().is_none());
    assert!(!rig.at("spool/own/work/made").exists());
}

#[test]
fn a_sandbox_that_waits_for_its_tool_ends_with_whoever_started_it() {
    let Some(rig) = Rig::new() else { return };
    let frame = serde_json::to_string(&rig.tool("touch made")).unwrap();
    let (orders, waiting) = UnixStream::pair().unwrap();
    let mut outside = Command::new("setpriv")
        .args([&format!("--bounding-set={CAPABILITIES}"), "--inh-caps=-all"])
        .arg(rig.helper)
        .args(["sandbox-ahead", &frame])
        .stdin(OwnedFd::from(waiting))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    drop(orders);
    let ended = wait_for("the end of what waits", || outside.try_wait().unwrap());
    assert_eq!(ended.code(), Some(1));
    assert!(!rig.at("spool/own/work/made").exists());
}

#[test]
fn a_converter_cannot_end_a_process_even_of_its_own_user() {
    let Some(rig) = Rig::new() else { return };
    // Distroless "nonroot": our own controller and gateway too.
    let mut other = Command::new("/bin/sleep");
    let mut other = other.arg("600").uid(65_532).gid(65_532).spawn().unwrap();
    let script = format!(
        "kill -9 {}; cat /proc/{}/environ; kill -9 -1; echo tried",
        other.id(),
        other.id()
    );
    let tool = rig.tool_as(65_532, &script);
    let output = sandbox::run(&rig.agent(), &tool).unwrap();
    let alive = other.try_wait().unwrap().is_none();
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(alive, "{}", text(&output));
}

#[test]
fn a_converter_reaches_no_network_and_no_socket_of_the_machine() {
    let Some(rig) = Rig::new() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let name = format!("flopwatch-test-{}", std::process::id());
    let _unnamed = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let script = format!(
        "python3 -c '
import socket
for family, address in [(socket.AF_INET, (\"127.0.0.1\", {port})), (socket.AF_INET6, (\"::1\", {port})), \
         (socket.AF_UNIX, \"\\0{name}\"), (socket.AF_NETLINK, (0, 0))]:
    try:
        socket.socket(family, socket.SOCK_STREAM if family != socket.AF_NETLINK else socket.SOCK_RAW).connect(address)
        print(\"reached\", family)
    except OSError as error:
        print(\"refused\", error)
'"
    );
    let (_, message) = rig.run(&rig.tool(&script));
    assert!(
        !message.contains("reached") && message.lines().filter(|line| line.starts_with("refused")).count() == 4,
        "{message}"
    );
}

#[test]
fn a_converter_starts_no_more_processes_than_its_bound() {
    let Some(rig) = Rig::new() else { return };
    let script = "python3 -c '
import os, time
started = 0
try:
    for _ in range(200):
        if os.fork() == 0:
            time.sleep(60)
        started += 1
except BlockingIOError as error:
    print(\"refused after\", started)
'";
    // No other test's: what runs as it counts.
    let mut tool = rig.tool_as(USER + 1, script);
    tool.processes = 16;
    let output = sandbox::run(&rig.agent(), &tool).unwrap();
    // The first process, the shell and Python are three of the sixteen.
    let message = text(&output);
    assert!(
        message.contains("refused after 13") || message.contains("refused after 14"),
        "{message}"
    );
    assert_eq!(running_as(USER + 1).len(), 0, "they end with it");
}

#[test]
fn a_converter_gets_no_namespace_no_mount_no_trace_and_no_device() {
    let Some(rig) = Rig::new() else { return };
    let script = "unshare -U true && echo got a user namespace
        unshare -m true && echo got a mount namespace
        mount -t tmpfs none /tmp && echo mounted
        chroot / true && echo got another root
        mknod null c 1 3 && echo made a device
        python3 -c '
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for name, number in [(\"ptrace\", 101), (\"process_vm_readv\", 310), (\"bpf\", 321), (\"keyctl\", 250), (\"io_uring_setup\", 425)]:
    libc.syscall(number, 0, 0, 0, 0, 0)
    print(name, ctypes.get_errno())
'
        grep -E '^(Uid|Gid|Groups|CapPrm|CapBnd|NoNewPrivs|Seccomp|SigBlk):' /proc/self/status; hostname; umask";
    let (_, message) = rig.run(&rig.tool(script));
    assert!(
        !message.contains("got a") && !message.contains("mounted") && !message.contains("made a"),
        "{message}"
    );
    for name in ["ptrace", "process_vm_readv", "bpf", "keyctl", "io_uring_setup"] {
        assert!(message.contains(&format!("{name} 1\n")), "{name}: {message}");
    }
    for line in [
        &format!("Uid:\t{USER}\t{USER}\t{USER}\t{USER}\n"),
        &format!("Gid:\t{USER}\t{USER}\t{USER}\t{USER}\n"),
        "Groups:\t \n",
        "CapPrm:\t0000000000000000\n",
        "CapBnd:\t0000000000000000\n",
        "NoNewPrivs:\t1\n",
        "Seccomp:\t2\n",
        "SigBlk:\t0000000000000000\n",
        "sandbox\n",
    ] {
        assert!(message.contains(line), "{line}: {message}");
    }
}

#[test]
fn two_converters_at_once_have_users_of_their_own() {
    let Some(rig) = Rig::new() else { return };
    let users = Users::range(74_400..=74_403);
    let (agent, rig) = (rig.agent(), &rig);
    let tools: Vec<Output> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..2)
            .map(|at| {
                let user = users.lease().unwrap();
                let (agent, directory) = (agent.clone(), rig.at(&format!("spool/{at}")));
                std::fs::create_dir(&directory).unwrap();
                chown(&directory, Some(user.id()), Some(user.id())).unwrap();
                let tool = Sandboxed {
                    user: user.id(),
                    directory,
                    ..rig.tool("id -u; id -g; id -G; sleep 2; ls -A ..")
                };
                scope.spawn(move || {
                    let output = sandbox::run(&agent, &tool).unwrap();
                    drop(user);
                    output
                })
            })
            .collect();
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (at, output) in tools.iter().enumerate() {
        let user = 74_400 + at;
        let own = format!("{user}\n{user}\n{user}\n{at}\nown\n");
        assert_eq!(String::from_utf8_lossy(&output.stdout), own, "{}", text(output));
    }
}

#[test]
fn what_a_converter_plants_is_refused_with_its_reason() {
    let Some(rig) = Rig::new() else { return };
    let script = "ln -s /etc/shadow timeline.h5; echo x > summary.json; ln summary.json other; mkfifo capture.nsys-rep; mkdir folder
        ln ../input linked-input 2>&1; mknod device b 8 0 2>&1; true";
    let output = sandbox::run(&rig.agent(), &rig.tool(script)).unwrap();
    assert!(output.success(), "{}", text(&output));
    let folder = rig.at("spool/own/work");
    for (name, reason) in [
        ("timeline.h5", "is a symbolic link"),
        ("summary.json", "has 2 names"),
        ("capture.nsys-rep", "is a pipe"),
        ("folder", "is a folder"),
        ("linked-input", "is not there"),
        ("device", "is not there"),
    ] {
        let refused = product::open(&folder, Path::new(name), Some(USER))
            .unwrap_err()
            .to_string();
        assert!(refused.contains(reason), "{refused}");
    }
}

#[test]
fn all_of_a_converter_ends_with_whoever_started_it() {
    let Some(rig) = Rig::new() else { return };
    let user = USER + 2;
    let tool = rig.tool_as(user, "setsid sleep 600 & sleep 600");
    let (_reports, reporting) = std::io::pipe().unwrap();
    // As the agent starts it, without the part that looks after it.
    let mut outside = Command::new("setpriv")
        .args([&format!("--bounding-set={CAPABILITIES}"), "--inh-caps=-all"])
        .arg(rig.helper)
        .args(["sandbox", &serde_json::to_string(&tool).unwrap()])
        .stdin(reporting)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the tool's processes", || (running_as(user).len() == 4).then_some(()));
    outside.kill().unwrap();
    outside.wait().unwrap();
    wait_for("the end of all", || running_as(user).is_empty().then_some(()));
}

#[test]
fn a_converter_runs_at_the_lower_of_its_own_priority_and_its_agents() {
    let Some(rig) = Rig::new() else { return };
    let agent = format!("setpriv --bounding-set={CAPABILITIES} --inh-caps=-all HELPER");
    let own = rustix::process::getpriority_process(None).unwrap();
    for (name, line, nice) in [
        ("usual", format!("exec {agent}"), own.max(10)),
        ("yielding", format!("exec nice -n 19 {agent}"), 19),
    ] {
        let output = sandbox::run(&rig.started_by(name, &line), &rig.tool("nice")).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            format!("{nice}\n"),
            "{name}: {}",
            text(&output)
        );
    }
}

#[test]
fn how_a_converter_ended_is_told_truly() {
    let Some(rig) = Rig::new() else { return };
    let agent = rig.agent();
    let end = |script: &str| sandbox::run(&agent, &rig.tool(script)).unwrap().end;
    assert_eq!(end("exit 5"), End::Exited(5));
    assert_eq!(end("kill -9 $$"), End::Signaled(9));
    assert_eq!(end("kill -SEGV $$"), End::Signaled(11));
    assert_eq!(end("kill -35 $$"), End::Signaled(35));
    // An orphan that ends first is not the tool.
    assert_eq!(end("(sh -c 'sleep 0.1; exit 3' &); sleep 0.5; exit 4"), End::Exited(4));
    let mut unknown = rig.tool("");
    unknown.command = vec!["/usr/bin/no-such-converter".into()];
    let error = sandbox::run(&agent, &unknown).unwrap_err().to_string();
    assert!(error.contains("no-such-converter"), "{error}");
    // The kernel ends the first process where memory runs short: it says so as if it had been the
    // tool.
    let user = USER + 3;
    let tool = rig.tool_as(user, "exec sleep 600");
    let ended = std::thread::scope(|scope| {
        let running = scope.spawn(|| sandbox::run(&agent, &tool).unwrap());
        let first = wait_for("the first process", || {
            let found = running_as(user);
            (found.len() == 2).then(|| found.into_iter().min()).flatten()
        });
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(first), nix::sys::signal::Signal::SIGKILL).unwrap();
        running.join().unwrap()
    });
    assert_eq!(ended.end, End::Signaled(9));
}

#[test]
fn a_readable_folder_may_hold_the_tools_own() {
    let Some(rig) = Rig::new() else { return };
    let spool = rig.at("spool");
    std::fs::write(spool.join("other/file"), "beside\n").unwrap();
    let script = format!(
        "cd {}; cat other/file; touch own/planted 2>&1 || echo refused; echo mine > own/work/made && cat own/work/made; ls own; ls -A own/work",
        spool.display()
    );
    let tool = Sandboxed {
        readable: vec![spool.clone()],
        ..rig.tool(&script)
    };
    // With folders of other file systems beside the tool's own and on the way to it, too.
    let mounts = format!(
        "exec unshare -m sh -c 'set -e; cd {}; mount -t tmpfs none other; echo beside > other/file; mount -t tmpfs none own; mkdir own/work; \
         chown {USER}:{USER} own/work; MADE' sh \"$@\"",
        spool.display()
    );
    let agent = format!("exec setpriv --bounding-set={CAPABILITIES} --inh-caps=-all HELPER");
    for (name, line, left) in [
        ("agent", agent.clone(), "input\nwork\n"),
        ("mounted", mounts.replace("MADE", &agent), "work\n"),
        ("ordinary", ORDINARY.to_owned(), "input\nwork\n"),
        ("mounted-ordinary", mounts.replace("MADE", ORDINARY), "work\n"),
    ] {
        let tool = Sandboxed {
            whole: !name.ends_with("ordinary"),
            ..tool.clone()
        };
        let output = sandbox::run(&rig.started_by(name, &line), &tool).unwrap();
        let message = text(&output);
        if output.missing.len() > 1 {
            println!("skipped: this system gives ordinary users no namespaces: {message}");
            continue;
        }
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let told = told
            .lines()
            .filter(|line| !line.starts_with("touch:"))
            .map(|line| format!("{line}\n"));
        assert_eq!(
            told.collect::<String>(),
            format!("beside\nrefused\nmine\n{left}made\n"),
            "{name}: {message}"
        );
    }
    assert!(!spool.join("own/planted").exists());
}

#[test]
fn a_readable_folder_with_a_link_to_the_tools_own_is_refused_before_the_start() {
    let Some(rig) = Rig::new() else { return };
    std::os::unix::fs::symlink(rig.at("spool/own"), rig.at("tls/linked")).unwrap();
    let tool = Sandboxed {
        directory: rig.at("tls/linked/work"),
        readable: vec![rig.at("tls")],
        ..rig.tool("echo started")
    };
    let refused = sandbox::run(&rig.agent(), &tool).unwrap_err().to_string();
    assert!(refused.contains("behind a link"), "{refused}");
    let left: Vec<_> = std::fs::read_dir(rig.at("spool/own/work")).unwrap().collect();
    assert!(left.is_empty(), "nothing was made where the link leads: {left:?}");
}

#[test]
fn an_ordinary_users_converter_sees_only_its_own_too_or_what_lacks_is_told() {
    let Some(rig) = Rig::new() else { return };
    let ordinary = rig.started_by("ordinary", ORDINARY);
    let refused = sandbox::run(&ordinary, &rig.curious()).unwrap_err().to_string();
    assert!(refused.contains("a user of its own"), "whole means whole: {refused}");
    let tool = Sandboxed {
        whole: false,
        ..rig.curious()
    };
    let output = sandbox::run(&ordinary, &tool).unwrap();
    let message = text(&output);
    assert!(output.missing[0].starts_with("a user of its own"), "{message}");
    if output.missing.len() == 1 {
        assert_saw_only_its_own(&message);
    } else {
        println!("skipped: this system gives ordinary users no namespaces: {message}");
    }
}

#[test]
fn a_child_with_a_gpu_names_its_threads_and_has_nothing_of_the_machines_in_proc_to_write_to() {
    let Some(rig) = Rig::new() else { return };
    let script = "echo named >/proc/self/task/$$/comm && cat /proc/$$/comm
        for part in bus fs irq sys sysrq-trigger; do
          if [ -e /proc/$part ]; then grep -q \" /proc/$part ro,\" /proc/self/mountinfo || echo open $part; fi; done
        echo no >/proc/sys/kernel/core_pattern || echo read-only";
    let tool = Sandboxed {
        gpu: true,
        memory: MemoryBound::Data,
        ..rig.tool(script)
    };
    let (output, message) = rig.run(&tool);
    assert!(output.missing.is_empty(), "{message}");
    assert!(message.contains("named\n") && !message.contains("open "), "{message}");
    assert!(message.contains("read-only"), "{message}");
    let plain = sandbox::run(&rig.agent(), &rig.tool(script)).unwrap();
    assert!(!text(&plain).contains("named\n"), "{}", text(&plain));
}

#[test]
fn where_a_container_covers_parts_of_proc_a_converter_has_none() {
    let Some(rig) = Rig::new() else { return };
    let covered = format!("exec unshare -m sh -c 'mount --bind /dev/null /proc/keys; {ORDINARY}' sh \"$@\"");
    let covered = rig.started_by("covered", &covered);
    let tool = Sandboxed {
        whole: false,
        ..rig.tool("ls -A /proc; cat ../input; echo done")
    };
    let output = sandbox::run(&covered, &tool).unwrap();
    let message = text(&output);
    assert!(
        output.missing.iter().any(|missing| missing.contains("/proc")),
        "{message}"
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "foreign\ndone\n", "{message}");
}

#[test]
fn root_without_the_agents_rights_runs_what_it_can_and_says_what_lacks() {
    let Some(rig) = Rig::new() else { return };
    // As a container's root: with the right to give files rights, by which it may make namespaces,
    // and without.
    for (rights, missing) in [("-sys_admin", 2), ("-sys_admin,-setfcap", 3)] {
        let line = format!("exec setpriv --bounding-set={rights} --inh-caps=-all HELPER");
        let root = rig.started_by("root", &line);
        let tool = Sandboxed {
            whole: false,
            ..rig.tool_as(
                0,
                "grep -E '^(CapPrm|CapBnd|Seccomp)' /proc/self/status; echo x > made && echo wrote",
            )
        };
        let output = sandbox::run(&root, &tool).unwrap();
        let message = text(&output);
        assert!(output.missing.len() <= missing, "{message}");
        for line in [
            "CapPrm:\t0000000000000000\n",
            "CapBnd:\t0000000000000000\n",
            "Seccomp:\t2\n",
            "wrote\n",
        ] {
            assert!(message.contains(line), "{line}: {message}");
        }
    }
}
