//! A program with a known number of NVTX ranges, threads and processes, or one that trains on a
//! simulated GPU.
//!
//! It says what it sees of itself (PID, children, environment, signals) and counts what it does, so
//! that a test can hold a capture against it. Every line is one write, so lines of several
//! processes never mix.

mod exposition;
mod paced;
mod simulated_gpu;
mod training;

use std::io::{Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::Parser;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use std::os::fd::AsFd;

use paced::{Pace, PacedArguments};
use simulated_gpu::SimulatedGpu;
use training::Training;

/// Ranges in one step: `step` around `forward`, `backward` and `optimizer`.
const RANGES_PER_STEP: u64 = 4;
/// The stream of the first thread on the simulated GPU.
const FIRST_STREAM: u32 = 7;
/// How often each process reports its count.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// Pushes and pops NVTX ranges and counts them.
#[derive(Debug, Clone, Parser)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches of a command line, independent of each other"
)]
struct Arguments {
    /// Threads per process.
    #[arg(long, default_value_t = 1)]
    threads: u32,
    /// Processes, the first included; the others are its children.
    #[arg(long, default_value_t = 1)]
    processes: u32,
    /// Length of each inner range in microseconds.
    #[arg(long, default_value_t = 500)]
    range_micros: u64,
    /// Compute so many steps in each inner range instead of sleeping; 0: sleep.
    #[arg(long, default_value_t = 0)]
    range_steps: u64,
    /// Train on the simulated GPU instead, each thread on a stream of its own.
    #[arg(long, conflicts_with_all = ["processes", "range_steps", "metrics_port"])]
    simulated_gpu: bool,
    /// What lengths on the simulated GPU are drawn by.
    #[arg(long, default_value_t = 1, requires = "simulated_gpu")]
    seed: u64,
    #[command(flatten)]
    paced: PacedArguments,
    /// Push and pop a range of this name once, before any other and before threads and children are
    /// there.
    #[arg(long, value_name = "NAME")]
    first_range: Option<String>,
    /// How long to run; 0 until SIGTERM.
    #[arg(long, default_value_t = 0)]
    seconds: u64,
    /// Ranges after which to end; 0: not by their count.
    #[arg(long, default_value_t = 0)]
    ranges: u64,
    /// Exit code at the end, however it comes.
    #[arg(long, default_value_t = 0)]
    fail_code: u8,
    /// At the end, say when the last range ended and take memory until the kernel kills the
    /// program.
    #[arg(long)]
    exhaust_memory: bool,
    /// Print the environment, sorted, and end.
    #[arg(long)]
    print_env: bool,
    /// Read standard input to its end first and say how many bytes came.
    #[arg(long)]
    read_stdin: bool,
    /// Publish the steps so far for Prometheus at this port.
    #[arg(long, value_name = "PORT")]
    metrics_port: Option<u16>,
    /// Do not report the count while running.
    #[arg(long)]
    quiet: bool,
    /// This is a child of the first process.
    #[arg(long, hide = true)]
    child: bool,
}

