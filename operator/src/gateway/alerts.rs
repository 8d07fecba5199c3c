//! Alerts: Alertmanager sends them, and every schedule with a trigger for one makes a session of
//! the alert's pod at once.
//!
//! The token must have a right of its own, `create` on `profilingschedules/alerts`, in the
//! schedule's namespace. The answer shows nothing of a namespace without that right: it depends on
//! the alert's own labels alone.
//!
//! Whoever has any token may send a body. The number of calls of the API server that a body causes
//! is bounded by the triggers that exist, not by the namespaces that the body names.

mod decider;
mod outcome;
mod schedule_state;
mod webhook;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use flopwatch_api::schedule::ProfilingSchedule;
use flopwatch_http::{Credentials, Denied, Reviewer};
use flopwatch_schedule::{Alert, trigger_of};
use futures::{StreamExt as _, stream};
use kube::ResourceExt as _;

pub(crate) use decider::AlertDecider;
pub(crate) use webhook::Webhook;

use crate::gateway::alerts::outcome::{AlertAnswer, AlertResult, Outcome};
use crate::gateway::alerts::webhook::ReceivedAlert;
use crate::gateway::extract::body;
use crate::gateway::problem::{Guarded, Problem, ProblemDetails};
use crate::gateway::request::is_namespace;
use crate::gateway::slots::{Full, Slots};
use crate::gateway::token::Token;

/// Largest body.
pub(crate) const MAX_BODY_BYTES: usize = 1 << 20;
/// Most namespaces that the alerts of a body name.
const MAX_NAMESPACES: usize = 256;
/// Number of named namespaces up to which the caller's right is reviewed in each, whether or not a
/// schedule there has a trigger.
const MAX_REVIEWED_NAMESPACES: usize = 8;
/// Most bodies that are answered at once: each may cost a review for every namespace with a
/// trigger.
const MAX_CONCURRENT_BODIES: usize = 32;
/// Most bodies of one user that are answered at once.
const MAX_CONCURRENT_BODIES_PER_USER: usize = 8;
/// Most reviews, and most schedules, that one body has under way at once.
const MAX_CONCURRENT_CALLS: usize = 8;
/// Label with an alert's namespace where no trigger says otherwise.
const NAMESPACE_LABEL: &str = "namespace";

/// Stands for every namespace, as the API server has it.
const ALL_NAMESPACES: &str = "";

/// The namespaces in which a token may send alerts.
struct Rights {
    /// User name of the token's holder.
    user: Arc<str>,
    /// The namespaces with the right; [`ALL_NAMESPACES`] may be among them.
    namespaces: BTreeSet<String>,
}

impl Rights {
    fn has(&self, namespace: &str) -> bool {
        [namespace, ALL_NAMESPACES]
            .iter()
            .any(|one| self.namespaces.contains(*one))
    }
}

/// The slots for bodies that are being answered, by user.
pub(crate) fn request_slots() -> Slots {
    Slots::new(MAX_CONCURRENT_BODIES, MAX_CONCURRENT_BODIES_PER_USER)
}

/// Takes Alertmanager's webhook: each alert that fires makes at most one session for each schedule
/// with a trigger for it. Needs `create` on `profilingschedules/alerts` (flopwatch.dev) in the
/// namespaces that the alerts name; alerts of others are left out, and whoever has the right in
/// none hears 403. Sent again it makes nothing anew, so a 503 is to be tried again.
#[utoipa::path(post, path = "/api/alerts", tag = "schedules", request_body = Webhook,
    responses(
        (status = 200, body = AlertAnswer, description = "What became of each alert."),
        Guarded,
        (status = 413, body = ProblemDetails, content_type = "application/problem+json"),
        (status = 415, body = ProblemDetails, content_type = "application/problem+json")))]
