//! Programs that start when the profiler cannot be reached: its library would end them before their
//! first instruction.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::Pid;
use tempfile::TempDir;

use super::container::{Container, Rig, Spec, WORKLOAD, rig, wait_until};
use super::harm::supervisors;
use super::{grafted, members, options};

/// Waits until it is told to go on, then starts programs of every kind and says what each of them
/// sees of itself.
const STARTS: &str = r#"
echo ready
read -r go < /flopwatch/run/go
LOOK='import os, sys
print(sys.argv, sorted(os.environ.items()))
print(open("/proc/self/comm").read().strip(), sorted(os.listdir("/proc/self/fd")), os.getcwd())
signals = [line.split() for line in open("/proc/self/status") if line.startswith(("SigBlk", "SigIgn", "SigCgt"))]
# The C library keeps two of the real-time signals for its own threads.
print([(name, hex(int(mask, 16) & 0x7fffffff)) for name, mask in signals], os.umask(0o22))
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("no children")
if os.fork() == 0:
    os._exit(3)
print("forked", os.waitstatus_to_exitcode(os.wait()[1]))'
EMPTY= python3 -c "$LOOK" "a b" "" ä
/flopwatch/tools/script one "two words"
cd /tmp; ../flopwatch/tools/script three
/lib64/ld-linux-x86-64.so.2 /bin/echo by the loader
head -c 3 < /flopwatch/tools/script; echo
sh -c 'exit 5'; echo "exit code $?"
sh -c 'kill -9 $$'; echo "exit code $?"
echo from a pipe | cat
/absent; echo "exit code $?"
exec -a another /bin/sh -c 'echo "$0 as PID $$"; exit 6'
"#;

/// A folder with the script that [`STARTS`] runs and the pipe that it waits at.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(at("tools")).unwrap();
    std::fs::create_dir_all(at("run")).unwrap();
    let script = "#!/bin/sh -e\necho \"$0 $*\"; cat /proc/$$/comm\n";
    std::fs::write(at("tools/script"), script).unwrap();
    std::fs::set_permissions(at("tools/script"), PermissionsExt::from_mode(0o755)).unwrap();
    nix::unistd::mkfifo(&at("run/go"), Mode::from_bits_truncate(0o666)).unwrap();
    std::fs::set_permissions(at("run/go"), PermissionsExt::from_mode(0o666)).unwrap();
    folder
}

fn release_held(container: &Container) {
    wait_until("the workload", || container.stdout().starts_with("ready\n"));
    std::fs::OpenOptions::new()
        .write(true)
        .open(container.file("run/go"))
        .unwrap()
        .write_all(b"go\n")
        .unwrap();
}

/// Kills the supervisor, whose reaper then ends the session and itself.
fn kill_the_session(init: i32) {
    kill(Pid::from_raw(supervisors(init)[1]), Signal::SIGKILL).unwrap();
    wait_until("the end of all that the supervisor kept", || members(init).is_empty());
}

fn starts(rig: &Rig, launcher: Option<&[&str]>) -> Container {
    Container::start_in(
        rig,
        &Spec::of(&["/bin/bash", "-c", STARTS]).launcher(launcher),
        folder(),
    )
}

/// Starts it grafted and waits until it is ready.
fn ready(rig: &Rig) -> Container {
    let container = starts(rig, Spec::default().launcher);
    grafted(rig, &container);
    wait_until("the workload", || container.stdout().starts_with("ready\n"));
    container
}

#[test]
fn programs_that_start_after_the_session_has_died_start_as_they_do_unprepared() {
    let Some(rig) = rig() else { return };
    let mut plain = starts(rig, None);
    release_held(&plain);
    assert_eq!(plain.end().code(), Some(6));

    let mut container = ready(rig);
    kill_the_session(container.init().pid);
    release_held(&container);
    let code = container.end().code();
    assert_eq!(container.stdout(), plain.stdout());
    assert_eq!(code, Some(6));
    assert!(container.stdout().ends_with("another as PID 1\n"));
    let stderr = std::fs::read_to_string(container.file("out/stderr")).unwrap();
    assert!(
        stderr.contains("flopwatch: the program starts without the profiler\n"),
        "nothing had to be started over: {stderr}"
    );
}

