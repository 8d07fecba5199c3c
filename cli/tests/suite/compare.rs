//! Two sessions are compared by the gateway, and the exit code says what came of it.

use serde_json::{Value, json};

use crate::Ran;
use crate::cluster::Cluster;
use crate::fetching::session;
use crate::gateway::{FakeGateway, Step};

fn comparison(verdict: &str) -> Vec<u8> {
    let kernel = json!({
        "name": "gemm", "presence": "both", "before_ns": 300_000, "after_ns": 800_000, "difference_ns": 500_000,
        "count_part_ns": 300_000, "duration_part_ns": 200_000
    });
    let result = json!({
        "verdict": verdict, "verdict_reason": "The median iteration changed by +20.0 %.", "speedup": 0.8333, "unit": "iteration",
        "comparability": {"score_ratio": 0.9, "factors": [{"name": "launches", "ratio": 0.9, "about": "Fewer of them."}]},
        "kernels": [kernel]
    });
    serde_json::to_vec(&result).unwrap()
}

async fn compared(gateway: &FakeGateway, words: &str) -> Ran {
    let cluster = Cluster::start().await;
    cluster.api.put(&session("first", "0badcafe"));
    cluster.api.put(&session("second", "00000bad"));
    let options = gateway.options();
    cluster.run(&format!("compare first second {options} {words}")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_regression_is_told_with_what_it_comes_from_and_an_exit_code() {
    let gateway = FakeGateway::start(comparison("regression_likely")).await;
    // The agent has to be given the other timeline first.
    gateway.then([Step::Problem(503, "Converting")]);
    let ran = compared(&gateway, "--threshold-percent 3 --after-capture second-1").await;
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(
        ran.out.contains("regression likely") && ran.out.contains("Fewer of them."),
        "{ran:?}"
    );
    assert!(
        ran.out
            .contains("+500.000us   +300.000us   +200.000us   300.000us   800.000us   both   gemm"),
        "{ran:?}"
    );
    let path = "GET /api/profiling/session/0badcafe/analyses/compare?with=00000bad%2Fsecond-1&threshold_percent=3 HTTP/1.1\r\n";
    let heads = gateway.heads();
    assert_eq!(heads.len(), 2, "{heads:?}");
    assert!(heads[1].starts_with(path), "{heads:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_chosen_and_programs_get_the_result_itself() {
    let gateway = FakeGateway::start(comparison("improvement_likely")).await;
    let ran = compared(&gateway, "-o json").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let result: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(result["kernels"][0]["count_part_ns"], 300_000);
    let ran = compared(&gateway, "-o name --fail-on any-change").await;
    assert_eq!((ran.code, ran.out.as_str()), (3, "improvement_likely\n"), "{ran:?}");
    let ran = compared(&gateway, "--before-capture ../x").await;
    assert_eq!(ran.code, 2, "{ran:?}");
}
