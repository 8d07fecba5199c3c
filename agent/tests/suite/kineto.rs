//! Captures of real PyTorch by Kineto, in network and PID namespaces as a pod has them. They need
//! root for those.
#![allow(clippy::disallowed_methods, reason = "there is no runtime to block")]

mod pod;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use flopwatch_agent::profilers::containers::Probed;
use flopwatch_agent::profilers::facts::Facts;
use flopwatch_agent::profilers::{Journaled, Observed, Profiler as _, RawFiles, Site, State, kineto};
use flopwatch_api::profiler::{KinetoOptions, ProfilerSpec, ProfilerType};
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::process::{ProcessId, Procfs};
use flopwatch_model::{Capture, Category, Events, LossReason};
use flopwatch_pipeline::failure::Failure;
use flopwatch_trace::{ReadLimits, read};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use pod::{Pod, site, torch};

type Kineto = Journaled<kineto::Kineto>;

/// The profiler, so many processes at some work, and a folder for their captures; none without
/// PyTorch.
fn rig(processes: usize, work: &str) -> Option<(Kineto, Pod, TempDir)> {
    let pod = Pod::start(&torch()?, processes, work);
    Some((Kineto::default(), pod, tempfile::tempdir().unwrap()))
}

/// What is collected of a pod where nothing is said of how.
fn usual(kineto: &Kineto, pod: &Pod) -> State {
    attach(kineto, pod, KinetoOptions::default())
}

fn attach(kineto: &Kineto, pod: &Pod, options: KinetoOptions) -> State {
    attach_to(kineto, pod.process, pod.temporary.path(), options)
}

fn attach_to(kineto: &Kineto, process: ProcessId, temporary: &Path, options: KinetoOptions) -> State {
    let spec = ProfilerSpec {
        type_: ProfilerType::Kineto,
        kineto: Some(options),
        ..ProfilerSpec::default()
    };
    let mut facts = Facts::default();
    let temporary = temporary.to_str().unwrap().to_owned();
    facts.variables.insert("TMPDIR".to_owned(), temporary);
    let probed = Probed::of(facts, process);
    kineto.attach(&spec, &probed, None).unwrap()
}

/// Starts a collection as the agent does: once more where no process could ask in time, as one that
/// still wrote another trace.
fn start(kineto: &Kineto, site: &Site, state: State) -> Result<State, Failure> {
    match start_once(kineto, site, state.clone()) {
        Err(_) if kineto.starts_again(site) => {
            kineto.discard(site);
            start_once(kineto, site, state)
        }
        started => started,
    }
}

fn start_once(kineto: &Kineto, site: &Site, state: State) -> Result<State, Failure> {
    let prepared = kineto.prepare(site, state)?;
    kineto.start(site, &prepared)?;
    Ok(prepared)
}

fn capture(kineto: &Kineto, site: &Site, state: State) -> Result<RawFiles, Failure> {
    let state = start(kineto, site, state)?;
    kineto.stop(site, &state, &|| true)
}

fn held(folder: &Path) -> Capture {
    read(&folder.join("capture.tar"), &ReadLimits::default()).unwrap()
}

fn events(capture: &Capture, category: Category) -> usize {
    capture.events.get(&category).map_or(0, Events::len)
}

/// Those that did anything: on a busy machine one may come to no operator in its window.
fn processes(capture: &Capture) -> BTreeSet<u32> {
    let rows = capture.events.values().flat_map(|events| events.row.iter());
    rows.map(|row| capture.rows[row.index()].process).collect()
}

