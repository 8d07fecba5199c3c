//! How far a program is, by its own reports.

/// What it said: Unix nanoseconds and steps done, in the order of the lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    reports: Vec<(u64, u64)>,
}

impl Pace {
    /// From its output, whose last line may still be in the making.
    pub(crate) fn parse(output: &str) -> Self {
        let whole = output.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let report = |line: &str| {
            let field = |name: &str| {
                line.split(' ')
                    .find_map(|word| word.strip_prefix(name)?.parse::<u64>().ok())
            };
            Some((field("t=")?, field("steps=").or_else(|| field("ranges="))?))
        };
        Self {
            reports: whole.lines().filter_map(report).collect(),
        }
    }

    /// When it last said something, and how much it had done by then.
    pub(crate) fn last(&self) -> Option<(u64, u64)> {
        self.reports.last().copied()
    }

    /// When it first said something.
    pub(crate) fn first_ns(&self) -> Option<u64> {
        self.reports.first().map(|(time, _)| *time)
    }

    /// Steps per second between two times, by the first and the last report inside; none where
    /// there are not two.
    pub(crate) fn per_second(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        let mut inside = self.reports.iter().filter(|(time, _)| (from_ns..=to_ns).contains(time));
        let (first, last) = (inside.next()?, inside.next_back()?);
        let seconds = std::time::Duration::from_nanos(last.0.checked_sub(first.0)?).as_secs_f64();
        let steps = u32::try_from(last.1.checked_sub(first.1)?).ok()?;
        (seconds > 0.0).then(|| f64::from(steps) / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_that_of_the_reports_inside_the_window() {
        let text = "start pid=1\nt=1000000000 steps=10\nt=2000000000 steps=30\nt=3000000000 pid=7 ranges=70 wait=x\nt=4000000000 steps=9";
        let pace = Pace::parse(text);
        assert_eq!(pace.last(), Some((3_000_000_000, 70)));
        assert_eq!(pace.first_ns(), Some(1_000_000_000));
        assert_eq!(pace.per_second(0, u64::MAX), Some(30.0));
        assert_eq!(pace.per_second(1_500_000_000, u64::MAX), Some(40.0));
        assert_eq!(pace.per_second(2_500_000_000, u64::MAX), None);
    }
}
