//! How often the statuses of captures may be written: a function of the captures that have not
//! ended and of a bound.

use flopwatch_api::capture::{MAX_STATUS_INTERVAL_SECONDS, MIN_STATUS_INTERVAL_SECONDS};

/// Seconds that rates are counted in writes per: whole numbers add up to the same in any order.
const RATE_SCALE_SECONDS: u64 = 1_000_000;

/// Writes of captures' statuses that the cluster allows, and those that captures may make already.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// The rate that is allowed, in writes per [`RATE_SCALE_SECONDS`].
    bound: u64,
    /// The rate that captures use already, in writes per [`RATE_SCALE_SECONDS`].
    taken: u64,
}

impl Budget {
    /// What `running` captures leave of `bound` writes per second. `running` are the intervals of
    /// all captures that have not ended, in seconds.
    pub fn new(bound: u32, running: impl IntoIterator<Item = i32>) -> Self {
        Self {
            bound: RATE_SCALE_SECONDS * u64::from(bound),
            taken: running.into_iter().map(rate).sum(),
        }
    }

    /// The interval of a capture that is made now, in seconds. From here on it counts as running.
    pub fn take(&mut self) -> i32 {
        let fits = |interval: &i32| self.taken + rate(*interval) <= self.room(*interval);
        let interval = (MIN_STATUS_INTERVAL_SECONDS..=MAX_STATUS_INTERVAL_SECONDS).find(fits);
        let interval = interval.unwrap_or(MAX_STATUS_INTERVAL_SECONDS);
        self.taken += rate(interval);
        interval
    }

    /// The rate up to which captures may be made with that interval: a third of the bound with the
    /// shortest, all of it with the longest. A capture keeps its interval for life, so those that
    /// come first must leave room for those that come next. Shares of equal size,
    /// `running / bound`, would add up to three times the bound where a thousand captures are made
    /// one after another.
    fn room(&self, interval: i32) -> u64 {
        let longest = seconds(MAX_STATUS_INTERVAL_SECONDS);
        self.bound * (longest / 2 + seconds(interval)) / (longest / 2 + longest)
    }
}

/// The rate of a capture with that interval.
fn rate(interval: i32) -> u64 {
    RATE_SCALE_SECONDS.div_ceil(seconds(interval))
}

fn seconds(interval: i32) -> u64 {
    let interval = interval.clamp(MIN_STATUS_INTERVAL_SECONDS, MAX_STATUS_INTERVAL_SECONDS);
    u64::from(interval.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: u32 = 50;

    /// Intervals of captures that are made one after another while none ends.
    fn made(bound: u32, captures: usize) -> Vec<i32> {
        let mut budget = Budget::new(bound, []);
        (0..captures).map(|_| budget.take()).collect()
    }

    /// Writes per second of captures with these intervals.
    fn writes(intervals: &[i32]) -> f64 {
        intervals.iter().map(|interval| f64::from(*interval).recip()).sum()
    }

    #[test]
    fn few_captures_are_written_every_two_seconds_and_many_less_often() {
        for (running, interval) in [(0, 2), (34, 2), (50, 8), (100, 15), (300, 31), (1000, 59), (5000, 60)] {
            assert_eq!(made(BOUND, running + 1)[running], interval, "{running} run");
        }
    }

    #[test]
    fn captures_that_are_made_one_after_another_stay_within_the_bound() {
        let all = made(BOUND, 1000);
        assert!(all.is_sorted(), "each counts those before it");
        assert!(writes(&all) <= 50.0, "{} a second", writes(&all));
        let wide = made(100, 2000);
        assert!(writes(&wide) <= 100.0, "{} a second", writes(&wide));
        let narrow = made(1, 20);
        assert!(writes(&narrow) <= 1.0, "{} a second", writes(&narrow));
        assert_eq!(made(1, 1), [3], "one alone has no more than its share");
    }

    #[test]
    fn beyond_what_the_bound_holds_each_capture_adds_no_more_than_a_write_a_minute() {
        let over = made(BOUND, 2000);
        assert!(over[1100..].iter().all(|interval| *interval == 60));
        assert!(writes(&over) < 50.0 + 1000.0 / 60.0);
    }

    #[test]
    fn captures_that_replace_others_share_the_bound_evenly_after_a_while() {
        let mut running = made(BOUND, 1000);
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..10_000 {
            running.swap_remove(random.usize(..running.len()));
            running.push(Budget::new(BOUND, running.iter().copied()).take());
        }
        assert!(writes(&running) <= 50.0);
        assert!(
            running.iter().all(|interval| (25..=35).contains(interval)),
            "{running:?}"
        );
    }

    /// A capture of the simulation: seconds of its begin and its end, and its interval.
    struct Simulated {
        begin: usize,
        end: usize,
        interval: usize,
    }

    /// Writes in each second of half an hour in which a thousand captures run, come as fast as a
    /// hundred a second, and last half a minute to five and a half. The first and the last write of
    /// each are not counted: no interval holds them back.
    fn simulate(seed: u64) -> Vec<usize> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut live: Vec<Simulated> = Vec::new();
        let second = |now: usize| {
            live.retain(|capture| capture.end > now);
            for _ in 0..100.min(1000 - live.len()) {
                let running = live.iter().map(|capture| i32::try_from(capture.interval).unwrap());
                let interval = usize::try_from(Budget::new(BOUND, running).take()).unwrap();
                let end = now + random.usize(30..=330);
                live.push(Simulated {
                    begin: now,
                    end,
                    interval,
                });
            }
            let due =
                |capture: &&Simulated| now > capture.begin && (now - capture.begin).is_multiple_of(capture.interval);
            live.iter().filter(due).count()
        };
        (0..1800).map(second).collect()
    }

    #[test]
    fn a_thousand_captures_write_no_more_in_any_minute_than_the_bound_allows() {
        for seed in 0..4 {
            let written = simulate(seed);
            let busiest = written.windows(60).map(|minute| minute.iter().sum::<usize>()).max();
            let busiest = busiest.unwrap();
            assert!(busiest <= 60 * 50, "{busiest} writes in a minute");
            assert!(
                busiest > 60 * 25,
                "a bound that is hardly used makes users wait for nothing"
            );
        }
    }
}
