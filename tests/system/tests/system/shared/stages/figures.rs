//! Times of several rounds, in few figures.

use std::fmt;

/// The least, the median and the most of some times in ms; zeros of none.
pub(super) struct Figures {
    pub(super) least: u64,
    pub(super) median: u64,
    pub(super) most: u64,
}

impl Figures {
    pub(super) fn of(mut times: Vec<u64>) -> Self {
        times.sort_unstable();
        let of = |at: usize| times.get(at).copied().unwrap_or_default();
        let end = times.len().saturating_sub(1);
        Self {
            least: of(0),
            median: of(end / 2),
            most: of(end),
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [least, median, most] = [self.least, self.median, self.most].map(seconds);
        write!(out, "{least} {median} {most}")
    }
}

/// How many times the median of the second the median of the first is.
pub(super) struct Beside<'a>(pub(super) &'a Figures, pub(super) &'a Figures);

impl fmt::Display for Beside<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = self.0.median.saturating_mul(100).checked_div(self.1.median);
        match hundredths {
            Some(hundredths) => write!(out, "x {}.{:02}", hundredths / 100, hundredths % 100),
            None => write!(out, "x -"),
        }
    }
}

/// Milliseconds as seconds.
pub(super) fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

#[test]
fn a_median_of_two_is_the_less_and_stands_beside_another() {
    let (one, other) = (Figures::of(vec![1500, 250]), Figures::of(vec![500, 750, 1000]));
    assert_eq!(one.to_string(), "0.250 0.250 1.500");
    assert_eq!(Beside(&one, &other).to_string(), "x 0.33");
    assert_eq!(Beside(&one, &Figures::of(Vec::new())).to_string(), "x -");
}
