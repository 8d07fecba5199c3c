//! The part of the ring that is asked for.

use flopwatch_pipeline::transform::{EarlierSamples, SampledSeries};

use super::track::{ROUND_INTERVAL, Track};

/// Source of what NVML said.
pub(super) const NVML: &str = "nvml";
/// Source of what the cgroups said.
pub(super) const CGROUP: &str = "cgroup";

/// From when to when, in ns since 1970; both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: u64,
    pub(crate) until: u64,
}

/// What a series is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'a> {
    pub(crate) source: &'a str,
    pub(crate) device: &'a str,
    pub(crate) metric: &'a str,
    pub(crate) unit: &'a str,
}

impl Span {
    fn holds(self, at: u64) -> bool {
        (self.from..=self.until).contains(&at)
    }

    /// What both have; none where they share no time.
    pub(crate) fn within(self, other: Self) -> Option<Self> {
        let shared = Self {
            from: self.from.max(other.from),
            until: self.until.min(other.until),
        };
        (shared.from <= shared.until).then_some(shared)
    }

    /// Adds the points of one column within the span, if there are any.
    pub(crate) fn add(self, found: &mut EarlierSamples, track: &Track, column: usize, name: Name<'_>) {
        let points = track.column(column).filter(|(at, _)| self.holds(*at));
        let (t_utc_ns, value): (Vec<u64>, Vec<f64>) = points.unzip();
        if t_utc_ns.is_empty() {
            return;
        }
        found.series.push(SampledSeries {
            source: name.source.to_owned(),
            device: name.device.to_owned(),
            metric: name.metric.to_owned(),
            unit: name.unit.to_owned(),
            t_utc_ns,
            value,
        });
    }

    /// Counts what a track that has a row each round lacks within the span: between its rows, and
    /// after the last one up to `end` where it should have gone on.
    pub(crate) fn count_gaps(self, found: &mut EarlierSamples, track: &Track, end: Option<u64>) {
        let round = u64::try_from(ROUND_INTERVAL.as_nanos()).unwrap_or(u64::MAX);
        let end = end.map(|end| end.min(self.until));
        let mut times = track.times().filter(|at| self.holds(*at)).chain(end);
        let Some(first) = times.next() else { return };
        let (mut last, mut taken) = (first, 0_u64);
        for at in times {
            found.longest_gap_ns = found.longest_gap_ns.max(at.saturating_sub(last));
            (last, taken) = (at, taken.saturating_add(1));
        }
        // Of all together: a round that comes late is followed by one that seems to come early.
        let due = last.saturating_sub(first).saturating_add(round / 2) / round;
        found.missed = found.missed.saturating_add(due.saturating_sub(taken));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENTH: u64 = 100_000_000;
    const NOW: u64 = 1_790_000_000_000_000_000;
    const ALL: Span = Span {
        from: 0,
        until: u64::MAX,
    };

    fn track(tenths: &[u64]) -> Track {
        let mut track = Track::new(1, 100);
        for at in tenths {
            track.push(NOW + at * TENTH, [Some(1.0)]);
        }
        track
    }

    fn gaps(tenths: &[u64], span: Span, end: Option<u64>) -> (u64, u64) {
        let mut found = EarlierSamples::default();
        span.count_gaps(&mut found, &track(tenths), end);
        (found.missed, (found.longest_gap_ns + TENTH / 2) / TENTH)
    }

    #[test]
    fn rounds_that_are_not_there_are_counted() {
        assert_eq!(gaps(&[0, 1, 2, 3], ALL, None), (0, 1));
        assert_eq!(gaps(&[0, 1, 4, 5, 7], ALL, None), (3, 3));
        assert_eq!(gaps(&[0], ALL, None), (0, 0), "one row has no gap");
        assert_eq!(gaps(&[], ALL, Some(NOW)), (0, 0));
    }

    #[test]
    fn a_round_that_came_late_is_not_missed() {
        let mut late = Track::new(1, 100);
        for milliseconds in [0, 100, 280, 310, 400] {
            late.push(NOW + milliseconds * TENTH / 100, [None]);
        }
        let mut found = EarlierSamples::default();
        ALL.count_gaps(&mut found, &late, None);
        assert_eq!(found.missed, 0);
        assert!(
            found.longest_gap_ns > TENTH * 3 / 2,
            "it is the longest gap all the same"
        );
    }

    #[test]
    fn a_track_that_should_have_gone_on_lacks_what_is_after_its_last_row() {
        assert_eq!(gaps(&[0, 1], ALL, Some(NOW + 4 * TENTH)), (2, 3));
        let span = Span {
            from: NOW,
            until: NOW + 2 * TENTH,
        };
        assert_eq!(
            gaps(&[0, 1], span, Some(NOW + 9 * TENTH)),
            (0, 1),
            "within the span alone"
        );
    }

    #[test]
    fn a_series_has_the_points_of_the_span_alone() {
        let name = Name {
            source: "nvml",
            device: "GPU-1",
            metric: "power",
            unit: "watts",
        };
        let mut found = EarlierSamples::default();
        let span = Span {
            from: NOW + TENTH - TENTH / 2,
            until: NOW + 2 * TENTH,
        };
        span.add(&mut found, &track(&[0, 1, 2, 3]), 0, name);
        span.add(&mut found, &track(&[7]), 0, name);
        let [series] = &found.series[..] else {
            panic!("none without a point: {found:?}");
        };
        assert_eq!(series.value, [1.0, 1.0]);
    }
}
