//! What a job says of itself.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde_json::{Value, json};

/// The begin of a job.
pub(crate) struct Clock {
    wall: Instant,
    cpu: Cpu,
}

/// Processor time of this process so far, and of the children that it has waited for.
#[derive(Clone, Copy)]
struct Cpu {
    user: Duration,
    system: Duration,
}

/// What a job took.
#[derive(Clone, Copy)]
pub(crate) struct Timing {
    wall: Duration,
    /// Of all threads together, which a machine that has other work to do changes least.
    cpu: Cpu,
}

impl Clock {
    pub(crate) fn start() -> Result<Self> {
        Ok(Self {
            cpu: Cpu::so_far()?,
            wall: Instant::now(),
        })
    }

    pub(crate) fn stop(&self) -> Result<Timing> {
        Ok(Timing {
            wall: self.wall.elapsed(),
            cpu: Cpu::so_far()?.since(self.cpu),
        })
    }
}

/// Prints the job's line: its time, the peak of memory, and `counts`.
#[allow(clippy::print_stdout, reason = "the line is what the recipe reads")]
pub(crate) fn print(took: Timing, counts: Value) -> Result<()> {
    let mut line = json!({
        "seconds": took.wall.as_secs_f64(),
        "cpu_seconds": (took.cpu.user + took.cpu.system).as_secs_f64(),
        "user_seconds": took.cpu.user.as_secs_f64(),
        "peak_bytes": peak_bytes()?,
    });
    if let (Some(line), Value::Object(counts)) = (line.as_object_mut(), counts) {
        line.extend(counts);
    }
    println!("{line}");
    Ok(())
}

impl Cpu {
    fn so_far() -> Result<Self> {
        let (mut user, mut system) = (0, 0);
        for who in [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN] {
            let usage = getrusage(who)?;
            user += usage.user_time().num_microseconds();
            system += usage.system_time().num_microseconds();
        }
        Ok(Self {
            user: Duration::from_micros(u64::try_from(user)?),
            system: Duration::from_micros(u64::try_from(system)?),
        })
    }

    fn since(self, begin: Self) -> Self {
        Self {
            user: self.user.saturating_sub(begin.user),
            system: self.system.saturating_sub(begin.system),
        }
    }
}

/// The most memory that this process, or one of the children that it has waited for, has held so
/// far.
fn peak_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kilobytes: u64 = kilobytes
        .context("the kernel does not say the peak of memory")?
        .trim()
        .parse()?;
    let of_children = u64::try_from(getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss())?;
    Ok(kilobytes.max(of_children) * 1024)
}