#[test]
fn a_program_is_recorded_twice_in_a_row_and_keeps_its_pace() {
    let Some(rig) = rig(1, "plain") else { return };
    let (kineto, pod, _) = rig;
    // The first one is of a program that still warms up.
    pod.tells_steps(3);
    let without = pod.longest_step();
    for (round, stacks) in [false, true].into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let site = pod.site(&format!("capture-{round}"), folder.path(), 2);
        let options = KinetoOptions {
            stacks,
            shapes: stacks,
            ..KinetoOptions::default()
        };
        capture(&kineto, &site, attach(&kineto, &pod, options)).unwrap();
        // The end of the window is in the next one.
        pod.tells_steps(1);
        let within = pod.longest_step();
        let held = held(folder.path());
        println!(
            "with stacks and shapes {stacks}: longest step {without} ms without, {within} ms within a capture; {} operators, {} annotations, \
             {} Python functions in {} ms",
            events(&held, Category::CpuOp),
            events(&held, Category::Annotation),
            events(&held, Category::PythonFunction),
            held.duration_ns / 1_000_000,
        );
        assert!(events(&held, Category::CpuOp) > 100 && events(&held, Category::Annotation) > 10);
        assert_eq!(events(&held, Category::PythonFunction) > 0, stacks);
        let length = held.duration_ns / 1_000_000;
        assert!((1500..3500).contains(&length), "{length} ms");
        assert_eq!(pod.left(), Vec::<String>::new());
    }
    assert!(Procfs::default().is_alive(pod.process));
}

#[test]
fn a_request_that_the_library_counts_as_failed_leaves_no_answer_for_the_next_capture() {
    let Some(rig) = rig(1, "plain") else { return };
    let (kineto, pod, _) = rig;
    // It tries for 10.23 s, each time after twice the pause: the last one, from 5.1 s on, ends in a
    // try that it counts as failed. Nothing tells of the pauses, so this waits until the middle of
    // the last one.
    pod.says("sync_send fail");
    std::thread::sleep(Duration::from_secs(7));
    for round in ["first", "second"] {
        let folder = tempfile::tempdir().unwrap();
        let site = pod.site(round, folder.path(), 1);
        capture(&kineto, &site, usual(&kineto, &pod)).unwrap();
        assert!(events(&held(folder.path()), Category::CpuOp) > 50, "{round}");
    }
}

#[test]
fn eight_processes_become_one_timeline() {
    let Some(rig) = rig(8, "plain") else { return };
    let (kineto, pod, folder) = rig;
    let site = pod.site("eight", folder.path(), 1);
    capture(&kineto, &site, usual(&kineto, &pod)).unwrap();
    let held = held(folder.path());
    // On a busy machine the library may hear of a window too late; the timeline says so.
    let missing: u64 = held
        .losses
        .list()
        .iter()
        .filter(|loss| loss.what.starts_with("processes that"))
        .map(|loss| loss.count)
        .sum();
    println!("eight processes: {missing} without a trace");
    let recorded = processes(&held);
    assert!(recorded.len() >= 4, "{recorded:?}");
    assert_eq!(
        flopwatch_model::count(recorded.len()) + missing,
        8,
        "{recorded:?}; {:?}",
        held.losses.list()
    );
    // One clock: the traces of all begin within the same window.
    let length = held.duration_ns / 1_000_000;
    println!(
        "eight processes: {} operators in {length} ms",
        events(&held, Category::CpuOp)
    );
    assert!(length < 4000, "{length} ms");
    assert_eq!(pod.left(), Vec::<String>::new());
}

#[test]
fn iterations_are_counted_by_the_program() {
    let Some(python) = torch() else { return };
    let kineto = Kineto::default();
    let options = || KinetoOptions {
        iterations: Some(20),
        ..KinetoOptions::default()
    };
    let pod = Pod::start(&python, 1, "steps");
    let folder = tempfile::tempdir().unwrap();
    let site = pod.site("iterations", folder.path(), 5);
    capture(&kineto, &site, attach(&kineto, &pod, options())).unwrap();
    let held = held(folder.path());
    let annotations = &held.events[&Category::Annotation];
    let steps = (0..annotations.len())
        .filter(|at| annotations.name_of(*at) == "a step")
        .count();
    println!("20 iterations: {steps} steps");
    assert!((18..=22).contains(&steps), "{steps}");
}

