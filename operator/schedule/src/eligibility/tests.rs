use super::*;
use crate::ledger::Outcome;
use crate::pod::Class;

fn spec() -> ProfilingScheduleSpec {
    serde_json::from_value(serde_json::json!({
        "when": { "interval": { "seconds": 900 } },
        "select": { "podSelector": { "matchLabels": { "app": "llm" } } },
        "backoff": { "initialSeconds": 3600, "maximumSeconds": 86400 },
    }))
    .unwrap()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

/// An account whose windows ended as the letters say, an hour apart, the last one at 0: `x` failed.
fn ended(outcomes: &str) -> Account {
    let count = i64::try_from(outcomes.len()).unwrap();
    let outcome = |(place, letter): (i64, char)| Outcome {
        at: at(3600 * (place + 1 - count)),
        failed: letter == 'x',
    };
    Account {
        windows: count,
        blind_windows: count,
        outcomes: (0..).zip(outcomes.chars()).map(outcome).collect(),
        ..Account::default()
    }
}

fn measured(low: i32, basis_points: i32, high: i32) -> Account {
    Account {
        windows: 20,
        slowdown: Some(Slowdown {
            basis_points,
            low,
            high,
        }),
        window_seconds: 200,
        pod_seconds: 20_000,
        ..Account::default()
    }
}

#[test]
fn a_class_without_a_window_is_open() {
    assert_eq!(eligibility(&spec(), None, at(0)), Eligibility::Open);
    assert_eq!(
        eligibility(&spec(), Some(&Account::default()), at(0)),
        Eligibility::Open
    );
}

#[test]
fn failures_in_a_row_double_the_backoff_up_to_its_maximum() {
    let hours = [
        ("ox", 1),
        ("oxx", 2),
        ("oxxx", 4),
        ("xxxx", 8),
        ("xxxxx", 16),
        ("xxxxxx", 24),
        ("xxxxxxxxx", 24),
    ];
    for (outcomes, hours) in hours {
        let until = at(3600 * hours);
        let account = ended(outcomes);
        assert_eq!(
            eligibility(&spec(), Some(&account), at(1)),
            Eligibility::BackedOff { until },
            "{outcomes}"
        );
        assert_eq!(
            eligibility(&spec(), Some(&account), until),
            Eligibility::Open,
            "{outcomes}"
        );
    }
    assert_eq!(eligibility(&spec(), Some(&ended("xxo")), at(1)), Eligibility::Open);
}

#[test]
fn three_failures_of_the_last_ten_suspend_a_class_and_two_do_not() {
    let late = at(1_000_000);
    assert_eq!(
        eligibility(&spec(), Some(&ended("xooooxooox")), late),
        Eligibility::Suspended
    );
    assert_eq!(
        eligibility(&spec(), Some(&ended("xoooooooxoxo")), late),
        Eligibility::Open
    );
    assert_eq!(eligibility(&spec(), Some(&ended("xxx")), late), Eligibility::Open);
}

#[test]
fn the_upper_end_keeps_the_budget_the_lower_end_exceeds_it_and_between_them_the_rate_is_halved() {
    // A hundredth of the time is in windows, so that 10,000 basis points in a window are the 100
    // that are allowed.
    let stands = |account: Account| eligibility(&spec(), Some(&account), at(0));
    assert_eq!(stands(measured(500, 2_000, 10_000)), Eligibility::Open);
    assert_eq!(stands(measured(500, 2_000, 10_001)), Eligibility::Halved);
    assert_eq!(stands(measured(10_000, 10_000, 10_001)), Eligibility::Halved);
    assert_eq!(stands(measured(10_001, 10_001, 10_001)), Eligibility::OverBudget);
    assert_eq!(
        stands(Account {
            pod_seconds: 0,
            ..measured(-5, 0, 5)
        }),
        Eligibility::Halved
    );
}

#[test]
fn time_in_which_pods_stood_still_is_lost_in_full() {
    // A hundredth of the time is allowed: 200 s of 20,000.
    let stalled = |milliseconds| Account {
        stalled_milliseconds: milliseconds,
        ..measured(0, 0, 0)
    };
    assert_eq!(eligibility(&spec(), Some(&stalled(200_000)), at(0)), Eligibility::Open);
    assert_eq!(
        eligibility(&spec(), Some(&stalled(200_001)), at(0)),
        Eligibility::OverBudget
    );
    let class = Class {
        image_digest: "i".to_owned(),
        hardware: "h".to_owned(),
    };
    let ledger = Ledger {
        classes: [(class, stalled(100_000))].into(),
    };
    assert_eq!(budget_status(&spec(), &ledger).amortized_basis_points, Some(50));
}

#[test]
fn time_without_windows_brings_a_class_back_within_its_budget() {
    let mut account = measured(20_000, 20_000, 20_000);
    assert_eq!(eligibility(&spec(), Some(&account), at(0)), Eligibility::OverBudget);
    account.pod_seconds *= 2;
    assert_eq!(eligibility(&spec(), Some(&account), at(0)), Eligibility::Open);
}

#[test]
fn pods_that_nothing_measures_are_left_alone_where_that_is_asked_for() {
    let blind = ended("oo");
    let mut spec = spec();
    assert_eq!(eligibility(&spec, Some(&blind), at(0)), Eligibility::Open);
    spec.budget.unknown = UnknownOverhead::Refuse;
    assert_eq!(eligibility(&spec, Some(&blind), at(0)), Eligibility::NoSensor);
    assert_eq!(eligibility(&spec, Some(&measured(0, 1, 2)), at(0)), Eligibility::Open);
    let unlucky = Account {
        blind_windows: 1,
        ..blind
    };
    assert_eq!(
        eligibility(&spec, Some(&unlucky), at(0)),
        Eligibility::Open,
        "the next window may tell"
    );
}

#[test]
fn the_status_says_the_worst_class_and_the_sum_of_what_was_measured() {
    let of = |accounts: Vec<Account>| {
        let class = |place: usize| Class {
            image_digest: place.to_string(),
            hardware: "H100".to_owned(),
        };
        let classes = accounts.into_iter().enumerate();
        let classes = classes.map(|(place, account)| (class(place), account)).collect();
        budget_status(&spec(), &Ledger { classes })
    };
    assert_eq!(of(vec![]).state, BudgetState::Learning);
    assert_eq!(of(vec![ended("oo")]).state, BudgetState::Blind);
    assert_eq!(of(vec![ended("oo")]).low, None);
    assert_eq!(of(vec![ended("oo")]).reason, Some(OverheadReason::NoSignal));
    let unjudged = |outcomes, reason| Account {
        blind_windows: 0,
        inconclusive: Some(reason),
        ..ended(outcomes)
    };
    let (few, changed) = (OverheadReason::TooFewBins, OverheadReason::LoadChanged);
    let most = of(vec![ended("ooooo"), unjudged("o", changed), unjudged("ooo", few)]);
    assert_eq!((most.state, most.reason), (BudgetState::Inconclusive, Some(few)));
    let both = of(vec![
        measured(-100, 200, 400),
        measured(1_000, 2_000, 3_000),
        ended("o"),
    ]);
    assert_eq!(both.state, BudgetState::Within);
    assert_eq!(
        (both.low, both.amortized_basis_points, both.high),
        (Some(5), Some(11), Some(17))
    );
    assert_eq!(both.windows, 41);
    assert_eq!(
        of(vec![measured(0, 1, 2), measured(0, 1, 30_000)]).state,
        BudgetState::Learning
    );
    assert_eq!(
        of(vec![measured(20_000, 20_000, 20_000), measured(0, 1, 2)]).state,
        BudgetState::Exceeded
    );
}
