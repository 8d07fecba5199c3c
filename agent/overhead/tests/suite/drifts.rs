//! Windows in which the load changes, which no profiler did.

use flopwatch_overhead::{Budget, Measure, Reason, decide};

use crate::target::{Load, Target, repeat, share};

/// The part of windows that are inconclusive because the load changed.
fn changed(target: Target) -> f64 {
    let hits = repeat(target, 200).filter(|target| {
        let decision = decide(&target.arms(), Measure::PerSecond, &Budget::default());
        decision.reason == Reason::LoadChanged
    });
    share(hits.count(), 200)
}

#[test]
fn a_change_of_load_is_not_taken_for_the_profilers_effect() {
    let cases: [(&str, Load); 5] = [
        ("ramp down by 20 %", |passed, _| 1.0 - 0.2 * passed),
        ("ramp up by 20 %", |passed, _| 1.0 + 0.2 * passed),
        ("10 % less before", |_, before| if before { 0.9 } else { 1.0 }),
        ("10 % more before", |_, before| if before { 1.1 } else { 1.0 }),
        ("20 % less in the second half of before", |passed, before| {
            if before && passed > 1.0 / 6.0 { 0.8 } else { 1.0 }
        }),
    ];
    for (name, load) in cases {
        for (harm, phi) in [(0.0, 0.0), (0.2, 0.0), (0.0, 0.3)] {
            let found = changed(Target {
                load,
                harm,
                phi,
                ..Target::default()
            });
            println!("{name}, harm {harm}, correlated {phi}: load changed in {found}");
            assert!(found >= 0.95, "{name}: {found}");
        }
    }
}

#[test]
fn a_steady_load_is_not_taken_for_a_change() {
    for (noise, phi, most) in [(0.02, 0.0, 0.0), (0.02, 0.3, 0.0), (0.05, 0.0, 0.01)] {
        let found = changed(Target {
            noise,
            phi,
            ..Target::default()
        });
        println!("noise {noise}, correlated {phi}: load changed in {found}");
        assert!(found <= most);
    }
}