#[test]
fn a_capture_that_is_discarded_or_whose_program_ends_leaves_nothing_behind() {
    let Some(rig) = rig(1, "plain") else { return };
    let (kineto, mut pod, folder) = rig;
    let site = pod.site("discarded", folder.path(), 60);
    let state = start(&kineto, &site, usual(&kineto, &pod)).unwrap();
    assert_eq!(pod.left(), ["flopwatch-discarded"]);
    assert_eq!(kineto.observe(Some(&site), &state).unwrap(), Observed::Collecting);
    // The agent that comes next knows nothing but the journal.
    assert_eq!(
        Kineto::default().observe(Some(&site), &state).unwrap(),
        Observed::Collecting
    );
    kineto.discard(&site);
    kineto.discard(&site);
    assert_eq!(pod.left(), Vec::<String>::new());

    let site = pod.site("ended", folder.path(), 60);
    pod.end();
    let failure = kineto.prepare(&site, usual(&kineto, &pod)).unwrap_err();
    assert_eq!(failure.reason, CaptureReason::TargetNotRunning, "{}", failure.message);
}

#[test]
fn a_window_that_was_given_up_is_waited_for_by_the_next_capture_or_told_as_the_reason() {
    let Some(rig) = rig(1, "plain") else { return };
    let (kineto, pod, folder) = rig;
    let recorded = |kineto: &Kineto, name: &str, state: State| {
        let folder = tempfile::tempdir().unwrap();
        capture(kineto, &pod.site(name, folder.path(), 1), state).unwrap();
        assert!(events(&held(folder.path()), Category::CpuOp) > 50, "{name}");
    };
    // Longer than the time before a window: the process asks for nothing until it has ended.
    let site = pod.site("given-up", folder.path(), 10);
    start(&kineto, &site, usual(&kineto, &pod)).unwrap();
    kineto.discard(&site);
    recorded(&kineto, "after-one-given-up", usual(&kineto, &pod));

    let site = pod.site("killed", folder.path(), 10);
    let state = start(&kineto, &site, usual(&kineto, &pod)).unwrap();
    drop(kineto);
    let kineto = Kineto::default();
    let anew = usual(&kineto, &pod);
    // The same capture: the folder of its first window is there, and that window's trace comes into
    // it.
    recorded(&kineto, "killed", kineto.follow(&state, anew).unwrap());

    // Longer than two programs that are held up take to begin, and than a window is waited for.
    let site = pod.site("long", folder.path(), 120);
    start(&kineto, &site, usual(&kineto, &pod)).unwrap();
    kineto.discard(&site);
    let state = usual(&kineto, &pod);
    let failure = kineto.prepare(&pod.site("next", folder.path(), 1), state).unwrap_err();
    assert_eq!(failure.reason, CaptureReason::ContainerBusy, "{}", failure.message);
    let left = failure.message.split_once("record for ").unwrap().1;
    let left: u64 = left.split(' ').next().unwrap().parse().unwrap();
    assert!((31..=120).contains(&left), "{}", failure.message);
}

#[test]
fn a_program_that_could_not_ask_in_time_is_recorded_by_a_second_start() {
    let Some(rig) = rig(1, "plain") else { return };
    let (kineto, pod, folder) = rig;
    let site = pod.site("held-up", folder.path(), 1);
    let signal = |signal| {
        kill(Pid::from_raw(pod.process.pid), signal).unwrap();
    };
    signal(Signal::SIGSTOP);
    let failure = kineto.prepare(&site, usual(&kineto, &pod)).unwrap_err();
    signal(Signal::SIGCONT);
    assert_eq!(failure.reason, CaptureReason::AttachFailed, "{}", failure.message);
    assert!(kineto.starts_again(&site));
    kineto.discard(&site);
    assert!(!kineto.starts_again(&site), "what was discarded has nothing to start");
    capture(&kineto, &site, usual(&kineto, &pod)).unwrap();
    assert!(events(&held(folder.path()), Category::CpuOp) > 50);
    assert!(!kineto.starts_again(&site), "a process was told");
}

#[test]
fn a_program_that_ends_in_the_window_is_told_with_its_reason() {
    let Some(rig) = rig(1, "plain") else { return };
    let (kineto, mut pod, folder) = rig;
    let site = pod.site("ended", folder.path(), 30);
    let state = start(&kineto, &site, usual(&kineto, &pod)).unwrap();
    pod.end();
    let failure = kineto.stop(&site, &state, &|| true).unwrap_err();
    assert_eq!(failure.reason, CaptureReason::TargetNotRunning, "{}", failure.message);
    assert!(!folder.path().join("capture.tar").exists());
    kineto.discard(&site);
}

