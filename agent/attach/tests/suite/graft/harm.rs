//! What a prepared workload must never meet: children that are not its own, a wait without end, a
//! crash loop of our making.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use flopwatch_attach::process::Procfs;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::container::{Container, PATIENT, Rig, Spec, Tools, WORKLOAD, rig, wait_for, wait_until};
use super::{graft, grafted, members};

/// The container's processes that were started as `launcher keeper`, the outermost first.
pub(crate) fn supervisors(init: i32) -> Vec<i32> {
    let procfs = Procfs::default();
    let mut found: Vec<i32> = members(init)
        .into_iter()
        .filter(|pid| {
            procfs
                .command_line(*pid)
                .is_ok_and(|words| words.get(1).map(String::as_str) == Some("keeper"))
        })
        .collect();
    let parent = |pid: i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        line.and_then(|pid| pid.trim().parse::<i32>().ok())
    };
    if let [first, second] = found[..]
        && parent(first) == Some(second)
    {
        found.swap(0, 1);
    }
    found
}

fn python(rig: &Rig, prepared: bool, program: &str) -> (Container, String) {
    let command = ["/usr/bin/python3", "-u", "-c", program];
    let mut container = Spec::of(&command).launcher(prepared.then_some(&PATIENT)).start(rig);
    if prepared {
        grafted(rig, &container);
    }
    container.end();
    let stdout = container.stdout();
    (container, stdout)
}

#[test]
fn a_session_that_is_asked_to_end_does_and_the_workload_runs_on() {
    let Some(rig) = rig() else { return };
    let mut container = Container::workload(rig);
    let target = grafted(rig, &container);
    // It hangs where nothing of it reads what it is asked.
    let agent = members(container.init().pid)
        .into_iter()
        .find(|pid| {
            let words = Procfs::default().command_line(*pid).unwrap_or_default();
            words.iter().any(|word| word == "--start-agent")
        })
        .unwrap();
    kill(Pid::from_raw(agent), Signal::SIGSTOP).unwrap();
    target.end_hanging_session().unwrap();
    wait_until("the session's end", || members(container.init().pid).is_empty());
    target.end_hanging_session().unwrap();
    container.reports();
    container.terminates(0);
}

#[test]
fn a_killed_supervisor_leaves_the_workload_nothing_to_wait_for() {
    let Some(rig) = rig() else { return };
    let mut container = Container::workload(rig);
    grafted(rig, &container);
    container.reports();
    let init = container.init().pid;
    let ours = supervisors(init);
    assert_eq!(ours.len(), 2, "a reaper and its supervisor");
    assert!(members(init).len() > 3, "the profiler runs beside the workload");
    kill(Pid::from_raw(ours[1]), Signal::SIGKILL).unwrap();
    wait_until("the end of all that the supervisor kept", || members(init).is_empty());
    // Ten more reports of the workload, each with what waitpid answers.
    container.works_for(Duration::from_secs(1));
    container.terminates(0);
    let stdout = container.stdout();
    let mut reports = stdout.lines().filter(|line| line.starts_with("t="));
    assert!(reports.all(|line| line.ends_with("wait=ECHILD")), "{stdout}");
}

#[test]
fn a_killed_reaper_takes_everything_along() {
    let Some(rig) = rig() else { return };
    let mut container = Container::workload(rig);
    grafted(rig, &container);
    container.reports();
    let init = container.init().pid;
    let ours = supervisors(init);
    kill(Pid::from_raw(ours[0]), Signal::SIGKILL).unwrap();
    wait_until("the end of all that the reaper had", || members(init).is_empty());
    container.works_for(Duration::from_millis(500));
    container.terminates(0);
    // The supervisor itself may have been met once; after that the workload is childless again.
    let stdout = container.stdout();
    let met = stdout
        .lines()
        .filter(|line| line.starts_with("t=") && !line.ends_with("wait=ECHILD"))
        .count();
    assert!(met <= 2, "{stdout}");
    let last = stdout.lines().rfind(|line| line.starts_with("t=")).unwrap();
    assert!(last.ends_with("wait=ECHILD"), "{last}");
}

/// Starts three children and waits for children until there are none.
const WAITS: &str = "
import os, time
for code in range(3):
    if os.fork() == 0:
        time.sleep(0.3)
        os._exit(code)
met = []
while True:
    try:
        met.append(os.waitstatus_to_exitcode(os.wait()[1]))
    except ChildProcessError:
        break
print('met', sorted(met))
";

#[test]
fn a_first_process_that_waits_until_there_are_no_children_ends_as_it_does_unprepared() {
    let Some(rig) = rig() else { return };
    for prepared in [false, true] {
        let began = Instant::now();
        let (_, stdout) = python(rig, prepared, WAITS);
        assert_eq!(stdout, "met [0, 1, 2]\n", "prepared: {prepared}");
        assert!(began.elapsed() < Duration::from_mins(1), "{:?}", began.elapsed());
    }
}

/// Leaves an orphan that ends, reaps nothing, and lists what became of its children.
const ZOMBIES: &str = "
import os, time
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(0.2)
        os._exit(0)
    os._exit(0)
time.sleep(1)
for pid in sorted(int(name) for name in os.listdir('/proc') if name.isdigit()):
    try:
        state = open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()
    except OSError:
        continue
    if state[1] == '1':
        print('child', state[0])
";

#[test]
fn zombies_of_a_first_process_that_does_not_reap_are_its_own_and_no_more() {
    let Some(rig) = rig() else { return };
    for prepared in [false, true] {
        let (_, stdout) = python(rig, prepared, ZOMBIES);
        // The child and the orphan that it left.
        assert_eq!(stdout, "child Z\nchild Z\n", "prepared: {prepared}");
    }
}

/// A library that ends the first process of a container as soon as it is loaded.
fn crashing_library(to: &Path) {
    let source = "#include <stdlib.h>\n#include <unistd.h>\n\
                  __attribute__((constructor)) static void crash(void) { if (getpid() == 1) abort(); }\n";
    let file = to.with_extension("c");
    std::fs::write(&file, source).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([to, &file])
        .status();
    assert!(compiled.unwrap().success());
}

#[test]
fn a_crash_loop_that_the_preloaded_library_causes_ends_by_itself() {
    let Some(rig) = rig() else { return };
    let mut folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("tools")).unwrap();
    crashing_library(&folder.path().join("tools/crash.so"));
    // The session's launch, as far as the graft sees it: a program around the stub that adds to its
    // environment.
    let tools = "#!/bin/sh\n\
                 [ \"$1\" = launch ] || exit 0\n\
                 while [ \"$1\" != /flopwatch/tools/launcher ]; do shift; done\n\
                 LD_PRELOAD=/flopwatch/tools/crash.so exec \"$@\"\n";
    let mut lives = Vec::new();
    for _ in 0..6 {
        let mut container = Container::start_in(
            rig,
            &Spec::of(&[WORKLOAD, "--print-env"]).tools(Tools::Script(tools)),
            folder,
        );
        let waiting = wait_for("the launcher's decision to wait or not", || {
            let has = |name: &str| container.file("run").join(name).exists();
            (has("waiting") || has("state")).then(|| has("waiting"))
        });
        if waiting {
            graft(rig, &container);
        }
        let code = container.end().code();
        lives.push((container.state().contains("\"grafted\":true"), code));
        folder = container.finish();
        std::fs::remove_file(folder.path().join("run/state")).unwrap();
    }
    // By a signal, so without a code.
    let (dies, survives) = ((true, None), (false, Some(0)));
    assert_eq!(lives, [dies, survives, dies, survives, survives, survives]);
}