pub(crate) async fn alerts(
    State(decider): State<Arc<AlertDecider>>,
    State(reviewer): State<Arc<Reviewer>>,
    token: Token,
    received: Result<Json<Webhook>, JsonRejection>,
) -> Result<Json<AlertAnswer>, Problem> {
    let credentials = Credentials::new(&token.0);
    let user = reviewer.identify(&credentials).await?;
    let _slot = decider.request_slots.take(&user).map_err(|full| match full {
        Full::All => Problem::AlertsBusy,
        Full::Own => Problem::AlertsBusyCaller,
    })?;
    let received = body(received)?.alerts();
    let received = received.map_err(|error| Problem::BadRequest(error.to_string()))?;
    let schedules = decider.schedules();
    let labels = labels_of_namespaces(&schedules);
    let named = namespaces_of(&received, &labels);
    if named.len() > MAX_NAMESPACES {
        let words = format!(
            "the alerts of a body name at most {MAX_NAMESPACES} namespaces: let Alertmanager group by {NAMESPACE_LABEL}"
        );
        return Err(Problem::BadRequest(words));
    }
    let namespaces = namespaces_to_review(named, &namespaces_with_triggers(&schedules));
    let rights = review_rights(&reviewer, &credentials, namespaces).await?;
    answer(&decider, &schedules, &labels, &received, &rights)
        .await
        .map(Json)
}

/// Labels of alerts that name a namespace.
fn labels_of_namespaces(schedules: &[Arc<ProfilingSchedule>]) -> BTreeSet<String> {
    let triggers = schedules.iter().flat_map(|schedule| &schedule.spec.triggers);
    let labels = triggers.map(|trigger| trigger.target.namespace_label.clone());
    labels.chain([NAMESPACE_LABEL.to_owned()]).collect()
}

/// The namespaces that an alert may be about.
fn namespaces_of_alert<'a>(alert: &'a Alert, labels: &'a BTreeSet<String>) -> impl Iterator<Item = &'a String> {
    let values = labels.iter().filter_map(|label| alert.labels.get(label));
    values.filter(|namespace| is_namespace(namespace))
}

fn namespaces_of(received: &[ReceivedAlert], labels: &BTreeSet<String>) -> BTreeSet<String> {
    let alerts = received.iter();
    alerts
        .flat_map(|received| namespaces_of_alert(&received.alert, labels))
        .cloned()
        .collect()
}

fn namespaces_with_triggers(schedules: &[Arc<ProfilingSchedule>]) -> BTreeSet<String> {
    schedules.iter().filter_map(|schedule| schedule.namespace()).collect()
}

/// The namespaces in which the caller's right is reviewed: every named one where there are at most
/// [`MAX_REVIEWED_NAMESPACES`]; otherwise the named ones with a trigger, and [`ALL_NAMESPACES`].
///
/// A right where nothing is triggered makes no session: it decides only whether an alert hears that
/// it is not allowed or that there is no trigger. Which of the named namespaces have triggers shows
/// in no answer to who lacks the right there: such alerts are not allowed either way.
fn namespaces_to_review(named: BTreeSet<String>, with_triggers: &BTreeSet<String>) -> BTreeSet<String> {
    let everywhere = || ALL_NAMESPACES.to_owned();
    match named.len() {
        // So that an alert without a namespace tells nobody more than one with a namespace.
        0 => BTreeSet::from([everywhere()]),
        1..=MAX_REVIEWED_NAMESPACES => named,
        _ => with_triggers
            .intersection(&named)
            .cloned()
            .chain([everywhere()])
            .collect(),
    }
}

