//! The largest of many, in one pass and with memory for few.

use std::cmp::Reverse;

/// The `limit` items of `items` with the largest keys, largest first; of equal keys the earlier
/// item. Holds at most twice as many as it gives, so that a list of ten out of ten million costs
/// neither a sort nor a copy of them.
pub fn largest<T, K: Ord + Copy>(items: impl IntoIterator<Item = T>, limit: usize, key: impl Fn(&T) -> K) -> Vec<T> {
    let room = limit.saturating_mul(2);
    let mut kept: Vec<(Reverse<K>, usize, T)> = Vec::new();
    // The key below which nothing comes in any more.
    let mut least: Option<K> = None;
    if limit == 0 {
        return Vec::new();
    }
    let order = |(key, at, _): &(Reverse<K>, usize, T)| (*key, *at);
    for (at, item) in items.into_iter().enumerate() {
        let key = key(&item);
        if least.is_some_and(|least| key <= least) {
            continue;
        }
        kept.push((Reverse(key), at, item));
        if kept.len() >= room {
            let (_, edge, _) = kept.select_nth_unstable_by_key(limit - 1, order);
            least = Some(edge.0.0);
            kept.truncate(limit);
        }
    }
    kept.sort_unstable_by_key(order);
    kept.truncate(limit);
    kept.into_iter().map(|(_, _, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_equal_keys_the_earlier_item_is_kept() {
        let items = [("a", 1), ("b", 2), ("c", 2), ("d", 2), ("e", 1)];
        let names = |limit| -> Vec<&str> {
            let found = largest(items, limit, |(_, key)| *key);
            found.into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(0), [""; 0]);
        assert_eq!(names(2), ["b", "c"]);
        assert_eq!(names(4), ["b", "c", "d", "a"]);
        assert_eq!(names(9), ["b", "c", "d", "a", "e"]);
    }

    proptest! {
        #[test]
        fn it_is_what_a_stable_sort_puts_first(keys in prop::collection::vec(0_u8..20, 0..200), limit in 0_usize..30) {
            let mut sorted: Vec<(usize, u8)> = keys.iter().copied().enumerate().collect();
            sorted.sort_by_key(|(_, key)| Reverse(*key));
            sorted.truncate(limit);
            prop_assert_eq!(largest(keys.iter().copied().enumerate(), limit, |(_, key)| *key), sorted);
        }
    }
}
