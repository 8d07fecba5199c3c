//! The body of Alertmanager's webhook, as far as it is read. Labels are untrusted text: their
//! number and length are bounded here, and their use is decided by the caller.

use std::collections::BTreeMap;

use flopwatch_schedule::Alert;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::ToSchema;

/// Most alerts of a body.
const MAX_ALERTS: usize = 2_000;
/// Most labels of an alert.
const MAX_LABELS: usize = 128;
/// Longest name of a label, in characters.
const MAX_LABEL_NAME_CHARS: usize = 256;
/// Longest value of a label, in characters.
const MAX_LABEL_VALUE_CHARS: usize = 4_096;

/// Why a body is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WebhookError {
    /// The body has too many alerts.
    #[error("a body has at most {MAX_ALERTS} alerts: set max_alerts of Alertmanager's webhook_config")]
    Alerts,
    /// An alert has too many labels, or one that is too long.
    #[error(
        "alerts[{0}].labels: at most {MAX_LABELS} labels, with names of at most {MAX_LABEL_NAME_CHARS} characters and values of at most {MAX_LABEL_VALUE_CHARS}"
    )]
    Labels(usize),
    /// A fingerprint is not 16 hexadecimal digits.
    #[error("alerts[{0}].fingerprint must have 16 digits and letters from a to f")]
    Fingerprint(usize),
    /// A time is not written as in RFC 3339.
    #[error("alerts[{0}].startsAt must be a time (RFC 3339)")]
    StartsAt(usize),
}

/// The body of Alertmanager's webhook. Members that are not named here may be there.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({
    "version": "4", "status": "firing",
    "alerts": [{
        "status": "firing", "labels": {"alertname": "HighLatency", "namespace": "team", "pod": "train"},
        "startsAt": "2026-01-01T00:00:00Z", "fingerprint": "0badcafe0badcafe"
    }]
}))]
pub(crate) struct Webhook {
    version: Version,
    /// The alerts of a group.
    #[schema(max_items = 2000)]
    alerts: Vec<WebhookAlert>,
}

/// Which form the body has.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
enum Version {
    /// That of Alertmanager since 0.5.
    #[serde(rename = "4")]
    Four,
}

/// An alert.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct WebhookAlert {
    status: AlertStatus,
    /// At most 128, with names of at most 256 characters and values of at most 4096.
    labels: BTreeMap<String, String>,
    /// Since when it fires.
    #[schema(format = DateTime)]
    starts_at: String,
    /// A hash of its labels.
    #[schema(pattern = "^[0-9a-f]{16}$")]
    fingerprint: String,
}

/// Whether an alert fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum AlertStatus {
    /// It does.
    Firing,
    /// It does no more.
    Resolved,
}

/// An alert of a body that is within bounds.
#[derive(Debug)]
pub(crate) struct ReceivedAlert {
    pub(crate) alert: Alert,
    pub(crate) is_firing: bool,
}

impl Webhook {
    /// The alerts of the body, if all of them are within bounds.
    pub(crate) fn alerts(self) -> Result<Vec<ReceivedAlert>, WebhookError> {
        let Version::Four = self.version;
        if self.alerts.len() > MAX_ALERTS {
            return Err(WebhookError::Alerts);
        }
        let alerts = self.alerts.into_iter().enumerate();
        alerts.map(|(index, alert)| alert.check(index)).collect()
    }
}

impl WebhookAlert {
    fn check(self, index: usize) -> Result<ReceivedAlert, WebhookError> {
        let fits = |(name, value): (&String, &String)| {
            name.chars().count() <= MAX_LABEL_NAME_CHARS && value.chars().count() <= MAX_LABEL_VALUE_CHARS
        };
        if self.labels.len() > MAX_LABELS || !self.labels.iter().all(fits) {
            return Err(WebhookError::Labels(index));
        }
        let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        if self.fingerprint.len() != 16 || !self.fingerprint.bytes().all(is_digit) {
            return Err(WebhookError::Fingerprint(index));
        }
        let started: Timestamp = self.starts_at.parse().map_err(|_error| WebhookError::StartsAt(index))?;
        Ok(ReceivedAlert {
            alert: Alert {
                labels: self.labels,
                fingerprint: self.fingerprint,
                started,
            },
            is_firing: self.status == AlertStatus::Firing,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(body: Value) -> Result<Vec<ReceivedAlert>, String> {
        let webhook: Webhook = serde_json::from_value(body).map_err(|error| error.to_string())?;
        webhook.alerts().map_err(|error| error.to_string())
    }

    fn alert() -> Value {
        json!({
            "status": "firing", "labels": {"alertname": "Slow"}, "annotations": {"summary": "slow"},
            "startsAt": "2026-11-25T10:00:00.123+01:00", "endsAt": "0001-01-01T00:00:00Z", "fingerprint": "0123456789abcdef"
        })
    }

    #[test]
    fn what_alertmanager_sends_is_read() {
        let received = read(json!({
            "version": "4", "groupKey": "{}:{}", "truncatedAlerts": 0, "status": "firing", "receiver": "flopwatch",
            "groupLabels": {}, "commonLabels": {}, "commonAnnotations": {}, "externalURL": "http://alertmanager",
            "alerts": [alert()]
        }))
        .unwrap();
        assert_eq!((received.len(), received[0].is_firing), (1, true));
        assert_eq!(received[0].alert.name(), "Slow");
        assert_eq!(received[0].alert.started.to_string(), "2026-11-25T09:00:00.123Z");
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_by_its_place() {
        let with = |member: &str, value: Value| {
            let mut second = alert();
            second[member] = value;
            json!({"version": "4", "alerts": [alert(), second]})
        };
        let many: BTreeMap<String, String> = (0..129).map(|at| (format!("l{at}"), String::new())).collect();
        for (body, expected) in [
            (json!({"version": "3", "alerts": []}), "variant"),
            (
                json!({"version": "4", "alerts": vec![alert(); 2_001]}),
                "at most 2000 alerts",
            ),
            (with("labels", json!(many)), "alerts[1].labels"),
            (with("labels", json!({"a": "x".repeat(4_097)})), "alerts[1].labels"),
            (with("labels", json!({"a": 7})), "string"),
            (with("fingerprint", json!("../../../../etc/x")), "alerts[1].fingerprint"),
            (with("startsAt", json!("yesterday")), "alerts[1].startsAt"),
            (with("status", json!("pending")), "variant"),
        ] {
            let message = read(body).unwrap_err();
            assert!(message.contains(expected), "{expected}: {message}");
        }
    }
}
