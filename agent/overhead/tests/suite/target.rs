//! A target whose rate is noise around what its load and the profiler make of it.

use std::num::NonZeroU64;

use flopwatch_overhead::{Arms, Binning, Sample, Times, bins};
use statrs::distribution::{ContinuousCDF, Normal};

const MS: u64 = 1_000_000;

/// The load, as a factor of the rate, from the part of the course that has passed and whether the
/// time is before attaching.
pub(crate) type Load = fn(f64, bool) -> f64;

/// A course of before, attaching, window, detaching and after.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) seed: u64,
    /// Coefficient of variation of the rate in one bin.
    pub(crate) noise: f64,
    /// Correlation of a bin's noise with that of the one before.
    pub(crate) phi: f64,
    /// Length of bins, and of the stretches in which the rate is the same.
    pub(crate) bin_ms: u64,
    /// By how much the stretches lie off the bins.
    pub(crate) offset_ms: u64,
    /// Mean spacing of samples, which are irregular.
    pub(crate) sample_ms: u64,
    /// Whether they are regular, as an agent's readings are.
    pub(crate) is_regular: bool,
    /// Whether the counter keeps the time of the last unit's end.
    pub(crate) keeps_ends: bool,
    pub(crate) before_s: u64,
    pub(crate) during_s: u64,
    pub(crate) after_s: u64,
    /// Additional time per unit of work while the window is open.
    pub(crate) harm: f64,
    /// When in the window the harm begins.
    pub(crate) harm_from_s: u64,
    /// Units of work per second, without load, noise and harm.
    pub(crate) per_second: f64,
    pub(crate) load: Load,
}

impl Default for Target {
    fn default() -> Self {
        Self {
            seed: 1,
            noise: 0.02,
            phi: 0.0,
            bin_ms: 1000,
            offset_ms: 0,
            sample_ms: 100,
            is_regular: false,
            keeps_ends: false,
            before_s: 30,
            during_s: 30,
            after_s: 30,
            harm: 0.0,
            harm_from_s: 0,
            per_second: 10_000.0,
            load: |_, _| 1.0,
        }
    }
}

impl Target {
    /// As an agent reads it four times a second: of a recorder that keeps ends, or of a counter
    /// that does not.
    pub(crate) fn read_by_an_agent(per_second: f64, bin_ms: u64, keeps_ends: bool) -> Self {
        Self {
            per_second,
            bin_ms,
            keeps_ends,
            sample_ms: 250,
            is_regular: true,
            noise: 0.02 * (1000.0 / bin_ms as f64).sqrt(),
            before_s: 60,
            after_s: 10,
            ..Self::default()
        }
    }

    pub(crate) fn times(&self) -> Times {
        let attach_ns = self.before_s * 1000 * MS;
        let open_ns = attach_ns + 1000 * MS;
        let close_ns = open_ns + self.during_s * 1000 * MS;
        let known = self.after_s > 0;
        Times {
            attach_ns,
            open_ns,
            close_ns: Some(close_ns),
            detached_ns: known.then_some(close_ns + 1000 * MS),
        }
    }

    pub(crate) fn length_ns(&self) -> NonZeroU64 {
        NonZeroU64::new(self.bin_ms * MS).unwrap()
    }

    pub(crate) fn binning(&self) -> Binning {
        Binning {
            length_ns: self.length_ns(),
            origin_ns: self.times().open_ns,
        }
    }

    pub(crate) fn arms(&self) -> Arms {
        let bins = bins(&self.samples(), self.binning());
        Arms::of(&bins, self.length_ns(), &self.times())
    }

    /// What a sampler reads of the counter.
    pub(crate) fn samples(&self) -> Vec<Sample> {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let normal = Normal::standard();
        let mut deviate = move || normal.inverse_cdf(random.f64().clamp(1e-12, 1.0 - 1e-12));
        let times = self.times();
        let end_ms = (self.before_s + self.during_s + self.after_s + 2) * 1000;
        let mut spacing = fastrand::Rng::with_seed(self.seed ^ 0xabcd);
        let mut next_sample = 0;
        let (mut count, mut noise) = (0.0, deviate());
        let mut pace = (self.noise * noise).exp();
        let mut samples = Vec::new();
        let mut last_ns = None;
        for at_ms in (0..=end_ms).step_by(10) {
            if at_ms >= next_sample {
                samples.push(Sample {
                    at_ns: at_ms * MS,
                    count: count as u64,
                    busy_ns: None,
                    last_ns: last_ns.filter(|_| self.keeps_ends),
                });
                next_sample = at_ms
                    + if self.is_regular {
                        self.sample_ms
                    } else {
                        self.sample_ms * 6 / 10 + spacing.u64(0..=self.sample_ms * 8 / 10)
                    };
            }
            if at_ms > 0 && (at_ms + self.offset_ms).is_multiple_of(self.bin_ms) {
                noise = self.phi * noise + (1.0 - self.phi * self.phi).sqrt() * deviate();
                pace = (self.noise * noise).exp();
            }
            let at_ns = at_ms * MS;
            let harmed = at_ns >= times.open_ns + self.harm_from_s * 1000 * MS && at_ns < times.close_ns.unwrap();
            let slower = if harmed { 1.0 + self.harm } else { 1.0 };
            let load = (self.load)(at_ms as f64 / end_ms as f64, at_ns < times.attach_ns);
            let more = self.per_second / 100.0 * load * pace / slower;
            let whole = (count + more).floor();
            if whole > count.floor() {
                last_ns = Some(at_ns + (10.0 * MS as f64 * (whole - count) / more) as u64);
            }
            count += more;
        }
        samples
    }
}

/// The same target over and over, with other noise.
pub(crate) fn repeat(target: Target, times: u64) -> impl Iterator<Item = Target> {
    (1..=times).map(move |seed| Target {
        seed: seed * 7919,
        ..target
    })
}

pub(crate) fn share(hits: usize, of: u64) -> f64 {
    hits as f64 / of as f64
}
