//! A capture's deadline is counted by the clock that dated it.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::rig::Rig;

#[tokio::test]
async fn a_node_whose_clock_is_an_hour_ahead_of_the_api_servers_takes_captures_all_the_same() {
    let rig = Rig::new(&json!({}));
    rig.server.set_ahead(SignedDuration::from_hours(-1));
    let life = rig.live().await;
    rig.ask("c", 1);
    rig.ends("c", "Succeeded").await;
    life.end().await;
}

#[tokio::test]
async fn a_node_whose_clock_is_an_hour_behind_refuses_what_has_waited_too_long() {
    let rig = Rig::new(&json!({}));
    rig.server.set_ahead(SignedDuration::from_hours(1));
    let capture = rig.ask("c", 1);
    let created: Timestamp = capture["metadata"]["creationTimestamp"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let long_ago = (created - SignedDuration::from_mins(2)).to_string();
    rig.server.edit("captures", "team", "c", |capture| {
        capture["metadata"]["creationTimestamp"] = json!(long_ago);
    });
    let life = rig.live().await;
    assert_eq!(rig.end_of("c").await.0, "DeadlineExceeded");
    life.end().await;
}
