//! Steps of a known pace, as those of a program whose device sets it: the harm that is done to them
//! is exact, and so is the count of them.

use std::f64::consts::TAU;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use clap::Args;

use super::rest;

/// Most bytes of the file that slows steps down.
const MAX_DIGITS: usize = 16;

/// How steps are paced.
#[derive(Debug, Clone, Args)]
pub(crate) struct PacedArguments {
    /// Length of a step in microseconds, of threads that wait for it to be over; 0: a step takes
    /// what its ranges take.
    #[arg(long, default_value_t = 0)]
    step_micros: u64,
    /// Standard deviation of a step's length in percent of it.
    #[arg(long, default_value_t = 0)]
    step_variation: u32,
    /// A file with the basis points by which steps are longer, read before each step; a negative
    /// number makes them shorter.
    #[arg(long, value_name = "FILE")]
    slowdown_file: Option<PathBuf>,
    /// Write the end of each step to that file, as 8 bytes of Unix nanoseconds, the least first.
    /// For one thread.
    #[arg(long, value_name = "FILE")]
    steps_file: Option<PathBuf>,
}

impl PacedArguments {
    /// The pace, where there is one.
    pub(crate) fn pace(&self) -> anyhow::Result<Option<Pace>> {
        if self.step_micros == 0 {
            return Ok(None);
        }
        let opened = |path: &PathBuf| File::open(path).with_context(|| path.display().to_string());
        let made = |path: &PathBuf| File::create(path).with_context(|| path.display().to_string());
        Ok(Some(Pace {
            length: Duration::from_micros(self.step_micros),
            variation: f64::from(self.step_variation) / 100.0,
            slowdown: self.slowdown_file.as_ref().map(opened).transpose()?,
            ends: self.steps_file.as_ref().map(made).transpose()?,
            random: fastrand::Rng::new(),
            due: Instant::now(),
        }))
    }
}

/// One thread's pace.
#[derive(Debug)]
pub(crate) struct Pace {
    length: Duration,
    variation: f64,
    slowdown: Option<File>,
    ends: Option<File>,
    random: fastrand::Rng,
    due: Instant,
}

impl Pace {
    /// Waits until the step that begins now is over. One that is late does not delay those after
    /// it, as work that was given to a device early does not, unless by more than a whole step:
    /// that time is lost.
    pub(crate) fn wait(&mut self) {
        let usual = self.length.mul_f64((self.variation * self.normal()).exp());
        let length = usual.mul_f64((1.0 + self.slowdown() / 10_000.0).max(0.0));
        self.due += length;
        let now = Instant::now();
        match self.due.checked_duration_since(now) {
            Some(left) => rest(left),
            None if now - self.due > self.length => self.due = now,
            None => {}
        }
    }

    /// A step has ended.
    pub(crate) fn ended(&mut self) -> anyhow::Result<()> {
        if let Some(ends) = &mut self.ends {
            let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
            let nanoseconds = u64::try_from(now.as_nanos())?;
            ends.write_all(&nanoseconds.to_le_bytes())
                .context("write the end of a step")?;
        }
        Ok(())
    }

    /// Basis points by which a step is longer now.
    fn slowdown(&self) -> f64 {
        let mut digits = [0; MAX_DIGITS];
        let read = self
            .slowdown
            .as_ref()
            .and_then(|file| file.read_at(&mut digits, 0).ok());
        let text = digits
            .get(..read.unwrap_or(0))
            .and_then(|read| str::from_utf8(read).ok());
        text.and_then(|text| text.trim().parse().ok()).unwrap_or(0.0)
    }

    /// A number of the standard normal distribution, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.random.f64(), self.random.f64());
        (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos()
    }
}
