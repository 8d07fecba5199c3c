//! How often captures that wait for a turn are told what they wait for.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use flopwatch_api::capture::Capture;
use kube::ResourceExt;
use tokio::time::Instant;

/// When captures that were told may be told anew, by UID.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<BTreeMap<String, Instant>>);

impl Pace {
    /// Whether the capture's status may be written now; if so, it is taken to be.
    pub(super) fn take(&self, capture: &Capture) -> bool {
        let (uid, now) = (capture.uid().unwrap_or_default(), Instant::now());
        let mut due = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        due.retain(|_, at| *at > now);
        if due.contains_key(&uid) {
            return false;
        }
        due.insert(uid, now + capture.spec.status_interval());
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use tokio::time::sleep;

    use super::*;

    fn capture(uid: &str, interval: i32) -> Capture {
        serde_json::from_value(json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture", "metadata": {"name": uid, "uid": uid},
            "spec": {
                "sessionRef": {"name": "s", "id": "0123abcd"}, "nodeName": "n1", "podRef": {"name": "p", "uid": "u"},
                "containerName": "main", "durationSeconds": 60, "startDeadlineSeconds": 60, "outputs": ["Timeline"],
                "statusIntervalSeconds": interval
            }
        }))
        .unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn captures_that_wait_are_told_at_once_and_then_as_often_as_each_says() {
        let (pace, quick, slow) = (Pace::default(), capture("quick", 2), capture("slow", 60));
        let mut told = [0; 2];
        for _ in 0..120 {
            told[0] += i32::from(pace.take(&quick));
            told[1] += i32::from(pace.take(&slow));
            sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(told, [60, 2]);
        sleep(Duration::from_mins(1)).await;
        assert!(pace.take(&quick));
        assert_eq!(pace.0.lock().unwrap().len(), 1, "who was told long ago is forgotten");
    }
}
