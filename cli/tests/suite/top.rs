//! What the fleet spends its time on is added up by the gateway and told with how sure it is.

use serde_json::{Value, json};

use crate::Ran;
use crate::cluster::Cluster;
use crate::gateway::{FakeGateway, Step};

fn found(captures: u64) -> Vec<u8> {
    let none = json!({"value": null, "low": null, "high": null});
    let group = |key: &str, calls: u64| {
        json!({
            "key": key, "captures": captures, "total_ns": {"value": 7.2e12, "low": 3.6e12, "high": 9e12},
            "calls": {"value": 10.0, "low": null, "high": null}, "share": none, "may_miss_ns": 0.0,
            "observed": {"total_ns": 1, "calls": calls, "share": null}
        })
    };
    let groups = if captures == 0 {
        json!([])
    } else {
        json!([group("gemm", 3)])
    };
    let result = json!({
        "by": "kernels", "captures": captures, "failed": 1, "not_captured": 1, "not_drawn": 0, "drawn_only": true, "repeated": 0,
        "captures_without_rows": 0, "rows_without_capture": 0, "unread": [], "groups": groups, "others": group("", 0), "other_groups": 0
    });
    serde_json::to_vec(&result).unwrap()
}

async fn asked(gateway: &FakeGateway, words: &str) -> Ran {
    let cluster = Cluster::start().await;
    cluster.run(&format!("top {words} {}", gateway.options())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_kernels_are_told_with_their_intervals_and_what_they_are_made_of() {
    let gateway = FakeGateway::start(found(9)).await;
    let ran = asked(&gateway, "kernels -n team --limit 5 --drawn-only").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.out
            .contains("2.00             1.00 to 2.50    -       10.0    9          gemm"),
        "{ran:?}"
    );
    assert!(
        ran.out
            .ends_with("\nCaptures: 9, of which 1 failed and 1 hold none of it.\n"),
        "{ran:?}"
    );
    let heads = gateway.heads();
    let asked = heads[0].lines().next().unwrap();
    assert!(asked.starts_with("GET /api/fleet/top?by=kernels&since=20"), "{asked}");
    assert!(
        asked.ends_with("Z&limit=5&namespace=team&drawn_only=true HTTP/1.1"),
        "{asked}"
    );
    assert!(
        heads[0].to_lowercase().contains("authorization: bearer of-ada"),
        "{heads:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_get_the_result_itself_or_the_names_alone() {
    let gateway = FakeGateway::start(found(9)).await;
    let ran = asked(&gateway, "images -A -o json").await;
    let result: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &result["groups"][0]["key"]), (0, &json!("gemm")));
    assert!(!gateway.heads()[0].contains("namespace="), "{:?}", gateway.heads());
    let ran = asked(&gateway, "ranges -o name").await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "gemm\n"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_not_allowed_or_not_understood_is_told() {
    let gateway = FakeGateway::start(found(0)).await;
    let ran = asked(&gateway, "kernels -n team").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.err.contains("No captures of that time in namespace team"),
        "{ran:?}"
    );
    gateway.then([Step::Problem(403, "Forbidden"), Step::Problem(404, "NoObjectStore")]);
    for reason in ["Forbidden", "NoObjectStore"] {
        let ran = asked(&gateway, "kernels").await;
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.contains(&format!("it is {reason} here")), "{ran:?}");
    }
    for words in ["pods", "kernels --since yesterday", "kernels --limit 0"] {
        assert_eq!(asked(&gateway, words).await.code, 2, "{words}");
    }
}
