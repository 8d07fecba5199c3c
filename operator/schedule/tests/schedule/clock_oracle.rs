//! Times of the clock and blackouts, against an oracle in Python.

use std::process::Command;

use flopwatch_schedule::{Facts, Identity, Ledger, explain};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::fleet::{decided, identity, pods, spec};

const CASES: usize = 100;

fn seconds(list: &Value) -> Vec<i64> {
    list.as_array().unwrap().iter().map(|at| at.as_i64().unwrap()).collect()
}

#[test]
fn a_hundred_random_cases_around_changes_of_the_clock_are_as_the_oracle_says() {
    let Some(python) = std::env::var_os("FLOPWATCH_PYTHON") else {
        println!("skipped: FLOPWATCH_PYTHON names no Python (cargo xtask setup makes one)");
        return;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schedule/clock_oracle.py");
    let output = Command::new(python)
        .arg(script)
        .arg(CASES.to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let cases: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(cases.len(), CASES);
    let mut times = 0;
    for case in cases {
        let start = Timestamp::from_second(case["start"].as_i64().unwrap()).unwrap();
        let spec = spec(json!({
            "when": { "interval": null, "cron": { "expression": case["expression"], "timeZone": case["timeZone"] } },
            "blackouts": case["blackouts"],
            "session": { "durationSeconds": case["durationSeconds"] },
            "select": { "minPodAgeSeconds": 0 },
        }));
        let mut pods = pods(1);
        pods[0].started = Timestamp::UNIX_EPOCH;
        let identity = Identity {
            created: Timestamp::UNIX_EPOCH,
            ..identity()
        };
        let count = usize::try_from(case["count"].as_u64().unwrap()).unwrap();
        let foretold = explain(
            &Facts {
                spec: &spec,
                identity: &identity,
                pods: &pods,
                history: &decided(start),
                ledger: &Ledger::default(),
                now: start,
            },
            count,
        )
        .unwrap();
        let opens: Vec<i64> = foretold.runs.iter().map(|run| run.opens.as_second()).collect();
        let lit = seconds(&case["lit"]);
        // Where blackouts leave few, the oracle looked less far ahead than the schedule does.
        let compared = if lit.len() < count { lit.len() } else { count };
        assert_eq!(opens.get(..compared), Some(&*lit), "{case}");
        times += compared;
    }
    println!("{CASES} cases, {times} times");
    assert!(times > 1_000);
}
