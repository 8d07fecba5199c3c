//! How long a plan takes.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::fleet::{after, decided, follow, noon, planned, pods, spec};

#[test]
fn a_plan_of_a_thousand_pods_that_were_profiled_a_day_long_takes_a_moment() {
    let spec = spec(json!({ "jitterSeconds": 120, "select": { "perRun": { "percent": 10 }, "restSeconds": 3600 } }));
    let (fleet, mut history) = (pods(1_000), decided(noon()));
    follow(&spec, &fleet, &mut history, noon(), after(noon(), 86_400), 60);
    let took = |step: i64| {
        let began = Instant::now();
        planned(&spec, &fleet, &history, after(noon(), 86_400 + 60 * step));
        began.elapsed()
    };
    let fastest = (1..10).map(took).min().unwrap();
    println!("{fastest:?} with {} sessions", history.sessions.len());
    // Forty times what it took: whoever makes it quadratic is told.
    assert!(fastest < Duration::from_millis(200), "{fastest:?}");
}