/// A small file system at a folder, until it ends.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn at(folder: &'a Path) -> Self {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64m,mode=1777", "tmpfs"])
            .arg(folder)
            .status();
        assert!(mounted.unwrap().success());
        Self(folder)
    }

    fn fill(&self) {
        let mut ballast = File::create(self.0.join("ballast")).unwrap();
        while ballast.write_all(&[1; 4096]).is_ok() {}
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        Command::new("umount").arg("--lazy").arg(self.0).status().ok();
    }
}

#[test]
fn a_program_whose_disk_is_full_is_not_waited_for_and_the_reason_names_the_disk() {
    let Some(rig) = rig(1, "plain") else { return };
    let (kineto, pod, folder) = rig;
    let disk = SmallDisk::at(pod.temporary.path());
    let site = pod.site("full", folder.path(), 2);
    let state = start(&kineto, &site, usual(&kineto, &pod)).unwrap();
    disk.fill();
    let begin = Instant::now();
    let failure = kineto.stop(&site, &state, &|| true).unwrap_err();
    assert_eq!(failure.reason, CaptureReason::DiskSpace, "{}", failure.message);
    let temporary = pod.temporary.path().to_str().unwrap();
    assert!(failure.message.contains(temporary), "{}", failure.message);
    assert!(failure.message.contains("TMPDIR"), "{}", failure.message);
    assert!(begin.elapsed() < Duration::from_mins(1), "{:?}", begin.elapsed());
    kineto.discard(&site);
    assert_eq!(pod.left(), Vec::<String>::new());

    let mut site = pod.site("small", folder.path(), 2);
    site.limits.floor.bytes = 1 << 30;
    let failure = kineto.prepare(&site, usual(&kineto, &pod)).unwrap_err();
    assert_eq!(failure.reason, CaptureReason::DiskSpace, "{}", failure.message);
    assert!(failure.message.contains(temporary), "{}", failure.message);
    assert!(Procfs::default().is_alive(pod.process));
}

#[test]
fn a_window_is_as_long_as_its_events_have_memory_and_says_why_it_is_no_longer() {
    let Some(rig) = rig(1, "busy") else { return };
    let (kineto, pod, folder) = rig;
    pod.tells_steps(1);
    let mut site = pod.site("shortened", folder.path(), 60);
    let processes = site.containers.processes(&site.container_id);
    assert_eq!(processes, [pod.process], "whose time is counted");
    let before = pod.held_bytes();
    // A program that waits for a busy machine's processors is taken for up to 16 times as quick.
    // The first bound is too small for 60 s of 1,000 events a second, the fewest that a program is
    // taken for; the second holds a window of 500,000.
    let mut bounds = [384_u64 << 20, 2 << 30].into_iter();
    let state = loop {
        site.limits.window_memory_bytes = bounds.next().expect("the window fits one of the bounds");
        match start(&kineto, &site, usual(&kineto, &pod)) {
            Ok(state) => break state,
            Err(refused) => assert_eq!(refused.reason, CaptureReason::OverBudget, "{refused}"),
        }
        kineto.discard(&site);
    };
    let bound = format!("{} MiB", site.limits.window_memory_bytes >> 20);
    let shortened = kineto.shortened(&state).unwrap().unwrap();
    kineto.stop(&site, &state, &|| true).unwrap();
    let taken = pod.held_bytes().saturating_sub(before);
    println!("{} MiB for {:?}: {}", taken >> 20, shortened.length, shortened.why);
    assert!(shortened.length < Duration::from_secs(50), "{shortened:?}");
    assert!(
        shortened.why.contains("of the 60 s that were asked for") && shortened.why.contains(&bound),
        "{shortened:?}"
    );
    assert!(taken < site.limits.window_memory_bytes, "{taken} bytes");
    let held = held(folder.path());
    let length = Duration::from_nanos(held.duration_ns);
    let late = Duration::from_secs(2);
    assert!(length < shortened.length + late, "{length:?} of {shortened:?}");
    let losses = held.losses.list();
    let told = losses.iter().find(|loss| loss.reason == LossReason::Truncated).unwrap();
    assert!(told.what.contains(&shortened.why), "{told:?}");
    assert_eq!(pod.left(), Vec::<String>::new());
}

