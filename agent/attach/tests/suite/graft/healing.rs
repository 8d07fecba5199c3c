//! A pod's shared memory after a process of the profiler was killed in it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flopwatch_attach::nsys::SessionState;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::container::{Container, Rig, Spec, WORKLOAD, pause, rig, wait_until};
use super::{SESSION, graft, grafted, members, options};

/// Within this time a start that nobody strikes is grafted.
const HEALING_TIMEOUT: Duration = Duration::from_secs(10);

/// Shared memory that outlives a container, as a pod's does.
fn shared_memory() -> tempfile::TempDir {
    // On a file system in memory, as a pod's is.
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    std::fs::set_permissions(memory.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
    memory
}

/// Files in shared memory, by what their names begin with.
fn names(memory: &Path) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(memory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let kind = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        *found.entry(kind.to_owned()).or_default() += 1;
    }
    found
}

/// A number that looks random, the same at each run.
fn draw(number: usize) -> usize {
    fastrand::Rng::with_seed(u64::try_from(number).unwrap()).usize(..)
}

/// The profiler's processes in a container, and their programs' names.
fn profilers(container: &Container) -> Vec<(i32, String)> {
    let program = |pid: &i32| -> Option<PathBuf> { std::fs::read_link(format!("/proc/{pid}/exe")).ok() };
    members(container.init().pid)
        .into_iter()
        .filter_map(|pid| Some((pid, program(&pid)?.file_name()?.to_string_lossy().into_owned())))
        .filter(|(_, name)| name.starts_with("nsys"))
        .collect()
}

/// Starts a container and has one process of the profiler killed at some moment. However its start
/// goes, the workload runs.
fn struck(rig: &Rig, spec: &Spec<'_>, number: usize) -> String {
    let mut container = spec.start(rig);
    let target = container.target(rig);
    target.start_session(&options()).unwrap();
    let drawn = draw(number);
    let until = Instant::now() + Duration::from_millis(u64::try_from(drawn % 1500).unwrap());
    let mut killed = String::from("nobody");
    while container.unshare.try_wait().unwrap().is_none() {
        if Instant::now() >= until {
            let found = profilers(&container);
            if !found.is_empty() {
                let (pid, name) = &found[drawn / 1500 % found.len()];
                kill(Pid::from_raw(*pid), Signal::SIGKILL).ok();
                killed.clone_from(name);
                break;
            }
        }
        pause(Duration::from_millis(5));
    }
    wait_until("the workload", || !container.stdout().is_empty());
    container.signal(Signal::SIGTERM);
    assert_eq!(container.end().code(), Some(0), "start {number}, {killed} was killed");
    killed
}

#[test]
fn whatever_process_of_the_profiler_is_killed_the_next_start_is_grafted() {
    let Some(rig) = rig() else { return };
    let count = std::env::var("FLOPWATCH_KILLS").map_or(10, |count| count.parse().unwrap());
    let memory = shared_memory();
    let spec = Spec::of(&[WORKLOAD]).shared_memory(Some(memory.path()));
    let mut killed: BTreeMap<String, usize> = BTreeMap::new();
    let mut waited = Vec::new();
    for number in 0..count {
        if number % 2 == 0 {
            *killed.entry(struck(rig, &spec, number)).or_default() += 1;
            continue;
        }
        let mut container = spec.start(rig);
        let start = Instant::now();
        let (target, state) = graft(rig, &container);
        assert!(
            state.grafted,
            "start {number}: {state:?}, {killed:?}, {:?}",
            names(memory.path())
        );
        assert!(
            start.elapsed() < HEALING_TIMEOUT,
            "start {number}: {:?}",
            start.elapsed()
        );
        waited.push(start.elapsed());
        assert_eq!(target.session_state(SESSION).unwrap(), SessionState::Idle);
        // What the killed ones left has been removed: one session, one name of each kind.
        let found = names(memory.path());
        assert!(found.values().all(|files| *files == 1), "start {number}: {found:?}");
        container.reports();
        container.terminates(0);
    }
    waited.sort_unstable();
    println!(
        "{count} starts in one shared memory; killed: {killed:?}; the others were grafted after {:?} (median), {:?} (longest)",
        waited.get(waited.len() / 2),
        waited.last()
    );
}

#[test]
fn a_list_that_nobody_uses_and_that_never_answers_is_made_anew() {
    let Some(rig) = rig() else { return };
    let memory = shared_memory();
    // As a process leaves it that was killed in the middle of its making: the others wait for the
    // rest.
    let version = std::process::Command::new(rig.nsys_target.join("nsys"))
        .arg("--version")
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&version.stdout).into_owned();
    let version = message
        .trim()
        .rsplit_once("version ")
        .unwrap()
        .1
        .split('-')
        .next()
        .unwrap();
    let list = memory.path().join(format!("NSys-{version}"));
    std::fs::write(&list, vec![1_u8; 179_488]).unwrap();
    std::os::unix::fs::chown(&list, Some(1234), Some(1234)).unwrap();
    let before = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&list).unwrap());
    let spec = Spec::of(&[WORKLOAD]).shared_memory(Some(memory.path()));
    let mut container = spec.start(rig);
    let start = Instant::now();
    grafted(rig, &container);
    assert!(start.elapsed() < HEALING_TIMEOUT, "{:?}", start.elapsed());
    let after = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&list).unwrap());
    assert_ne!(before, after);
    let log = std::fs::read_to_string(container.file("run/keeper.log")).unwrap();
    assert!(log.contains("removed the profiler's list of sessions"), "{log}");
    container.reports();
    container.terminates(0);
}