/// Ranges finished by this process.
static RANGES: AtomicU64 = AtomicU64::new(0);
/// When a thread last ended its ranges, in Unix nanoseconds.
static LAST: AtomicU64 = AtomicU64::new(0);
/// Set when the threads shall finish their step and end.
static STOP: AtomicBool = AtomicBool::new(false);

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let watched = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];
    let mask: SigSet = watched.into_iter().collect();
    // Before any thread exists, so that all of them inherit the mask.
    mask.thread_block().context("block signals")?;
    let signals =
        SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).context("open signalfd")?;

    say(&format!("start pid={} wait={}", std::process::id(), wait_answer()))?;
    if arguments.print_env {
        print_environment()?;
        return Ok(ExitCode::from(arguments.fail_code));
    }
    if arguments.read_stdin {
        let mut input = Vec::new();
        std::io::stdin()
            .read_to_end(&mut input)
            .context("read standard input")?;
        say(&format!("stdin bytes={}", input.len()))?;
    }
    if let Some(name) = &arguments.first_range {
        nvtx::range_push!("{name}");
        rest(Duration::from_micros(arguments.range_micros));
        nvtx::range_pop!();
        RANGES.fetch_add(1, Ordering::Relaxed);
    }
    if let Some(port) = arguments.metrics_port {
        exposition::serve(port)?;
    }
    let children = start_children(&arguments)?;
    let inner = match arguments.range_steps {
        0 => Inner::Sleep(Duration::from_micros(arguments.range_micros)),
        steps => Inner::Compute(steps),
    };
    let gpu = begin_simulated_gpu(&arguments)?;
    let threads = (0..arguments.threads)
        .map(|index| {
            let pace = arguments.paced.pace()?;
            let seed = arguments.seed.wrapping_add(u64::from(index));
            let training = gpu.map(|gpu| Training::new(gpu.stream(FIRST_STREAM + index), seed));
            std::thread::Builder::new()
                .name(format!("worker-{index}"))
                .spawn(move || match training {
                    Some(training) => training.run(index),
                    None => work(index, inner, pace),
                })
                .context("start a thread")
        })
        .collect::<anyhow::Result<Vec<_>>>()?;

    let seen = attend(&arguments, &signals, children.is_empty())?;
    STOP.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().ok().context("a worker panicked")??;
    }
    end_children(children)?;
    let total = RANGES.load(Ordering::Relaxed);
    say(&format!(
        "total pid={} ranges={total} hup={} int={} term={}",
        std::process::id(),
        seen.hup,
        seen.int,
        seen.term
    ))?;
    if arguments.exhaust_memory {
        say(&format!("last t={} ranges={total}", LAST.load(Ordering::Relaxed)))?;
        exhaust_memory();
    }
    Ok(ExitCode::from(arguments.fail_code))
}

/// The simulated GPU, where the program trains on it. It says so before it begins.
fn begin_simulated_gpu(arguments: &Arguments) -> anyhow::Result<Option<SimulatedGpu>> {
    if !arguments.simulated_gpu {
        return Ok(None);
    }
    say("simulated GPU: its kernels and their times are made up, and say nothing of a GPU")?;
    SimulatedGpu::begin().map(Some)
}

/// Takes memory and writes to it, 4 GiB at most.
fn exhaust_memory() {
    let taken: Vec<Vec<u8>> = (1..=u8::MAX).map(|number| vec![number; 16 << 20]).collect();
    drop(std::hint::black_box(taken));
}

/// Signals that the program received.
#[derive(Debug, Default)]
struct Seen {
    hup: u32,
    int: u32,
    term: u32,
}

/// Reports the count until the time is over, so many ranges have ended or SIGTERM came.
fn attend(arguments: &Arguments, signals: &SignalFd, childless: bool) -> anyhow::Result<Seen> {
    let start = Instant::now();
    let mut seen = Seen::default();
    let mut next = start;
    loop {
        let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        let left = next.saturating_duration_since(Instant::now());
        poll(&mut fds, PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO)).ok();
        while let Some(info) = signals.read_signal().context("read signalfd")? {
            match i32::try_from(info.ssi_signo)
                .ok()
                .and_then(|number| Signal::try_from(number).ok())
            {
                Some(Signal::SIGHUP) => seen.hup += 1,
                Some(Signal::SIGINT) => seen.int += 1,
                _ => seen.term += 1,
            }
            say(&format!(
                "signal pid={} hup={} int={} term={}",
                std::process::id(),
                seen.hup,
                seen.int,
                seen.term
            ))?;
        }
        let is_late = arguments.seconds > 0 && start.elapsed() >= Duration::from_secs(arguments.seconds);
        let is_done = arguments.ranges > 0 && RANGES.load(Ordering::Relaxed) >= arguments.ranges;
        if seen.term > 0 || is_late || is_done {
            return Ok(seen);
        }
        if Instant::now() >= next {
            next += REPORT_INTERVAL;
            if arguments.quiet {
                continue;
            }
            let (now, ranges) = count()?;
            // With children of its own it would be told of them, not that there are none.
            let wait = if childless {
                format!(" wait={}", wait_answer())
            } else {
                String::new()
            };
            say(&format!("t={now} pid={} ranges={ranges}{wait}", std::process::id()))?;
        }
    }
}

