//! Sums over more groups than are kept.

use std::collections::{BTreeMap, BTreeSet};

use flopwatch_fleet::{Bounds, GroupBy, OTHER_NAMES, Query, Row, Totals};

use crate::records::{DAY, capture, row};

const BOUNDS: Bounds = Bounds {
    groups: 50,
    resamples: 100,
    seed: 1,
};

#[test]
fn of_twenty_thousand_names_the_largest_are_kept_and_nothing_is_lost() {
    let mut random = fastrand::Rng::with_seed(3);
    let query = Query {
        group_by: GroupBy::Name,
        categories: BTreeSet::from(["cuda_kernel".to_owned()]),
        from_ns: DAY,
        until_ns: DAY + 1,
        drawn_only: true,
    };
    let mut totals = Totals::new(query, BOUNDS);
    let mut exact: BTreeMap<String, u128> = BTreeMap::new();
    for n in 0..400 {
        let capture = capture(&n.to_string(), 1.0);
        // Ten heavy names, of which half come late, and fifty that come once.
        let heavy = (0..10)
            .filter(|k| k % 2 == 0 || n >= 200)
            .map(|k| (format!("heavy-{k}"), 10_000 + k));
        let light = (0..50).map(|k| (format!("light-{n}-{k}"), random.i64(1..100)));
        let names = heavy.chain(light).chain([(OTHER_NAMES.to_owned(), 5)]);
        let rows: Vec<Row> = names
            .map(|(name, ns)| row(&capture, "cuda_kernel", &name, 1, ns))
            .collect();
        for row in &rows {
            *exact.entry(row.name.clone()).or_default() += u128::from(row.total_ns.unsigned_abs());
        }
        totals.add(&[capture], &rows);
    }
    let report = totals.report(20);
    let sum: u128 = exact.values().sum();
    assert_eq!(report.all.observed.total_ns, sum);
    let shown: u128 = report.groups.iter().map(|group| group.observed.total_ns).sum();
    assert_eq!(shown + report.others.observed.total_ns, sum);
    assert!(report.groups.iter().all(|group| group.key != OTHER_NAMES));
    assert_eq!(report.groups.len(), 20);
    let heavy: Vec<&str> = report.groups[..10].iter().map(|group| group.key.as_str()).collect();
    assert!(heavy.iter().all(|key| key.starts_with("heavy")), "{heavy:?}");
    for group in &report.groups {
        let (found, exact) = (group.observed.total_ns, exact[&group.key]);
        // Weights are 1, so that what was seen and what is estimated are the same.
        assert!(
            found <= exact && exact as f64 <= found as f64 + group.may_miss_ns,
            "{}",
            group.key
        );
    }
    // What came early and stayed is whole. What came late says what it may lack: little beside what
    // it has, and about as much as a group would have if the light ones were one for each group
    // that is kept.
    let early = report.groups.iter().filter(|group| group.may_miss_ns == 0.0).count();
    assert!(early >= 5, "{early}");
    let light: u128 = exact
        .iter()
        .filter(|(name, _)| name.starts_with("light"))
        .map(|(_, ns)| ns)
        .sum();
    let most = report.groups.iter().map(|group| group.may_miss_ns).fold(0.0, f64::max);
    println!("light names have {light} ns, and at most {most} ns may be missing");
    assert!(most <= 2.0 * light as f64 / BOUNDS.groups as f64);
    // Ten heavy ones and ten more are shown, so that nearly all of the twenty thousand are others.
    assert!(report.other_groups >= 19_990, "{}", report.other_groups);
    assert_eq!(report.others.captures, None);
}
