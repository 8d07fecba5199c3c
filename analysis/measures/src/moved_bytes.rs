//! Bytes that several pieces of work moved together.

/// A sum of sizes. It is not known as soon as one of them is not: a part of a sum is no sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovedBytes(Option<u64>);

impl Default for MovedBytes {
    fn default() -> Self {
        Self(Some(0))
    }
}

impl MovedBytes {
    /// Of work of which some size is not known.
    pub const UNKNOWN: Self = Self(None);

    /// Adds the size of one piece; `None` where the source does not say it.
    pub fn add(&mut self, bytes: Option<u64>) {
        let both = self.0.zip(bytes);
        self.0 = both.map(|(sum, bytes)| sum.saturating_add(bytes));
    }

    /// The sum in bytes; `None` where it is not known.
    pub const fn known(self) -> Option<u64> {
        self.0
    }
}

impl FromIterator<Option<u64>> for MovedBytes {
    fn from_iter<I: IntoIterator<Item = Option<u64>>>(sizes: I) -> Self {
        let mut sum = Self::default();
        for bytes in sizes {
            sum.add(bytes);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::MovedBytes;

    #[test]
    fn a_sum_with_a_size_that_is_not_said_is_not_known() {
        let of = |sizes: &[Option<u64>]| sizes.iter().copied().collect::<MovedBytes>().known();
        assert_eq!(of(&[]), Some(0));
        assert_eq!(of(&[Some(2), Some(3)]), Some(5));
        assert_eq!(of(&[Some(2), None, Some(3)]), None);
        assert_eq!(of(&[Some(u64::MAX), Some(1)]), Some(u64::MAX));
    }
}
