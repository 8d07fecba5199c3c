//! The results of alerts, as the answer to the webhook reports them and the metrics count them.

use flopwatch_schedule::TriggerSkip;
use prometheus::IntCounterVec;
use serde::Serialize;
use strum::IntoStaticStr;
use utoipa::ToSchema;

use crate::gateway::alerts::webhook::ReceivedAlert;

/// What became of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum AlertResult {
    /// A session was made.
    Made,
    /// The alert has its session since it began to fire.
    AlreadyMade,
    /// It does not fire any more.
    Resolved,
    /// The token has no right for the namespaces that it names; or no schedule there has a trigger,
    /// and the body names so many namespaces that nobody was asked about these.
    NotAllowed,
    /// No schedule has a trigger for it.
    NoTrigger,
    /// The schedule is suspended, or the cluster's captures are.
    Suspended,
    /// No such pod runs.
    NoSuchPod,
    /// The schedule's selector does not match the pod.
    NotSelected,
    /// The pod has no container to profile.
    NoContainer,
    /// The window would be open in one of the schedule's `blackouts`.
    Blackout,
    /// The trigger made a session of the pod within `cooldownSeconds`.
    Cooldown,
    /// The trigger made `maximumPerDay` sessions in the last 24 hours.
    DailyLimit,
    /// Another session of the schedule profiles the pod.
    StillRunning,
    /// The pod was in windows for `captureSecondsPerPodPerDay` in the last 24 hours.
    PodDailyLimit,
    /// A window on a pod of its class failed or exceeded the budget.
    BackedOff,
    /// More than two of the last ten windows on pods of its class failed.
    ClassSuspended,
    /// The pods lose more than the amortised budget.
    OverBudget,
    /// Nothing tells how fast pods of its class are.
    NoSensor,
    /// The schedule cannot be followed.
    ScheduleInvalid,
    /// The API server refused the session.
    Refused,
}

impl AlertResult {
    /// Value of the metrics label `result`.
    pub(crate) fn as_str(self) -> &'static str {
        self.into()
    }
}

impl From<TriggerSkip> for AlertResult {
    fn from(skip: TriggerSkip) -> Self {
        match skip {
            TriggerSkip::Suspended => Self::Suspended,
            TriggerSkip::NoSuchPod => Self::NoSuchPod,
            TriggerSkip::NotSelected => Self::NotSelected,
            TriggerSkip::NoContainer => Self::NoContainer,
            TriggerSkip::AlreadyMade => Self::AlreadyMade,
            TriggerSkip::Blackout => Self::Blackout,
            TriggerSkip::Cooldown => Self::Cooldown,
            TriggerSkip::DailyLimit => Self::DailyLimit,
            TriggerSkip::StillRunning => Self::StillRunning,
            TriggerSkip::PodDailyLimit => Self::PodDailyLimit,
            TriggerSkip::BackedOff => Self::BackedOff,
            TriggerSkip::ClassSuspended => Self::ClassSuspended,
            TriggerSkip::OverBudget => Self::OverBudget,
            TriggerSkip::NoSensor => Self::NoSensor,
        }
    }
}

/// A schedule's decision about an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) result: AlertResult,
    /// The session that was made.
    pub(crate) session: Option<String>,
    /// The error of the API server, or of the schedule's own spec, where one kept the session from
    /// being made.
    pub(crate) message: Option<String>,
}

impl Outcome {
    /// An outcome without a session.
    pub(crate) const fn of(result: AlertResult) -> Self {
        Self {
            result,
            session: None,
            message: None,
        }
    }

    /// An outcome without a session, with the message that says why.
    pub(crate) fn because(result: AlertResult, message: String) -> Self {
        Self {
            message: Some(message),
            ..Self::of(result)
        }
    }
}

/// What became of the alerts: one row for each alert and schedule with a trigger for it, or one
/// where there is none.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct AlertAnswer {
    /// How many sessions were made.
    made: usize,
    /// In the order of the alerts.
    alerts: Vec<AlertItem>,
}

/// What became of an alert.
#[derive(Debug, Serialize, ToSchema)]
struct AlertItem {
    alertname: String,
    fingerprint: String,
    result: AlertResult,
    /// The schedule's namespace and the session's.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<String>,
    /// The session that was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// Why not, where somebody else said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl AlertAnswer {
    /// Adds a row and counts it in `results`. `schedule` is the namespace and name of the schedule.
    pub(crate) fn add(
        &mut self,
        received: &ReceivedAlert,
        schedule: Option<(String, String)>,
        outcome: Outcome,
        results: &IntCounterVec,
    ) {
        let Outcome {
            result,
            session,
            message,
        } = outcome;
        results.with_label_values(&[result.as_str()]).inc();
        if result == AlertResult::Made {
            self.made += 1;
        }
        let (namespace, schedule) = schedule.unzip();
        self.alerts.push(AlertItem {
            alertname: received.alert.name().to_owned(),
            fingerprint: received.alert.fingerprint.clone(),
            result,
            namespace,
            schedule,
            session,
            message,
        });
    }
}
