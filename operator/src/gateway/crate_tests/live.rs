//! What an open window has recorded so far, for who listens and who asks.

use serde_json::json;

use super::rig::Rig;
use super::{EVENTS, PATHS};

#[tokio::test]
async fn what_an_open_window_records_comes_by_events_and_with_its_session_until_it_is_over() {
    let rig = Rig::new().await;
    rig.session("team", "train", "0badcafe", 0, "Unknown");
    let collect = |kernels: i64| {
        let live = json!({
            "categories": [{"category": "cuda_kernel", "events": kernels}],
            "latestKernels": [{"name": "gemm", "totalNanoseconds": 700, "calls": 2}]
        });
        let progress = json!({"stage": "Collecting", "percent": 30, "message": "recording", "live": live});
        rig.capture_of("train", "0badcafe", "train-a", &json!({ "progress": progress }));
    };
    collect(7);
    let mut ears = rig.listen("").await;
    ears.until(r#""live":{"events":{"cuda_kernel":7}"#).await;
    collect(9);
    ears.until(r#""live":{"events":{"cuda_kernel":9}"#).await;
    let session = rig.json(PATHS[0], "reader").await;
    assert_eq!(
        session["captures"][0]["live"],
        json!({"events": {"cuda_kernel": 9}, "latest_kernels": [{"name": "gemm", "calls": 2, "total_ns": 700}]})
    );
    assert_eq!(rig.status(PATHS[0], "stranger").await, 403);
    // There is room for two, as for everybody who listens.
    let mut again = rig.listen("").await;
    again.until("cuda_kernel").await;
    let full = rig.get(EVENTS, "reader").await;
    assert_eq!(full.told(), "503 Busy");

    let progress = json!({"stage": "Fetching", "percent": 70, "message": "ending the window"});
    rig.capture_of("train", "0badcafe", "train-a", &json!({ "progress": progress }));
    ears.until("ending the window").await;
    let session = rig.json(PATHS[0], "reader").await;
    assert!(session["captures"][0].get("live").is_none(), "{session}");
    rig.session("team", "train", "0badcafe", 0, "True");
    let told = ears.until("").await;
    let (before, _) = told.split_once("event: profiling_complete").unwrap();
    let last = before.rsplit("event: profiling_progress").next().unwrap();
    assert!(last.contains("Fetching") && !last.contains("live"), "{last}");
}
