//! Sums against fleets whose every window is known.

use std::collections::BTreeSet;

use flopwatch_fleet::{Bounds, CaptureRow, GroupBy, Query, Report, Row, Totals};

use crate::records::{DAY, capture, row};

const PLANTED: &str = "planted";

fn query(group_by: GroupBy) -> Query {
    Query {
        group_by,
        categories: BTreeSet::from(["cuda_kernel".to_owned()]),
        from_ns: DAY,
        until_ns: DAY + 1_000_000_000,
        drawn_only: true,
    }
}

/// Every window that a fleet had, whether it was drawn or not.
struct Window {
    probability: f64,
    planted_ns: i64,
    rest_ns: i64,
}

/// Many windows of an image that is seldom drawn and full of the planted kernel, and few of images
/// that are drawn often and hardly have it.
fn fleet() -> Vec<Window> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut windows = Vec::new();
    for (count, probability, share) in [(10_000, 0.005, 0.30), (2_000, 0.05, 0.10), (200, 0.5, 0.02)] {
        for _ in 0..count {
            // Busy for a tenth of the window or all of it, and the planted kernel more or less.
            let busy = 1e9 + 9e9 * random.f64() * random.f64();
            let planted = busy * share * (0.5 + random.f64());
            windows.push(Window {
                probability,
                planted_ns: whole(planted),
                rest_ns: whole(busy - planted),
            });
        }
    }
    windows
}

#[allow(clippy::cast_possible_truncation, reason = "a few seconds")]
fn whole(ns: f64) -> i64 {
    ns as i64
}

/// What a schedule that draws by that seed finds out.
fn drawn(fleet: &[Window], seed: u64) -> Report {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut totals = Totals::new(query(GroupBy::Name), Bounds::default());
    for (place, window) in fleet.iter().enumerate() {
        if random.f64() >= window.probability {
            continue;
        }
        let capture = capture(&format!("{seed}-{place}"), window.probability);
        let rows = [
            row(&capture, "cuda_kernel", PLANTED, 1, window.planted_ns),
            row(&capture, "cuda_kernel", "gemm", 2, window.rest_ns / 4),
            row(
                &capture,
                "cuda_kernel",
                "copy",
                1,
                window.rest_ns - window.rest_ns / 4 * 2,
            ),
            // Neither of this category nor of a capture that is there.
            row(&capture, "nvtx_range", PLANTED, 1, window.rest_ns),
        ];
        totals.add(&[capture], &rows);
    }
    totals.report(10)
}

#[test]
fn a_planted_kernel_lies_inside_its_interval_and_the_unweighted_share_does_not() {
    let fleet = fleet();
    let planted: f64 = fleet.iter().map(|window| window.planted_ns as f64).sum();
    let all: f64 = fleet
        .iter()
        .map(|window| (window.planted_ns + window.rest_ns) as f64)
        .sum();
    let share = planted / all;
    let (mut share_inside, mut total_inside, mut calls_inside, mut unweighted_inside) = (Vec::new(), 0, 0, 0);
    let (mut estimates, mut widths, mut observed) = (Vec::new(), 0.0, 0.0);
    let seeds: u32 = 300;
    for seed in 0..u64::from(seeds) {
        let report = drawn(&fleet, seed);
        let found = report.groups.iter().find(|group| group.key == PLANTED).unwrap();
        let inside = |estimate: &flopwatch_fleet::Estimate, truth: f64| {
            let (low, high) = estimate.interval.unwrap();
            (low..=high).contains(&truth)
        };
        share_inside.push(inside(&found.share, share));
        total_inside += u32::from(inside(&found.total_ns, planted));
        calls_inside += u32::from(inside(&found.calls, fleet.len() as f64));
        unweighted_inside += u32::from(inside(&found.share, found.observed.share.unwrap()));
        let (low, high) = found.share.interval.unwrap();
        widths += (high - low) / f64::from(seeds);
        estimates.push(found.share.value.unwrap());
        observed += found.observed.share.unwrap() / f64::from(seeds);
    }
    let count = |inside: &[bool]| inside.iter().filter(|inside| **inside).count();
    let mean = estimates.iter().sum::<f64>() / estimates.len() as f64;
    let variance = estimates.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / estimates.len() as f64;
    let ideal = 2.0 * 1.96 * variance.sqrt();
    println!(
        "share {share:.4}: estimate {mean:.4} on average, inside {} of 100 and {} of {seeds}; total inside {total_inside}, calls {calls_inside}; \
         interval {widths:.4} wide, ideal {ideal:.4}; unweighted {observed:.4}, inside {unweighted_inside}",
        count(&share_inside[..100]),
        count(&share_inside),
    );
    assert!(count(&share_inside[..100]) >= 93, "{}", count(&share_inside[..100]));
    let least = seeds * 93 / 100;
    assert!(count(&share_inside) >= usize::try_from(least).unwrap());
    assert!(total_inside >= least && calls_inside >= least);
    // Neither the estimate nor the interval is right by being useless.
    assert!((mean - share).abs() < share * 0.01, "{mean} against {share}");
    assert!(widths < ideal * 1.1, "{widths} against {ideal}");
    // What is drawn often weighs too much where nothing is weighted.
    assert!(observed < share * 0.7, "{observed} against {share}");
    assert!(unweighted_inside <= seeds / 100, "{unweighted_inside}");
}

