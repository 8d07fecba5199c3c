//! How a capture stands, read from its conditions.

use flopwatch_api::capture::Capture;
use flopwatch_api::reason::{CaptureCondition, CaptureReason};
use k8s_controller::conditions;

/// How a capture stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has not ended; `started` says whether its window has begun.
    Active {
        /// Whether the window has begun.
        started: bool,
    },
    /// It ended with what was asked for.
    Succeeded,
    /// It ended without.
    Failed {
        /// Reason of the condition that says so.
        reason: String,
        /// Message of that condition.
        message: String,
    },
}

impl Standing {
    /// Reads the conditions. `Succeeded` goes before `Lost`: what was published before the node went counts.
    pub fn of(capture: &Capture) -> Self {
        let Some(status) = &capture.status else {
            return Self::Active { started: false };
        };
        let succeeded = conditions::find(&status.conditions, CaptureCondition::Succeeded.as_str());
        match succeeded.map(|condition| condition.status.as_str()) {
            Some("True") => return Self::Succeeded,
            Some("False") => {
                let condition = succeeded.map(|found| (found.reason.clone(), found.message.clone()));
                let (reason, message) = condition.unwrap_or_default();
                return Self::Failed { reason, message };
            }
            _ => {}
        }
        if let Some(lost) = lost(capture) {
            return Self::Failed {
                reason: CaptureReason::NodeLost.as_str().to_owned(),
                message: lost.to_owned(),
            };
        }
        Self::Active {
            started: status.start_time.is_some(),
        }
    }

    /// Whether the capture has ended.
    pub fn has_ended(&self) -> bool {
        !matches!(self, Self::Active { .. })
    }

    /// Label value for metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Active { started: false } => "waiting",
            Self::Active { started: true } => "capturing",
            Self::Succeeded => "succeeded",
            Self::Failed { .. } => "failed",
        }
    }

    /// Every value of [`Standing::as_str`].
    pub const NAMES: [&'static str; 4] = ["waiting", "capturing", "succeeded", "failed"];
}

/// The message of the condition `Lost`, when it is True.
pub fn lost(capture: &Capture) -> Option<&str> {
    let status = capture.status.as_ref()?;
    conditions::find(&status.conditions, CaptureCondition::Lost.as_str())
        .filter(|condition| condition.status == "True")
        .map(|condition| condition.message.as_str())
}
