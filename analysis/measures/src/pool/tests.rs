use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::interval::Interval;

fn timeline(changes: &[(u64, u64, i64, Option<u64>)]) -> Timeline {
    let mut timeline = Timeline::default();
    timeline.capture.duration_ns = 1000;
    let all = changes.iter().map(|(t_ns, address, bytes, allocated)| Allocation {
        t_ns: *t_ns,
        process: 1,
        device: Some(0),
        address: *address,
        bytes: *bytes,
        allocated: *allocated,
        reserved: allocated.map(|allocated| allocated + 50),
        ..Allocation::default()
    });
    timeline.capture.allocations = all.collect();
    timeline
}

fn only(changes: &[(u64, u64, i64, Option<u64>)]) -> Pool {
    let mut pools = Pool::all(&timeline(changes));
    assert_eq!(pools.len(), 1);
    pools.remove(0)
}

#[test]
fn a_peak_is_made_of_what_is_alive_then_and_of_what_was_before() {
    // 100 of before the capture: 40 of them are taken back at the end.
    let pool = only(&[
        (10, 1, 30, Some(130)),
        (20, 2, 20, Some(150)),
        (30, 1, -30, Some(120)),
        (40, 1, 70, Some(190)),
        (50, 2, -20, Some(170)),
        (60, 9, -40, Some(130)),
    ]);
    let peak = pool.peak();
    assert_eq!((peak.bytes, peak.t_ns), (190, 40));
    let alive: Vec<_> = pool.alive_at(peak).map(|one| (one.given_ns, one.bytes)).collect();
    assert_eq!(alive, [(20, 20), (40, 70)]);
    assert_eq!((pool.before_bytes, pool.before, pool.gaps), (100, Before::Totals, 0));
    assert_eq!((pool.unmatched_releases, pool.unmatched_bytes), (1, 40));
    assert_eq!(pool.most_unused(), Some((50, 10)));
    let lives: Vec<_> = pool
        .buffers
        .iter()
        .map(|one| (one.lifetime_ns(), one.release))
        .collect();
    let expected = [(20, Release::Recorded), (30, Release::Recorded), (960, Release::Never)];
    assert_eq!(lives, expected);
    assert!(pool.buffers[2].is_address_reused && !pool.buffers[1].is_address_reused);
}

#[test]
fn pools_together_are_the_sum_of_their_levels() {
    let mut all = timeline(&[(10, 1, 30, None), (20, 2, 5, None), (20, 1, -30, None)]);
    all.capture.allocations[1].device = Some(1);
    let pools = Pool::all(&all);
    let (before, changes) = merge_changes(&pools.iter().collect::<Vec<_>>());
    let levels: Vec<_> = changes.iter().map(|change| (change.t_ns, change.level_bytes)).collect();
    assert_eq!((before, levels), (0, vec![(10, 30), (20, 0), (20, 5)]));
}

#[test]
fn without_totals_what_was_before_is_what_is_taken_back_without_being_given_out() {
    let pool = only(&[(10, 1, 30, None), (20, 9, -40, None), (30, 1, 10, None)]);
    assert_eq!((pool.before_bytes, pool.before), (40, Before::AtLeast));
    let levels: Vec<u64> = pool.changes.iter().map(|change| change.level_bytes).collect();
    // With the third one the first was taken back unseen.
    assert_eq!(levels, [70, 30, 10]);
    assert_eq!(pool.buffers[0].release, Release::Unrecorded);
    // A source without addresses pairs nothing, and no level is below 0.
    let pool = only(&[(10, 0, 30, None), (20, 0, -40, None)]);
    assert_eq!(
        (pool.before_bytes, pool.end_bytes(), pool.has_addresses()),
        (10, 0, false)
    );
}

#[test]
fn totals_that_do_not_follow_are_counted_and_a_release_without_a_size_has_its_buffers() {
    let pool = only(&[(10, 1, 30, Some(30)), (20, 2, 5, Some(45)), (30, 1, 0, Some(15))]);
    assert_eq!((pool.gaps, pool.mismatched_releases, pool.end_bytes()), (1, 0, 15));
}

proptest! {
    #[test]
    fn levels_are_prefix_sums_and_the_peak_is_what_is_alive_and_was_before(
        steps in vec((0_u64..5, 1_u64..6, 1_i64..100), 1..60),
    ) {
        // Addresses in use are taken back, others are given out or were given out before.
        let (mut held, mut t) = (BTreeMap::<u64, i64>::new(), 0);
        let changes: Vec<_> = steps.iter().map(|(after, address, bytes)| {
            t += after;
            let bytes = match held.remove(address) {
                Some(given) => -given,
                None if bytes % 4 == 0 => -bytes,
                None => { held.insert(*address, *bytes); *bytes }
            };
            (t, *address, bytes, None)
        }).collect();
        let pool = only(&changes);
        let mut level = i64::try_from(pool.before_bytes).unwrap();
        let mut highest = level;
        for (change, (_, _, bytes, _)) in pool.changes.iter().zip(&changes) {
            level += bytes;
            highest = highest.max(level);
            prop_assert_eq!(change.level_bytes, u64::try_from(level).unwrap());
        }
        let peak = pool.peak();
        prop_assert_eq!(peak.bytes, u64::try_from(highest).unwrap());
        let alive: u64 = pool.alive_at(peak).map(|buffer| buffer.bytes).sum();
        // Of what was before, what is taken back later is still there at the peak.
        let mut seen = std::collections::BTreeSet::new();
        let mut before = 0;
        for (at, (_, address, bytes, _)) in changes.iter().enumerate() {
            let is_given = *bytes > 0;
            let is_known = if is_given { seen.insert(*address) } else { seen.remove(address) };
            prop_assert!(is_known || !is_given);
            if !is_given && !is_known && peak.change.is_none_or(|peak| at > peak) {
                before += bytes.unsigned_abs();
            }
        }
        prop_assert_eq!(peak.bytes, alive + before);
        let bins = Bins { window: Interval::new(0, 1000), count: 7 };
        let points = pool.over(bins);
        prop_assert_eq!(points.iter().map(|point| point.allocated_bytes).max(), Some(peak.bytes));
    }
}
