//! What a graft costs: the start of a container and the pace of its program, unprepared, prepared,
//! and with a capture running.
//!
//! `cargo xtask bench graft` builds what it runs and starts it. The container and the profiler are
//! the tests' own; there is no kubelet in it. Rounds alternate between the kinds, so that what else
//! the machine does meets all of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    dead_code,
    missing_docs,
    reason = "a program for people, over the tests' container, of which it uses a part"
)]

#[path = "../tests/suite/graft/container.rs"]
mod container;

use std::time::{Duration, Instant};

use container::{Container, PATIENT, Rig, Spec, WORKLOAD, pause, rig, wait_for};
use flopwatch_attach::graft::{Bounds, Target};
use flopwatch_attach::nsys::{Collection, LaunchOptions};

const SESSION: &str = "fw-bench";
/// Length of one measured window.
const WINDOW_DURATION: Duration = Duration::from_secs(3);

fn main() {
    let numbers: Vec<u32> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let (starts, rounds) = match numbers[..] {
        [starts, rounds] => (starts, rounds),
        _ => (20, 5),
    };
    let Some(rig) = rig() else { return };
    println!("load average at the beginning: {}", load());
    measure_starts(rig, starts);
    for (what, steps) in [
        ("4 ranges around 3 x 0.1 ms of work", 100_000),
        ("4 ranges around nothing else", 1),
    ] {
        measure_pace(rig, what, steps, rounds);
    }
    println!("load average at the end: {}", load());
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Starts a session for a container's launcher.
fn graft(rig: &Rig, container: &Container) -> (Target, u64) {
    let target = container.target(rig);
    let options = LaunchOptions {
        session: SESSION.into(),
        trace: vec!["cuda".into(), "nvtx".into()],
        cuda_graph_trace: None,
        nvtx_capture: None,
        trace_fork_before_exec: false,
    };
    target.start_session(&options).unwrap();
    let state = target.await_state(Duration::from_secs(30)).unwrap();
    assert!(state.grafted, "{state:?}");
    (target, state.waited_ms)
}

/// Time until the program's first line, and what the launcher says of its own wait.
fn measure_starts(rig: &Rig, starts: u32) {
    let command = [WORKLOAD, "--quiet"];
    let (mut plain, mut prepared, mut waits) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..starts {
        for launcher in [None, Some(&PATIENT[..])] {
            let container = Spec::of(&command).launcher(launcher).start(rig);
            if launcher.is_some() {
                waits.push(to_f64(graft(rig, &container).1));
            }
            wait_for("the program's first line", || {
                container.stdout().contains("start ").then_some(())
            });
            let took = container.started.elapsed().as_secs_f64() * 1e3;
            if launcher.is_some() { &mut prepared } else { &mut plain }.push(took);
        }
    }
    println!("\nstart, {starts} of each kind, in ms");
    println!("{:36} {:>8} {:>8} {:>8} {:>8}", "", "min", "median", "p95", "max");
    for (what, times) in [
        ("unprepared, to the first line", plain),
        ("prepared, to the first line", prepared),
        ("of that, the launcher's wait", waits),
    ] {
        let [min, median, p95, max] = quantiles(times);
        println!("{what:36} {min:8.0} {median:8.0} {p95:8.0} {max:8.0}");
    }
}

/// What a program did in a window.
struct Pace {
    wall_ns: f64,
    cpu_ns: f64,
}

/// Time and processor time per step of the program, unprepared, prepared, and with a capture
/// running.
fn measure_pace(rig: &Rig, what: &str, steps: u64, rounds: u32) {
    let steps = steps.to_string();
    let command = [WORKLOAD, "--range-steps", &steps];
    let start = |launcher| Spec::of(&command).launcher(launcher).start(rig);
    let mut kinds: [(&str, Vec<Pace>); 3] = [
        ("unprepared", Vec::new()),
        ("prepared, no capture", Vec::new()),
        ("prepared, capture running", Vec::new()),
    ];
    for _ in 0..rounds {
        // One container at a time: they would compete for the processors.
        kinds[0].1.push(window(&start(None)));
        let container = start(Some(&PATIENT));
        let (target, _) = graft(rig, &container);
        kinds[1].1.push(window(&container));
        let bounds = Bounds {
            limit: Duration::from_mins(2),
            max_bytes: 8 << 30,
            min_free_bytes: 0,
        };
        target
            .start_collection(SESSION, "x", &Collection::default(), bounds)
            .unwrap();
        kinds[2].1.push(window(&container));
        target.discard_collection(SESSION, "x").unwrap();
    }
    println!(
        "\npace, {what}: median of {rounds} windows of {} s, per step of four ranges",
        WINDOW_DURATION.as_secs()
    );
    println!(
        "{:36} {:>12} {:>8} {:>12} {:>8}",
        "", "wall us", "ratio", "CPU us", "ratio"
    );
    let mut first: Option<(f64, f64)> = None;
    for (kind, paces) in kinds {
        let wall = quantiles(paces.iter().map(|pace| pace.wall_ns / 1e3).collect())[1];
        let cpu = quantiles(paces.iter().map(|pace| pace.cpu_ns / 1e3).collect())[1];
        let (wall_of, cpu_of) = *first.get_or_insert((wall, cpu));
        println!(
            "{kind:36} {wall:12.3} {:8.3} {cpu:12.3} {:8.3}",
            wall / wall_of,
            cpu / cpu_of
        );
    }
}

/// Watches the program for one window, from one of its reports to another.
fn window(container: &Container) -> Pace {
    let report = || {
        wait_for("a report", || {
            let stdout = container.stdout();
            let whole = stdout.rsplit_once('\n').map_or("", |(whole, _)| whole).to_owned();
            let line = whole.lines().rfind(|line| line.starts_with("t="))?.to_owned();
            let field = |name: &str| {
                let word = line.split(' ').find_map(|word| word.strip_prefix(name))?;
                word.parse::<u64>().ok()
            };
            Some((field("t=")?, field("ranges=")?))
        })
    };
    wait_for("the program", || container.stdout().contains("t=").then_some(()));
    pause(Duration::from_millis(300));
    let (from, cpu_from, began) = (report(), cpu(container), Instant::now());
    pause(WINDOW_DURATION);
    let (to, cpu_to, took) = (report(), cpu(container), began.elapsed());
    let program = to_f64((to.1 - from.1) / 4);
    let wall_ns = to_f64(to.0 - from.0) / program;
    // Processor time is of a window that began and ended a little beside the reports': the same
    // pace, another length.
    let cpu_ns = (cpu_to - cpu_from) / took.as_secs_f64() * wall_ns;
    Pace { wall_ns, cpu_ns }
}

/// Processor seconds of the container's first process.
fn cpu(container: &Container) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", container.init().pid)).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    let ticks: u64 = rest
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u64>().unwrap())
        .sum();
    // The kernel counts in hundredths of a second towards user space, whatever its own clock.
    to_f64(ticks) / 100.0
}

fn to_f64(number: u64) -> f64 {
    number.to_string().parse().unwrap()
}

/// Least, median, 95th percentile, greatest.
fn quantiles(mut values: Vec<f64>) -> [f64; 4] {
    values.sort_by(f64::total_cmp);
    let at = |share: usize| values[(values.len() - 1) * share / 100];
    [at(0), at(50), at(95), at(100)]
}