/// How many tries [`count`] has.
const MAX_TRIES: u32 = 1000;

/// The time, in Unix nanoseconds, and the ranges finished then. On a busy machine the process may
/// be halted between the two looks; then they are taken again.
fn count() -> anyhow::Result<(u128, u64)> {
    let mut tries = 0;
    loop {
        let before = Instant::now();
        let ranges = RANGES.load(Ordering::Relaxed);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .context("the clock is before 1970")?;
        tries += 1;
        if before.elapsed() < Duration::from_micros(100) || tries >= MAX_TRIES {
            return Ok((now.as_nanos(), ranges));
        }
    }
}

/// What `waitpid(-1)` answers: `ECHILD` when this process has no child that it could wait for.
fn wait_answer() -> String {
    match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
        Err(Errno::ECHILD) => "ECHILD".into(),
        other => format!("{other:?}").replace(' ', ""),
    }
}

/// What a program does in an inner range.
#[derive(Debug, Clone, Copy)]
enum Inner {
    Sleep(Duration),
    Compute(u64),
}

impl Inner {
    fn run(self) {
        match self {
            Self::Sleep(pause) => rest(pause),
            Self::Compute(steps) => compute(steps),
        }
    }
}

/// Does `steps` steps of the same arithmetic, which the compiler cannot leave out.
fn compute(steps: u64) {
    let mut value = std::hint::black_box(1_u64);
    for step in 0..steps {
        value = std::hint::black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step));
    }
}

/// One thread's work: steps of nested ranges.
fn work(index: u32, inner: Inner, mut pace: Option<Pace>) -> anyhow::Result<()> {
    nvtx::name_thread!("worker-{index}");
    while !STOP.load(Ordering::Relaxed) {
        nvtx::range_push!("step");
        for name in ["forward", "backward", "optimizer"] {
            nvtx::range_push!("{name}");
            inner.run();
            nvtx::range_pop!();
        }
        if let Some(pace) = &mut pace {
            pace.wait();
        }
        nvtx::range_pop!();
        if let Some(pace) = &mut pace {
            pace.ended()?;
        }
        count_ended(RANGES_PER_STEP);
    }
    Ok(())
}

/// Counts ranges that have ended now.
fn count_ended(ranges: u64) {
    RANGES.fetch_add(ranges, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    LAST.fetch_max(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

#[expect(clippy::disallowed_methods, reason = "a thread of its own, no runtime")]
fn rest(pause: Duration) {
    if !pause.is_zero() {
        std::thread::sleep(pause);
    }
}

fn start_children(arguments: &Arguments) -> anyhow::Result<Vec<Child>> {
    if arguments.child {
        return Ok(Vec::new());
    }
    (1..arguments.processes)
        .map(|_| {
            Command::new("/proc/self/exe")
                .arg("--child")
                .args(["--threads", &arguments.threads.to_string()])
                .args(["--range-micros", &arguments.range_micros.to_string()])
                .args(["--range-steps", &arguments.range_steps.to_string()])
                .args(arguments.quiet.then_some("--quiet"))
                .stdin(Stdio::null())
                .spawn()
                .context("start a child process")
        })
        .collect()
}

fn end_children(children: Vec<Child>) -> anyhow::Result<()> {
    for child in &children {
        kill(Pid::from_raw(i32::try_from(child.id())?), Signal::SIGTERM).context("end a child process")?;
    }
    for mut child in children {
        let status = child.wait().context("wait for a child process")?;
        anyhow::ensure!(status.success(), "a child process ended with {status}");
    }
    Ok(())
}

fn print_environment() -> anyhow::Result<()> {
    let mut entries: Vec<_> = std::env::vars_os().collect();
    entries.sort();
    for (name, value) in entries {
        say(&format!("env {}={}", name.to_string_lossy(), value.to_string_lossy()))?;
    }
    Ok(())
}

fn say(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())
        .and_then(|()| out.flush())
        .context("write to standard output")
}