#[test]
fn a_session_that_dies_before_the_first_instruction_costs_the_workload_nothing() {
    let Some(rig) = rig() else { return };
    let mut container = Spec::of(&[WORKLOAD, "--print-env", "--fail-code", "4"]).start(rig);
    let target = container.target(rig);
    let launcher = Pid::from_raw(container.init().pid);
    // Halted, so that the session is there and gone again before the launcher takes it.
    target.start_session(&options()).unwrap();
    kill(launcher, Signal::SIGSTOP).unwrap();
    wait_until("the session's environment", || container.file("run/env").exists());
    kill_the_session(launcher.as_raw());
    kill(launcher, Signal::SIGCONT).unwrap();
    assert_eq!(container.end().code(), Some(4));
    assert!(container.state().contains("\"grafted\":true"), "{}", container.state());
    assert_eq!(
        container.stdout(),
        "start pid=1 wait=ECHILD\nenv A=1\nenv PATH=/usr/bin:/bin\n",
        "once, and with its own environment"
    );
}

#[test]
fn a_session_that_does_not_answer_does_not_hold_a_program_up_for_ever() {
    let Some(rig) = rig() else { return };
    let mut container = ready(rig);
    let init = container.init().pid;
    stand_still(init);
    let environment = std::fs::read(format!("/proc/{init}/environ")).unwrap();
    let output = beside(init, &["--net"], &environment, &["/bin/echo", "started"]);
    assert_eq!(output, "started\n");
    for pid in members(init) {
        kill(Pid::from_raw(pid), Signal::SIGCONT).unwrap();
    }
    release_held(&container);
    assert_eq!(container.end().code(), Some(6));
}

/// Stops whatever lives in the container beside its first process, also what one of these starts
/// meanwhile.
fn stand_still(init: i32) {
    let mut stopped = Vec::new();
    loop {
        let mut found = members(init);
        found.sort_unstable();
        if found == stopped {
            return;
        }
        for pid in &found {
            match kill(Pid::from_raw(*pid), Signal::SIGSTOP) {
                // It ended by itself.
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(error) => panic!("{error}"),
            }
        }
        stopped = found;
    }
}

#[test]
fn a_program_in_a_network_of_its_own_starts_beside_a_session_that_lives() {
    let Some(rig) = rig() else { return };
    let mut container = ready(rig);
    let init = container.init().pid;
    let environment = std::fs::read(format!("/proc/{init}/environ")).unwrap();
    // As a sandbox that the workload makes for a child of its own would have it: everything but the
    // network is the container's.
    let output = beside(init, &[], &environment, &["/bin/echo", "started"]);
    assert_eq!(output, "started\n");
    release_held(&container);
    assert_eq!(container.end().code(), Some(6));
    let stderr = std::fs::read_to_string(container.file("out/stderr")).unwrap();
    assert!(
        !stderr.contains("flopwatch:"),
        "beside a session that lives nothing starts over: {stderr}"
    );
}

/// Runs a program in the container's namespaces, of the network only where asked for, with an
/// environment as /proc shows it.
fn beside(init: i32, network: &[&str], environment: &[u8], command: &[&str]) -> String {
    let entries = environment.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    let entries: Vec<&str> = entries.map(|entry| std::str::from_utf8(entry).unwrap()).collect();
    let mut enter = Command::new("nsenter");
    enter
        .args(["--target", &init.to_string(), "--mount", "--pid", "--ipc"])
        .args(network);
    enter.args([
        "--",
        "setpriv",
        "--reuid",
        "1234",
        "--regid",
        "1234",
        "--clear-groups",
        "env",
        "-i",
    ]);
    let output = enter.args(entries).args(command).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(
        stderr.ends_with("flopwatch: the program starts without the profiler\n"),
        "{stderr}"
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_program_that_ends_by_itself_with_an_error_is_not_started_again() {
    let Some(rig) = rig() else { return };
    let early = "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
        __attribute__((constructor)) static void early(void) { write(1, \"once\\n\", 5); exit(1); }\n\
        int main(void) { return 0; }\n";
    let late = "#include <stdio.h>\n#include <stdlib.h>\n\
        static void last(void) { puts(\"last\"); }\n\
        int main(void) { atexit(last); puts(\"once\"); exit(1); }\n";
    for (source, expected) in [(early, "once\n"), (late, "once\nlast\n")] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("tools")).unwrap();
        compile(source, &folder.path().join("tools/program"));
        let mut container = Container::start_in(rig, &Spec::of(&["/flopwatch/tools/program"]), folder);
        grafted(rig, &container);
        assert_eq!(container.end().code(), Some(1));
        assert_eq!(container.stdout(), expected);
    }
}

fn compile(source: &str, to: &Path) {
    let file = to.with_extension("c");
    std::fs::write(&file, source).unwrap();
    let compiled = Command::new("cc").arg(&file).arg("-o").arg(to).status();
    assert!(compiled.unwrap().success());
}
