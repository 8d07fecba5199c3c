//! What a window takes of the program's memory: what is recorded, and what it takes to put the
//! profile together.

use std::time::{Duration, Instant};

use flopwatch_agent::profilers::jax::TAKEN_TOGETHER;
use flopwatch_api::profiler::JaxOptions;

use super::program::Program;
use super::rig::{Rig, wait};

/// A window; it is ended as soon as it has taken enough.
const WINDOW_DURATION: Duration = Duration::from_mins(1);
/// Calls of a step: some hundred thousand events a second.
const CALLS: u32 = 2_000;
/// Bytes that a window must take, so that the program's own do not count.
const ENOUGH: u64 = 24 << 20;

/// Bytes of a line of a process's status.
fn memory(pid: i32, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = status.lines().find_map(|of| of.strip_prefix(line)?.strip_prefix(':'));
    let kibibytes = value.and_then(|value| value.trim().strip_suffix(" kB")).unwrap();
    kibibytes.trim().parse::<u64>().unwrap() << 10
}

#[test]
fn a_profile_is_put_together_in_no_more_memory_than_is_kept_for_it() {
    let Some(mut program) = Program::start_calling(9712, CALLS) else {
        return;
    };
    let services = program.services();
    let pid = services[0].process.pid;
    // What earlier windows took stays with the program and is used again: the first one tells.
    let options = JaxOptions {
        python_tracer_level: Some(1),
        ..JaxOptions::default()
    };
    let mut rig = Rig::new(&services, options, WINDOW_DURATION);
    rig.site.limits.capture_bytes = 1 << 30;
    // From now on the peak is counted anew.
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
    let before = memory(pid, "VmRSS");
    rig.start().unwrap();
    let taken = || memory(pid, "VmRSS").saturating_sub(before);
    let until = Instant::now() + WINDOW_DURATION;
    while taken() < ENOUGH {
        assert!(Instant::now() < until, "{} bytes recorded", taken());
        wait(Duration::from_millis(20));
    }
    let recorded = taken();
    rig.stop().unwrap();
    let peak = memory(pid, "VmHWM").saturating_sub(before);
    let answer = std::fs::metadata(rig.site.folder.join("profile.xplane.pb"))
        .unwrap()
        .len();
    println!(
        "{} MiB recorded, {} MiB at the most, {} MiB of profile",
        recorded >> 20,
        peak >> 20,
        answer >> 20
    );
    // The service records on until it hears of the end.
    let most = recorded * (1 + TAKEN_TOGETHER) * 5 / 4;
    assert!(peak < most, "{peak} bytes, and {most} are kept");
    assert!(program.is_alive());
}
