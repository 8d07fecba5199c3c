//! Text of JSON that serde_json has no form for.

use std::fmt;

/// Nanoseconds as the microseconds of Chrome traces, exact: three digits behind the point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Microseconds(pub(super) u64);

impl fmt::Display for Microseconds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_are_exact_behind_the_point() {
        for (ns, text) in [
            (0, "0.000"),
            (7, "0.007"),
            (1_234_567, "1234.567"),
            (u64::MAX, "18446744073709551.615"),
        ] {
            assert_eq!(Microseconds(ns).to_string(), text);
        }
    }
}
