//! Windows that are watched while they run, sample by sample.

use flopwatch_overhead::{AbortRule, Arms, Binning, Measure, Sample, bins};

use crate::target::{Target, repeat};

const BUDGET: u32 = 1000;
/// Bins of samples that a caller needs to keep for the next bin.
const KEPT: u64 = 4;

/// When the window was ended, in ms after the harm began.
fn ended_after(target: &Target) -> Option<f64> {
    let (samples, times) = (target.samples(), target.times());
    let upto = |at: u64| samples.partition_point(|sample| sample.at_ns <= at);
    let (opened, closed) = (upto(times.open_ns), upto(times.close_ns.unwrap()));
    let binning: Binning = target.binning();
    let known = bins(&samples[..opened], binning);
    let before = Arms::of(&known, target.length_ns(), &times).before;
    let mut rule = AbortRule::new(&before, Measure::PerSecond, target.length_ns(), BUDGET).unwrap();
    let harm_ns = times.open_ns + target.harm_from_s * 1_000_000_000;
    let mut next_ns = times.open_ns + target.length_ns().get();
    for now in opened..closed {
        let at_ns = samples[now].at_ns;
        if at_ns < next_ns {
            continue;
        }
        next_ns += target.length_ns().get();
        let latest: &[Sample] = &samples[upto(at_ns - KEPT * target.length_ns().get())..=now];
        for bin in bins(latest, binning) {
            if bin.start_ns >= times.open_ns && rule.push(&bin).is_some() {
                return Some((at_ns as f64 - harm_ns as f64) / 1e6);
            }
        }
    }
    None
}

fn short(noise: f64, phi: f64) -> Target {
    Target {
        bin_ms: 250,
        sample_ms: 50,
        noise,
        phi,
        ..long(0.0, 0.0)
    }
}

fn long(noise: f64, phi: f64) -> Target {
    Target {
        noise,
        phi,
        during_s: 60,
        after_s: 0,
        ..Target::default()
    }
}

/// A training loop of 3.3 steps a second.
fn steps() -> Target {
    Target {
        per_second: 1.0 / 0.3,
        sample_ms: 20,
        ..long(0.02, 0.0)
    }
}

fn name(target: &Target) -> String {
    format!(
        "bins of {} ms, noise {}, correlated {}, {} s before, harm {} after {} s",
        target.bin_ms, target.noise, target.phi, target.before_s, target.harm, target.harm_from_s
    )
}

/// Windows ended, of so many.
fn ended(target: Target, windows: u64) -> usize {
    let count = repeat(target, windows)
        .filter(|target| ended_after(target).is_some())
        .count();
    println!("{}: {count} of {windows} ended", name(&target));
    count
}

/// How many of 100 windows were ended within five seconds, and the slowest of all.
fn quick(target: Target) -> (usize, f64) {
    let times: Vec<f64> = repeat(target, 100)
        .map(|target| ended_after(&target).unwrap_or(f64::INFINITY))
        .collect();
    let within = times.iter().filter(|ms| **ms <= 5000.0).count();
    let slowest = times.iter().copied().fold(0.0, f64::max);
    let mean = times.iter().sum::<f64>() / 100.0;
    println!(
        "{}: {within} of 100 within 5 s, mean {mean:.0} ms, slowest {slowest:.0} ms",
        name(&target)
    );
    (within, slowest)
}

#[test]
fn an_unharmed_window_is_ended_at_most_once_in_200() {
    for target in [long(0.02, 0.0), long(0.02, 0.3), long(0.05, 0.0), long(0.05, 0.3)] {
        assert!(ended(target, 400) <= 2, "{}", name(&target));
    }
    for target in [short(0.02, 0.0), short(0.02, 0.3), short(0.05, 0.0), short(0.05, 0.3)] {
        assert!(ended(target, 200) <= 1, "{}", name(&target));
    }
}

