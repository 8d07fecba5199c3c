//! How often a status is written, against an API server in memory and with a clock that waits for
//! nobody.

use std::sync::{Arc, Mutex};

use flopwatch_test_harness::{ApiServer, Fault, Verb};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;

/// Time between two statuses that the capture hands over.
const REPORT_INTERVAL: Duration = Duration::from_secs(3);

/// A capture, its writer, and the seconds in which the writer tried to write.
struct Rig {
    server: ApiServer,
    writer: Writer,
    tries: Arc<Mutex<Vec<u64>>>,
}

impl Rig {
    /// Of a capture whose `spec` holds that beside what every capture's does.
    fn new(spec: &Value) -> Self {
        let server = ApiServer::new();
        let mut capture = json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture", "metadata": {"name": "c", "namespace": "team"},
            "spec": {
                "sessionRef": {"name": "s", "id": "0123abcd"}, "nodeName": "n1", "podRef": {"name": "p", "uid": "u"},
                "containerName": "main", "durationSeconds": 60, "startDeadlineSeconds": 60, "outputs": ["Timeline"]
            }
        });
        for (field, value) in spec.as_object().unwrap() {
            capture["spec"][field] = value.clone();
        }
        let capture: Capture = serde_json::from_value(server.put(&capture)).unwrap();
        let target = Target::new(server.client("team"), &capture);
        let interval = capture.spec.status_interval();
        let writer = Writer::start(target, CaptureStatus::default(), interval, CancellationToken::new());
        let tries = Arc::<Mutex<Vec<u64>>>::default();
        let (noted, begin) = (Arc::clone(&tries), Instant::now());
        server.after(move |_, call| {
            if call.verb == Verb::Patch {
                noted.lock().unwrap().push(begin.elapsed().as_secs());
            }
        });
        Self { server, writer, tries }
    }

    /// Hands over the statuses 1 to `last`, as a window does.
    async fn report(&self, last: i64) {
        for number in 1..=last {
            self.writer.write(status(number));
            sleep(REPORT_INTERVAL).await;
        }
    }

    fn tries(&self) -> Vec<u64> {
        self.tries.lock().unwrap().clone()
    }

    /// The status that the API server has.
    fn written(&self) -> Value {
        let capture = self.server.get("captures", "team", "c").unwrap();
        capture["status"]["observedGeneration"].clone()
    }
}

fn status(number: i64) -> CaptureStatus {
    CaptureStatus {
        observed_generation: Some(number),
        ..CaptureStatus::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_is_written_as_often_as_its_capture_says_and_the_last_one_at_once() {
    let rig = Rig::new(&json!({"statusIntervalSeconds": 20}));
    rig.report(17).await;
    assert_eq!(rig.tries(), [0, 20, 40]);
    assert_eq!(rig.written(), 14, "what came meanwhile is merged");
    rig.writer.write(status(99));
    let Rig { server, writer, tries } = rig;
    assert_eq!(writer.finish().await, Delivery::Written);
    assert_eq!(*tries.lock().unwrap(), [0, 20, 40, 51]);
    let capture = server.get("captures", "team", "c").unwrap();
    assert_eq!(capture["status"]["observedGeneration"], 99);
}

#[tokio::test(start_paused = true)]
async fn a_capture_of_an_operator_that_knows_no_interval_is_written_every_two_seconds() {
    let rig = Rig::new(&json!({}));
    for number in 1..=5 {
        rig.writer.write(status(number));
        sleep(Duration::from_millis(900)).await;
    }
    assert_eq!(rig.tries(), [0, 2, 4]);
}

#[tokio::test(start_paused = true)]
async fn tries_that_the_api_server_refuses_count_but_the_last_status_waits_for_the_backoff_alone() {
    let rig = Rig::new(&json!({"statusIntervalSeconds": 60}));
    rig.server
        .fail(usize::MAX, Verb::Patch, "captures/status", Fault::Code(500));
    rig.report(30).await;
    assert_eq!(rig.tries(), [0, 60]);
    let Rig { server, writer, tries } = rig;
    let finishing = tokio::spawn(writer.finish());
    sleep(Duration::from_millis(1)).await;
    assert_eq!(*tries.lock().unwrap(), [0, 60, 90], "it is tried at once");
    sleep(Duration::from_secs(1)).await;
    let refused = tries.lock().unwrap().len();
    assert!(refused <= 4, "a server that refuses it is left alone for a while");
    server.heal();
    assert_eq!(finishing.await.unwrap(), Delivery::Written);
    let capture = server.get("captures", "team", "c").unwrap();
    assert_eq!(capture["status"]["observedGeneration"], 30);
}
