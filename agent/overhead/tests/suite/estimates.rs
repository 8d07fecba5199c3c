//! How near estimates are, how often intervals hold the truth, and what verdicts come of them.

use flopwatch_overhead::{Budget, Estimate, Measure, Reason, Verdict, decide, estimate};

use crate::target::{Target, repeat, share};

const WINDOWS: u64 = 400;

fn estimates(target: Target, windows: u64) -> Vec<Estimate> {
    repeat(target, windows)
        .filter_map(|target| estimate(&target.arms(), Measure::PerSecond).ok())
        .collect()
}

fn near(target: Target) -> f64 {
    let truth = (target.harm * 10_000.0) as i64;
    let all = estimates(target, WINDOWS);
    let hits = all
        .iter()
        .filter(|found| (found.slowdown_basis_points - truth).abs() <= 100);
    share(hits.count(), WINDOWS)
}

/// The part of the estimates whose interval holds the truth, the mean width in basis points, and
/// the part of windows with one.
fn coverage(target: Target) -> (f64, f64, f64) {
    let truth = (target.harm * 10_000.0) as i64;
    let all = estimates(target, WINDOWS);
    let hits = all
        .iter()
        .filter(|found| found.low_basis_points <= truth && truth <= found.high_basis_points);
    let width: i64 = all
        .iter()
        .map(|found| found.high_basis_points - found.low_basis_points)
        .sum();
    let estimated = all.len() as u64;
    (
        share(hits.count(), estimated),
        width as f64 / estimated as f64,
        share(all.len(), WINDOWS),
    )
}

#[test]
fn an_estimate_up_to_the_budget_is_within_a_percentage_point_in_95_of_100_windows() {
    for harm in [0.0, 0.02, 0.05, 0.1, 0.2] {
        let target = Target {
            harm,
            ..Target::default()
        };
        let found = near(target);
        let alone = near(Target { after_s: 0, ..target });
        let longer = near(Target {
            before_s: 90,
            after_s: 0,
            ..target
        });
        println!("harm {harm}: within a point {found}, without the time after {alone}, that with 90 s before {longer}");
        // The error of a slowdown grows with it: of 5,000 windows at 20 %, 93 % are within a point.
        let least = if harm < 0.2 { 0.95 } else { 0.92 };
        assert!(found >= least && longer >= least && alone >= 0.88);
    }
}

#[test]
fn intervals_hold_the_truth_in_95_of_100_windows() {
    for harm in [0.0, 0.05, 0.2] {
        for after_s in [30, 0] {
            let found = coverage(Target {
                harm,
                after_s,
                ..Target::default()
            });
            println!("independent, harm {harm}, after {after_s} s: coverage, width, estimated {found:?}");
            assert!((0.92..=0.98).contains(&found.0) && found.2 > 0.99, "{found:?}");
        }
    }
}

#[test]
fn intervals_hold_the_truth_where_neighbouring_bins_correlate() {
    for phi in [0.3, 0.5, 0.7] {
        for seconds in [30, 60] {
            let found = coverage(Target {
                phi,
                before_s: seconds,
                during_s: seconds,
                after_s: seconds,
                ..Target::default()
            });
            println!("correlated {phi}, {seconds} s: coverage, width, estimated {found:?}");
            assert!((0.90..=0.99).contains(&found.0), "{found:?}");
        }
    }
}

#[test]
fn intervals_hold_the_truth_for_other_bins_and_samples() {
    let sparse = Target {
        sample_ms: 1000,
        ..Target::default()
    };
    let off = Target {
        offset_ms: 430,
        ..Target::default()
    };
    let noisy = Target {
        noise: 0.2,
        ..Target::default()
    };
    let short = Target {
        bin_ms: 250,
        noise: 0.04,
        before_s: 10,
        during_s: 10,
        after_s: 10,
        ..Target::default()
    };
    for (name, target) in [
        ("one sample a second", sparse),
        ("noise across bins", off),
        ("noise of 20 %", noisy),
        ("bins of 250 ms", short),
    ] {
        let found = coverage(target);
        println!("{name}: coverage, width, estimated {found:?}");
        assert!((0.92..=0.985).contains(&found.0), "{name}: {found:?}");
    }
}