#[test]
fn independent_noise_ends_at_most_one_window_in_100_however_heavy_it_is() {
    for target in [
        long(0.1, 0.0),
        long(0.2, 0.0),
        long(0.4, 0.0),
        short(0.1, 0.0),
        short(0.2, 0.0),
    ] {
        assert!(ended(target, 200) <= 2, "{}", name(&target));
    }
    let few = Target {
        before_s: 10,
        ..long(0.2, 0.0)
    };
    assert!(ended(few, 200) <= 2);
}

/// Heavier than what is promised: it costs captures, and no target anything.
#[test]
fn noise_as_large_as_the_budget_that_correlates_ends_up_to_one_window_in_8() {
    for target in [
        long(0.1, 0.3),
        long(0.2, 0.3),
        long(0.2, 0.5),
        short(0.1, 0.5),
        short(0.2, 0.5),
    ] {
        assert!(ended(target, 200) <= 25, "{}", name(&target));
    }
}

#[test]
fn harm_of_a_fifth_is_ended_within_five_seconds_in_100_of_100() {
    for target in [
        long(0.02, 0.0),
        long(0.02, 0.3),
        short(0.02, 0.0),
        short(0.02, 0.3),
        short(0.05, 0.0),
        short(0.05, 0.3),
    ] {
        let harmed = Target { harm: 0.2, ..target };
        assert_eq!(quick(harmed).0, 100, "{}", name(&harmed));
    }
}

#[test]
fn harm_of_a_fifth_in_heavier_noise_is_ended_within_five_seconds_in_95_of_100() {
    for target in [long(0.05, 0.0), long(0.05, 0.3)] {
        let (within, slowest) = quick(Target { harm: 0.2, ..target });
        assert!(within >= 95 && slowest < 10_000.0);
    }
}

#[test]
fn harm_that_begins_late_takes_more_bins() {
    for (harm_from_s, before_s, most_ms) in [(5, 30, 5000.0), (20, 30, 7000.0), (20, 60, 5000.0), (40, 30, 8000.0)] {
        let late = |target| Target {
            harm: 0.2,
            harm_from_s,
            before_s,
            ..target
        };
        assert!(quick(late(long(0.02, 0.0))).1 < most_ms);
        assert!(quick(late(short(0.02, 0.0))).1 < 4000.0);
    }
}

#[test]
fn a_counter_of_three_steps_a_second_is_watched_as_well() {
    assert!(ended(steps(), 200) <= 1);
    assert_eq!(quick(Target { harm: 0.2, ..steps() }).0, 100);
}

#[test]
fn a_program_that_an_agent_reads_is_watched_as_well() {
    for (per_second, bin_ms, keeps_ends) in [
        (50.0, 250, true),
        (1.0 / 0.3, 1000, true),
        (50.0, 500, false),
        (20.0, 1000, false),
    ] {
        let target = Target::read_by_an_agent(per_second, bin_ms, keeps_ends);
        println!("{per_second:.1} a second, ends {keeps_ends}");
        assert!(ended(target, 200) <= 1);
        assert_eq!(quick(Target { harm: 0.2, ..target }).0, 100);
    }
}

#[test]
fn few_bins_before_the_window_take_more_bins_in_it() {
    let after = |before_s| {
        quick(Target {
            harm: 0.2,
            before_s,
            ..long(0.02, 0.0)
        })
    };
    assert!(after(10).1 < 6000.0);
    assert_eq!(after(12).0, 100);
    let short_bins = Target {
        harm: 0.2,
        before_s: 10,
        ..short(0.02, 0.0)
    };
    assert_eq!(quick(short_bins).0, 100);
}

#[test]
fn harm_above_the_budget_is_ended_within_a_minute_and_half_of_it_is_not() {
    let harmed = |harm| {
        let target = Target {
            harm,
            ..long(0.02, 0.0)
        };
        ended(target, 200)
    };
    assert!(harmed(0.11) >= 190);
    assert!(harmed(0.15) >= 190);
    assert_eq!(harmed(0.05), 0);
    // Three bins running exceed a budget of 10 % by noise alone now and then, where the harm is 8
    // %.
    println!("harm just below the budget: {} of 200", harmed(0.08));
}
