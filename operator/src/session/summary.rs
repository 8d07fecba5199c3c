//! A session's captures, summed up.

use std::collections::BTreeMap;
use std::sync::Arc;

use flopwatch_api::capture::Capture;
use flopwatch_api::phase::Phase;
use flopwatch_api::reason::SessionReason;
use flopwatch_api::session::{CaptureCounts, CaptureReference, MAX_CAPTURE_REFERENCES, StopMode};
use kube::ResourceExt as _;

/// Longest message of a condition in bytes; the schema allows 4096 characters.
const MAX_MESSAGE: usize = 1024;

/// Cuts a message at a character boundary.
pub fn shorten(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        let end = (0..=MAX_MESSAGE - 3)
            .rev()
            .find(|&at| message.is_char_boundary(at))
            .unwrap_or(0);
        message.truncate(end);
        message.push_str("...");
    }
    message
}

/// How the captures of a session stand.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Counted. Captures that were made and are no longer there count as failed.
    pub counts: CaptureCounts,
    /// Captures whose window has begun and that have not ended.
    pub started: i32,
    /// Captures that were made and are no longer there.
    pub missing: i32,
    /// References for the status.
    pub references: Vec<CaptureReference>,
    /// Where the first capture that is published serves its artifacts.
    pub url: Option<String>,
    failures: BTreeMap<String, i32>,
    failure_message: Option<String>,
}

impl Summary {
    /// Sums up `captures`, of which there were once `made`.
    pub fn of(captures: &[Arc<Capture>], made: i32) -> Self {
        let mut captures: Vec<&Capture> = captures.iter().map(AsRef::as_ref).collect();
        captures.sort_by_cached_key(|capture| {
            (
                capture.spec.pod_ref.name.clone(),
                capture.spec.container_name.clone(),
                capture.name_any(),
            )
        });
        let mut summary = Self::default();
        for capture in captures {
            summary.counts.captures += 1;
            let (succeeded, reason) = match Phase::of(capture) {
                Phase::Waiting => {
                    summary.counts.active += 1;
                    ("Unknown", SessionReason::Pending.to_string())
                }
                Phase::Capturing => {
                    summary.counts.active += 1;
                    summary.started += 1;
                    ("Unknown", SessionReason::Capturing.to_string())
                }
                Phase::Succeeded => {
                    summary.counts.succeeded += 1;
                    ("True", SessionReason::Succeeded.to_string())
                }
                Phase::Failed { reason, message } => {
                    summary.counts.failed += 1;
                    *summary.failures.entry(reason.clone()).or_default() += 1;
                    summary.failure_message.get_or_insert(message);
                    ("False", reason)
                }
            };
            if summary.references.len() < MAX_CAPTURE_REFERENCES {
                summary.references.push(CaptureReference {
                    name: capture.name_any(),
                    pod_name: capture.spec.pod_ref.name.clone(),
                    container_name: capture.spec.container_name.clone(),
                    succeeded: succeeded.to_owned(),
                    reason,
                });
            }
            if summary.url.is_none() {
                summary.url = capture.status.as_ref().and_then(|status| status.url.clone());
            }
        }
        summary.missing = (made - summary.counts.captures).max(0);
        summary.counts.captures += summary.missing;
        summary.counts.failed += summary.missing;
        summary
    }

    /// Whether every capture has ended.
    pub fn has_ended(&self) -> bool {
        self.counts.active == 0
    }

    /// The session's verdict when every capture has ended: reason and message of its Succeeded
    /// condition.
    pub fn verdict(&self, stop: Option<StopMode>) -> (SessionReason, String) {
        let CaptureCounts {
            captures, succeeded, ..
        } = self.counts;
        if captures > 0 && succeeded == captures {
            let message = if captures == 1 {
                "the capture succeeded".to_owned()
            } else {
                format!("all {captures} captures succeeded")
            };
            return (SessionReason::Succeeded, message);
        }
        let mut message = format!("{succeeded} of {captures} captures succeeded");
        let mut reasons: Vec<String> = self
            .failures
            .iter()
            .map(|(reason, count)| {
                if captures == 1 {
                    reason.clone()
                } else {
                    format!("{count} {reason}")
                }
            })
            .collect();
        if self.missing > 0 {
            reasons.push(format!("{} deleted before the end", self.missing));
        }
        if !reasons.is_empty() {
            message = format!("{message}; failed: {}", reasons.join(", "));
        }
        if self.failures.values().sum::<i32>() == 1
            && let Some(why) = self.failure_message.as_deref().filter(|why| !why.is_empty())
        {
            message = format!("{message}: {why}");
        }
        let reason = match stop {
            Some(StopMode::Discard) if succeeded == 0 => SessionReason::Discarded,
            _ if succeeded > 0 => SessionReason::PartiallySucceeded,
            _ => SessionReason::Failed,
        };
        (reason, shorten(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let message = shorten("é".repeat(1024));
        assert!(message.len() <= MAX_MESSAGE && message.ends_with("..."));
        assert_eq!(shorten("short".to_owned()), "short");
    }
}