#[test]
fn a_window_without_memory_is_refused_before_anybody_is_told() {
    let Some(rig) = rig(1, "plain") else { return };
    let (kineto, pod, folder) = rig;
    let mut site = pod.site("refused", folder.path(), 10);
    site.limits.window_memory_bytes = 16 << 20;
    let begin = Instant::now();
    let failure = kineto.prepare(&site, usual(&kineto, &pod)).unwrap_err();
    assert_eq!(failure.reason, CaptureReason::OverBudget, "{}", failure.message);
    assert!(failure.message.contains("16 MiB"), "{}", failure.message);
    assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
    assert!(!kineto.starts_again(&site));
    assert_eq!(pod.left(), Vec::<String>::new());
}

#[test]
fn a_window_is_as_long_as_its_pod_has_room_for_traces() {
    let Some(rig) = rig(1, "plain") else { return };
    let (kineto, pod, folder) = rig;
    pod.tells_steps(1);
    let mut site = pod.site("tight", folder.path(), 60);
    // A third of it is the bound: some seconds of the program, and more than the shortest window of
    // one that is taken for 16 times as quick, since it waited for a busy machine's processors.
    let room = 64 << 20;
    site.pod_room = Some(room);
    let state = start(&kineto, &site, usual(&kineto, &pod)).unwrap();
    let shortened = kineto.shortened(&state).unwrap().unwrap();
    kineto.stop(&site, &state, &|| true).unwrap();
    let taken = std::fs::metadata(folder.path().join("capture.tar")).unwrap().len();
    println!("{taken} bytes of traces in {:?}", shortened.length);
    assert!(shortened.why.contains("ephemeral-storage limit"), "{shortened:?}");
    assert!(taken <= room / 3, "{taken} bytes");
}

/// A file system over a folder for which nobody answers.
struct Unanswered<'a> {
    folder: &'a Path,
    fuse: Option<File>,
}

impl<'a> Unanswered<'a> {
    /// None, with a printed reason, where nobody may mount.
    fn over(folder: &'a Path) -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: mounting a file system that never answers needs root");
            return None;
        }
        let fuse = File::options().read(true).write(true).open("/dev/fuse").unwrap();
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,allow_other",
            fuse.as_raw_fd()
        );
        let flags = MsFlags::empty();
        mount(Some("nobody"), folder, Some("fuse"), flags, Some(options.as_str())).unwrap();
        Some(Self {
            folder,
            fuse: Some(fuse),
        })
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        // What waits for it comes back.
        drop(self.fuse.take());
        umount2(self.folder, MntFlags::MNT_DETACH).ok();
    }
}

#[test]
fn a_folder_for_which_nobody_answers_is_not_opened_and_the_next_look_is_answered() {
    let temporary = tempfile::tempdir().unwrap();
    let Some(_unanswered) = Unanswered::over(temporary.path()) else {
        return;
    };
    let own = Procfs::default()
        .identify(i32::try_from(std::process::id()).unwrap())
        .unwrap();
    let (kineto, folder) = (Kineto::default(), tempfile::tempdir().unwrap());
    let site = site(own, "hangs", folder.path(), 1);
    for _ in 0..2 {
        let begin = Instant::now();
        let state = attach_to(&kineto, own, temporary.path(), KinetoOptions::default());
        let failure = kineto.prepare(&site, state).unwrap_err();
        assert_eq!(failure.reason, CaptureReason::AttachFailed, "{}", failure.message);
        assert!(failure.message.contains("of the kind fuse"), "{}", failure.message);
        assert!(failure.message.contains("set TMPDIR"), "{}", failure.message);
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    }
}
