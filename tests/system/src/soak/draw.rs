//! Draws by shares.

use fastrand::Rng;

/// Draws one of these, each by its share; none where there is none.
pub(super) fn drawn<T: Copy>(random: &mut Rng, shares: &[(T, u32)]) -> Option<T> {
    let all: u32 = shares.iter().map(|(_, share)| share).sum();
    if all == 0 {
        return None;
    }
    let mut place = random.u32(..all);
    shares.iter().find_map(|(candidate, share)| {
        if place < *share {
            return Some(*candidate);
        }
        place -= share;
        None
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_is_drawn_by_its_share_and_nothing_of_nothing() {
        let (mut random, mut seen) = (Rng::with_seed(5), BTreeMap::new());
        for _ in 0..4000 {
            let one = drawn(&mut random, &[('a', 3), ('b', 0), ('c', 1)]).unwrap();
            *seen.entry(one).or_insert(0) += 1;
        }
        assert_eq!(seen.keys().collect::<Vec<_>>(), [&'a', &'c']);
        assert!((2700..3300).contains(&seen[&'a']), "{seen:?}");
        assert_eq!(drawn::<char>(&mut random, &[]), None);
    }
}
