//! One moment on three clocks. CUPTI's clock is each process's own, so every process tells its
//! moments, in its slot once a second and in every segment that it writes.

/// One moment on three clocks, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// CUPTI's clock, in which records have their times; 0 where it is not known.
    pub cupti_ns: u64,
    /// `CLOCK_MONOTONIC`.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME`.
    pub realtime_ns: u64,
}

impl Moment {
    /// A time of CUPTI's clock as one of `CLOCK_REALTIME`; `None` where this moment knows nothing
    /// of CUPTI's clock, or the time lies before 1970.
    pub fn realtime_of(&self, cupti_ns: u64) -> Option<u64> {
        on(self.cupti_ns, self.realtime_ns, cupti_ns)
    }

    /// A time of CUPTI's clock as one of `CLOCK_MONOTONIC`, in the same way.
    pub fn monotonic_of(&self, cupti_ns: u64) -> Option<u64> {
        on(self.cupti_ns, self.monotonic_ns, cupti_ns)
    }
}

fn on(cupti_ns: u64, other_ns: u64, asked_ns: u64) -> Option<u64> {
    if cupti_ns == 0 {
        return None;
    }
    if asked_ns >= cupti_ns {
        other_ns.checked_add(asked_ns - cupti_ns)
    } else {
        other_ns.checked_sub(cupti_ns - asked_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_and_behind_a_moment_are_told_from_it() {
        let moment = Moment {
            cupti_ns: 1_000,
            monotonic_ns: 50,
            realtime_ns: 7_000,
        };
        assert_eq!(moment.realtime_of(1_010), Some(7_010));
        assert_eq!(moment.monotonic_of(990), Some(40));
        assert_eq!(moment.monotonic_of(900), None);
        assert_eq!(moment.realtime_of(u64::MAX), None);
        assert_eq!(Moment::default().realtime_of(5), None);
    }
}
