//! Whether the draws are even, and their probabilities true.

use std::collections::BTreeMap;

use flopwatch_schedule::{Account, Class, Ledger, Pod, Slowdown};
use serde_json::json;

use crate::fleet::{after, class, decided, follow, noon, planned_by, pods, spec};

/// How many standard deviations a sum of squares is from what chance makes of it, by the
/// approximation of Wilson and Hilferty.
fn deviations(chi_squared: f64, freedom: f64) -> f64 {
    let spread = 2.0 / (9.0 * freedom);
    ((chi_squared / freedom).cbrt() - (1.0 - spread)) / spread.sqrt()
}

/// Beyond which p is below 0.01.
const P_001: f64 = 2.326;

fn chi_squared(counts: &[f64]) -> f64 {
    let expected = counts.iter().sum::<f64>() / f64::from(u32::try_from(counts.len()).unwrap());
    counts.iter().map(|count| (count - expected).powi(2) / expected).sum()
}

#[test]
fn a_day_covers_a_thousand_pods_evenly_and_their_times_cover_the_slot() {
    let spec = spec(json!({ "jitterSeconds": 120, "select": { "perRun": { "percent": 10 } } }));
    let fleet = pods(1_000);
    let mut history = decided(noon());
    let plans = follow(&spec, &fleet, &mut history, noon(), after(noon(), 86_400), 60);
    let mut by_pod: BTreeMap<&str, f64> = fleet.iter().map(|pod| (pod.uid.as_str(), 0.0)).collect();
    for run in plans.iter().flat_map(|plan| &plan.runs) {
        *by_pod.get_mut(run.pod_uid.as_str()).unwrap() += 1.0;
    }
    let counts: Vec<f64> = by_pod.into_values().collect();
    // A pod is drawn or not, one time in ten, in each slot: its count varies by nine tenths of what
    // counts of rare events do.
    let pods = deviations(chi_squared(&counts) / 0.9, 999.0);
    println!("{} windows; pods: {pods:.2} deviations", counts.iter().sum::<f64>());
    assert!(pods.abs() < P_001, "{pods}");

    // The time of each pod in its slots is drawn once.
    let at: Vec<f64> = {
        let all = crate::fleet::spec(json!({}));
        let plans = follow(&all, &fleet, &mut decided(noon()), noon(), after(noon(), 900), 30);
        let mut bins = vec![0.0; 30];
        for run in plans.iter().flat_map(|plan| &plan.runs) {
            bins[usize::try_from(run.opens.as_second().rem_euclid(900) / 30).unwrap()] += 1.0;
        }
        bins
    };
    let time = deviations(chi_squared(&at), 29.0);
    println!("times: {time:.2} deviations");
    assert!(time.abs() < P_001, "{time}");
}

/// Pods of three images, in which the planted cost of each pod is known.
fn images() -> Vec<(Pod, f64)> {
    let sizes = [(300, 1.0), (40, 7.0), (3, 20.0)];
    let mut images = Vec::new();
    for (image, (size, cost)) in sizes.into_iter().enumerate() {
        for mut pod in pods(size) {
            pod.uid = format!("{image}-{}", pod.uid);
            pod.class.image_digest = format!("sha256:{image}");
            images.push((pod, cost));
        }
    }
    images
}

#[test]
fn a_sum_over_captures_divided_by_their_probabilities_is_that_of_all_pods_even_where_pods_rest() {
    let spec = spec(json!({
        "session": { "durationSeconds": 300 },
        "select": { "perRun": { "percent": 5, "minimum": 1, "maximum": 10 }, "restSeconds": 3600 },
    }));
    let images = images();
    let fleet: Vec<Pod> = images.iter().map(|(pod, _)| pod.clone()).collect();
    let costs: BTreeMap<&str, f64> = images.iter().map(|(pod, cost)| (pod.uid.as_str(), *cost)).collect();
    let slots = 96;
    let to = after(noon(), 900 * slots);
    let plans = follow(&spec, &fleet, &mut decided(noon()), noon(), to, 60);
    let (mut estimate, mut unweighted, mut windows) = (0.0, 0.0, 0.0);
    for run in plans.iter().flat_map(|plan| &plan.runs) {
        // What the pod cost in its window, as a share of the period.
        let cost = costs[run.pod_uid.as_str()] * 300.0 / 900.0;
        estimate += cost / (f64::from(run.probability_per_billion) / 1e9) / 96.0;
        unweighted += costs[run.pod_uid.as_str()];
        windows += 1.0;
    }
    let pods: f64 = f64::from(u32::try_from(images.len()).unwrap());
    let truth: f64 = costs.values().sum();
    let naive = unweighted / windows * pods;
    println!("{truth} in truth, {estimate:.1} by weights, {naive:.1} without");
    // The three pods of the last image rest most of the time, so that it has fewer windows than
    // slots. Its windows are five slots apart, which 96 are no multiple of.
    assert!((estimate / truth - 1.0).abs() < 0.01, "{estimate} is not {truth}");
    assert!((naive / truth - 1.0).abs() > 0.1, "{naive} is {truth} by chance");
}

#[test]
fn a_class_that_is_not_known_to_keep_the_budget_has_every_second_slot_and_half_the_probability() {
    let spec = spec(json!({ "when": { "interval": null, "cron": { "expression": "*/15 * * * *" } } }));
    let unsure = Account {
        windows: 5,
        slowdown: Some(Slowdown {
            basis_points: 50,
            low: -500,
            high: 50_000,
        }),
        window_seconds: 50,
        pod_seconds: 4_500,
        ..Account::default()
    };
    let other = Class {
        image_digest: "sha256:22".to_owned(),
        ..class()
    };
    let ledger = Ledger {
        classes: BTreeMap::from([(class(), unsure)]),
    };
    let mut fleet = pods(2);
    fleet[1].class = other;
    let (mut halved, mut whole) = (0, 0);
    for slot in 0..400 {
        let now = after(noon(), 900 * slot);
        let plan = planned_by(&ledger, &spec, &fleet, &decided(after(now, -1)), now);
        for run in plan.runs {
            if run.pod_uid == fleet[0].uid {
                halved += 1;
                assert_eq!(run.probability_per_billion, 5_555_556);
            } else {
                whole += 1;
                assert_eq!(run.probability_per_billion, 11_111_111);
            }
        }
    }
    assert_eq!(whole, 400);
    assert!((170..230).contains(&halved), "{halved} of 400");
}