#[test]
fn captures_that_failed_or_lack_the_category_are_counted() {
    let fine: Vec<CaptureRow> = (0..10).map(|n| capture(&format!("fine-{n}"), 0.5)).collect();
    let mut failed = capture("failed", 0.25);
    failed.succeeded = false;
    failed.categories = Vec::new();
    let mut without = capture("without", 0.5);
    without.categories = vec!["nvtx_range".to_owned()];
    let mut early = capture("early", 0.5);
    early.window_start = DAY - 1;
    let mut asked = capture("asked", 1.0);
    asked.trigger = "Manual".to_owned();
    let rows: Vec<Row> = fine
        .iter()
        .chain([&early, &asked])
        .map(|capture| row(capture, "cuda_kernel", "gemm", 2, 100))
        .collect();
    let captures = [fine.clone(), vec![failed, without, early, asked, fine[0].clone()]].concat();
    let mut totals = Totals::new(query(GroupBy::Name), Bounds::default());
    totals.add(&captures, &rows);
    totals.add(&[], &rows[..3]);
    let report = totals.report(10);
    assert_eq!((report.captures, report.failed, report.not_captured), (12, 1, 2));
    assert_eq!((report.repeated, report.rows_without_capture), (1, 3));
    let [group] = report.groups.as_slice() else {
        panic!("{report:?}")
    };
    assert_eq!(
        (group.observed.total_ns, group.observed.calls, group.captures),
        (2_000, 20, Some(10))
    );
    let close = |found: Option<f64>, expected: f64| assert!((found.unwrap() - expected).abs() < 1e-9, "{found:?}");
    close(group.total_ns.value, 4_000.0);
    close(group.calls.value, 40.0);
    close(group.share.value, 1.0);
    // Weights: ten of 2, one of 4 that failed, one of 2 without kernels.
    close(report.captured_share, 20.0 / 26.0);
    close(Some(report.window_ns), 20.0 * 10_000_000_000.0);
    // Every share of one group is all of it; its total is not known as well.
    assert_eq!(group.share.interval, Some((1.0, 1.0)));
    let (low, high) = group.total_ns.interval.unwrap();
    assert!(low < 4_000.0 && 4_000.0 < high);

    let mut all = Totals::new(
        Query {
            drawn_only: false,
            ..query(GroupBy::Name)
        },
        Bounds::default(),
    );
    all.add(&captures, &rows);
    assert_eq!(all.report(10).captures, 13);
}

#[test]
fn of_few_captures_no_interval_is_given() {
    let mut totals = Totals::new(query(GroupBy::Name), Bounds::default());
    for n in 0..8 {
        let report = totals.report(5);
        assert!(report.all.total_ns.interval.is_none(), "of {n} captures");
        let capture = capture(&n.to_string(), 0.5);
        let row = row(&capture, "cuda_kernel", "gemm", 1, 5);
        totals.add(&[capture], &[row]);
    }
    assert!(totals.report(5).all.total_ns.interval.is_some());
    let nothing = Totals::new(query(GroupBy::Name), Bounds::default()).report(5);
    assert_eq!((nothing.captured_share, nothing.all.share.value), (None, None));
}

#[test]
fn groups_are_names_images_or_nodes_whatever_the_order_of_files() {
    let captures: Vec<CaptureRow> = (0..30)
        .map(|n| CaptureRow {
            image: format!("image-{}", n % 2),
            node: format!("node-{}", n % 5),
            ..capture(&n.to_string(), 0.5)
        })
        .collect();
    let rows = |capture: &CaptureRow| {
        [
            row(capture, "cuda_kernel", "a", 1, 10),
            row(capture, "cuda_kernel", "b", 1, 30),
        ]
    };
    for (group_by, expected) in [
        (GroupBy::Name, vec![("b", 900), ("a", 300)]),
        (GroupBy::Image, vec![("image-0", 600), ("image-1", 600)]),
        (
            GroupBy::Node,
            vec![
                ("node-0", 240),
                ("node-1", 240),
                ("node-2", 240),
                ("node-3", 240),
                ("node-4", 240),
            ],
        ),
    ] {
        let mut one_by_one = Totals::new(query(group_by), Bounds::default());
        for capture in &captures {
            one_by_one.add(std::slice::from_ref(capture), &rows(capture));
        }
        let mut at_once = Totals::new(query(group_by), Bounds::default());
        let all: Vec<Row> = captures.iter().rev().flat_map(rows).collect();
        at_once.add(&captures, &all);
        let (one_by_one, at_once) = (one_by_one.report(9), at_once.report(9));
        let keys = |report: &Report| -> Vec<(String, u128)> {
            report
                .groups
                .iter()
                .map(|group| (group.key.clone(), group.observed.total_ns))
                .collect()
        };
        let expected: Vec<(String, u128)> = expected
            .into_iter()
            .map(|(key, total)| (key.to_owned(), total))
            .collect();
        assert_eq!(keys(&one_by_one), expected);
        assert_eq!(one_by_one, at_once);
    }
}