#[test]
fn a_counter_of_three_steps_a_second_is_estimated_as_well() {
    let target = Target {
        per_second: 1.0 / 0.3,
        sample_ms: 20,
        harm: 0.05,
        ..Target::default()
    };
    let (found, held) = (near(target), coverage(target));
    println!("3.3 steps a second: within a point {found}; coverage, width, estimated {held:?}");
    assert!(found >= 0.95 && held.0 >= 0.92);
}

#[test]
fn a_program_of_few_steps_in_a_reading_is_estimated_as_well_where_the_end_of_each_is_known() {
    for (per_second, bin_ms) in [(50.0, 250), (20.0, 250), (1.0 / 0.3, 1000)] {
        for harm in [0.0, 0.02, 0.05, 0.2] {
            let target = Target {
                harm,
                ..Target::read_by_an_agent(per_second, bin_ms, true)
            };
            let (found, held) = (near(target), coverage(target));
            println!(
                "{per_second:.1} steps a second, harm {harm}: within a point {found}; coverage, width, estimated {held:?}"
            );
            let least = if harm < 0.2 { 0.95 } else { 0.92 };
            assert!(found >= least && (0.92..=0.98).contains(&held.0));
        }
    }
}

/// Medians of rates of 12 or 13 steps would be told as one or the other: 8 % apart.
#[test]
fn a_counter_of_few_units_in_a_reading_is_estimated_as_well_and_less_surely() {
    for (per_second, bin_ms) in [(500.0, 250), (50.0, 500), (20.0, 1000)] {
        for harm in [0.0, 0.02, 0.05, 0.2] {
            let target = Target {
                harm,
                ..Target::read_by_an_agent(per_second, bin_ms, false)
            };
            let (found, held) = (near(target), coverage(target));
            println!(
                "{per_second:.1} units a second, harm {harm}: within a point {found}; coverage, width, estimated {held:?}"
            );
            let least = if harm < 0.2 { 0.95 } else { 0.92 };
            assert!(found >= least && held.0 >= 0.92);
        }
    }
}

#[test]
fn verdicts_follow_the_harm() {
    for (harm, expected) in [
        (0.0, Verdict::Within),
        (0.05, Verdict::Within),
        (0.15, Verdict::Exceeded),
        (0.2, Verdict::Exceeded),
    ] {
        for after_s in [30, 0] {
            let target = Target {
                harm,
                after_s,
                ..Target::default()
            };
            let hits = repeat(target, 200)
                .filter(|target| decide(&target.arms(), Measure::PerSecond, &Budget::default()).verdict == expected);
            let found = share(hits.count(), 200);
            println!("harm {harm}, after {after_s} s: {expected:?} in {found}");
            assert!(found >= 0.95);
        }
    }
}

#[test]
fn harm_at_the_budget_is_rarely_called_either_way() {
    let at_budget = Target {
        harm: 0.1,
        ..Target::default()
    };
    let unsure = repeat(at_budget, 200).filter(|target| {
        decide(&target.arms(), Measure::PerSecond, &Budget::default()).reason == Reason::BudgetWithinInterval
    });
    let found = share(unsure.count(), 200);
    println!("harm at the budget: inconclusive in {found}");
    assert!(found >= 0.92);
}

#[test]
fn a_short_window_is_inconclusive_and_never_called_within() {
    for target in repeat(
        Target {
            during_s: 7,
            ..Target::default()
        },
        50,
    ) {
        let decision = decide(&target.arms(), Measure::PerSecond, &Budget::default());
        assert_eq!(
            (decision.verdict, decision.reason),
            (Verdict::Inconclusive, Reason::TooFewBins)
        );
    }
}

#[test]
fn the_rough_estimate_of_a_short_window_holds_the_truth_as_often_as_that_of_a_long_one() {
    for (during_s, harm) in [(3, 0.0), (4, 0.05), (5, 0.0), (7, 0.1)] {
        let target = Target {
            during_s,
            harm,
            ..Target::default()
        };
        let truth = (harm * 10_000.0) as i64;
        let found: Vec<Estimate> = repeat(target, WINDOWS)
            .filter_map(|target| decide(&target.arms(), Measure::PerSecond, &Budget::default()).estimate)
            .collect();
        let hits = found
            .iter()
            .filter(|found| found.low_basis_points <= truth && truth <= found.high_basis_points);
        let (held, estimated) = (share(hits.count(), found.len() as u64), share(found.len(), WINDOWS));
        println!("{during_s} s, harm {harm}: the interval of {estimated} holds it in {held}");
        assert!(held >= 0.92 && estimated >= 0.5);
    }
}