/// Reviews the token's right in each of the namespaces; the problem is `AlertsForbidden` where it
/// has the right in none.
async fn review_rights(
    reviewer: &Reviewer,
    credentials: &Credentials<'_>,
    namespaces: BTreeSet<String>,
) -> Result<Rights, Problem> {
    let mut reviews = Vec::new();
    for namespace in namespaces {
        reviews.push(async move {
            let review = reviewer.review_alerts(credentials, &namespace).await;
            (namespace, review)
        });
    }
    let mut reviews = stream::iter(reviews).buffer_unordered(MAX_CONCURRENT_CALLS);
    let (mut user, mut namespaces) = (None, BTreeSet::new());
    while let Some((namespace, review)) = reviews.next().await {
        match review {
            Ok(name) => {
                user = Some(name);
                namespaces.insert(namespace);
            }
            Err(Denied::Forbidden) => {}
            Err(denied) => return Err(denied.into()),
        }
    }
    let user = user.ok_or(Problem::AlertsForbidden)?;
    Ok(Rights { user, namespaces })
}

/// An alert, behind its index in the body.
type IndexedAlert<'a> = (usize, &'a Alert);

/// Gives each alert to the schedules that have a trigger for it, and collects the outcomes in the
/// order of the alerts. The problem is `ApiServer` where a call failed: the client sends the whole
/// body again.
async fn answer(
    decider: &AlertDecider,
    schedules: &[Arc<ProfilingSchedule>],
    labels: &BTreeSet<String>,
    received: &[ReceivedAlert],
    rights: &Rights,
) -> Result<AlertAnswer, Problem> {
    let mut tasks = Vec::new();
    for schedule in schedules {
        let namespace = schedule.namespace().unwrap_or_default();
        if !rights.namespaces.contains(&namespace) {
            continue;
        }
        let firing = received.iter().enumerate().filter(|(_, received)| received.is_firing);
        let matching: Vec<IndexedAlert<'_>> = firing
            .map(|(index, received)| (index, &received.alert))
            .filter(|(_, alert)| trigger_of(&schedule.spec, &namespace, alert).is_some())
            .collect();
        if !matching.is_empty() {
            tasks.push(async move {
                let alerts: Vec<&Alert> = matching.iter().map(|(_, alert)| *alert).collect();
                let outcomes = decider.decide_for_schedule(schedule, &alerts, &rights.user).await;
                let indices = matching.into_iter().map(|(index, _)| index);
                outcomes.map(|outcomes| (schedule, indices.zip(outcomes).collect::<Vec<_>>()))
            });
        }
    }
    let mut rows: Vec<Vec<((String, String), Outcome)>> = received.iter().map(|_| Vec::new()).collect();
    let mut tasks = stream::iter(tasks).buffer_unordered(MAX_CONCURRENT_CALLS);
    let mut failed = None;
    while let Some(result) = tasks.next().await {
        match result {
            Ok((schedule, outcomes)) => {
                for (index, outcome) in outcomes {
                    if let Some(rows) = rows.get_mut(index) {
                        rows.push(((schedule.namespace().unwrap_or_default(), schedule.name_any()), outcome));
                    }
                }
            }
            Err(error) => failed = Some(error),
        }
    }
    if let Some(error) = failed {
        tracing::warn!(%error, "alerts were not decided about");
        return Err(Problem::ApiServer);
    }
    let mut answer = AlertAnswer::default();
    for (received, mut rows) in received.iter().zip(rows) {
        rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        if rows.is_empty() {
            let result = without_schedule(received, labels, rights);
            answer.add(received, None, Outcome::of(result), &decider.results);
        }
        for (schedule, outcome) in rows {
            answer.add(received, Some(schedule), outcome, &decider.results);
        }
    }
    Ok(answer)
}

/// The result of an alert that no schedule has a trigger for.
fn without_schedule(received: &ReceivedAlert, labels: &BTreeSet<String>, rights: &Rights) -> AlertResult {
    let mut namespaces = namespaces_of_alert(&received.alert, labels).peekable();
    let names_any = namespaces.peek().is_some();
    if names_any && !namespaces.any(|namespace| rights.has(namespace)) {
        AlertResult::NotAllowed
    } else if received.is_firing {
        AlertResult::NoTrigger
    } else {
        AlertResult::Resolved
    }
}
