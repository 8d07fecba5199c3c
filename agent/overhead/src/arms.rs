//! Bins before, during and after a window, without the ramps at its edges.

use std::num::NonZeroU64;

use crate::bins::Bin;

/// The moments of a window, in ns of the samples' clock, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The profiler began to attach.
    pub attach_ns: u64,
    /// The window opened: the profiler collects.
    pub open_ns: u64,
    /// The window closed; `None` while it is open.
    pub close_ns: Option<u64>,
    /// The profiler is gone; `None` until then.
    pub detached_ns: Option<u64>,
}

impl Times {
    /// The times in which the profiler starts and stops, as beginning and end. One that has not
    /// ended is open.
    pub(crate) fn ramps(&self) -> impl Iterator<Item = (u64, u64)> {
        let stop = self
            .close_ns
            .map(|close_ns| (close_ns, self.detached_ns.unwrap_or(u64::MAX)));
        std::iter::once((self.attach_ns, self.open_ns)).chain(stop)
    }
}

/// Bins that lie wholly in one part of the course; those in ramps are in none.
#[derive(Clone, Debug, PartialEq)]
pub struct Arms {
    /// B1: ended when attaching began.
    pub before: Vec<Bin>,
    /// D: from opening to closing.
    pub during: Vec<Bin>,
    /// B2: began when the profiler was gone; empty until then.
    pub after: Vec<Bin>,
    /// Length of a bin, in ns.
    pub length_ns: NonZeroU64,
}

impl Arms {
    /// Sorts bins of one length into arms.
    pub fn of(bins: &[Bin], length_ns: NonZeroU64, times: &Times) -> Self {
        let within = |from: u64, until: u64| -> Vec<Bin> {
            let ends = |bin: &Bin| bin.start_ns.saturating_add(length_ns.get());
            let inside = bins.iter().filter(|bin| bin.start_ns >= from && ends(bin) <= until);
            inside.copied().collect()
        };
        Self {
            before: within(0, times.attach_ns),
            during: within(times.open_ns, times.close_ns.unwrap_or(u64::MAX)),
            after: times.detached_ns.map(|from| within(from, u64::MAX)).unwrap_or_default(),
            length_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arms(times: &Times) -> [Vec<u64>; 3] {
        let bins: Vec<Bin> = (0..20)
            .map(|start_ns| Bin {
                start_ns: start_ns * 10,
                rate: 1.0,
                busy_rate: None,
            })
            .collect();
        let arms = Arms::of(&bins, NonZeroU64::new(10).unwrap(), times);
        [arms.before, arms.during, arms.after].map(|arm| arm.iter().map(|bin| bin.start_ns).collect())
    }

    #[test]
    fn bins_that_touch_a_ramp_are_in_no_arm() {
        let times = Times {
            attach_ns: 35,
            open_ns: 60,
            close_ns: Some(95),
            detached_ns: Some(170),
        };
        assert_eq!(arms(&times), [vec![0, 10, 20], vec![60, 70, 80], vec![170, 180, 190]]);
    }

    #[test]
    fn an_open_window_has_no_arm_after_it() {
        let times = Times {
            attach_ns: 20,
            open_ns: 160,
            close_ns: None,
            detached_ns: None,
        };
        assert_eq!(arms(&times), [vec![0, 10], vec![160, 170, 180, 190], vec![]]);
    }

    #[test]
    fn while_the_profiler_detaches_nothing_counts_as_after() {
        let times = Times {
            attach_ns: 20,
            open_ns: 30,
            close_ns: Some(60),
            detached_ns: None,
        };
        assert_eq!(arms(&times), [vec![0, 10], vec![30, 40, 50], vec![]]);
    }
}
