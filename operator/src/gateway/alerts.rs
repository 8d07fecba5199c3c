//! Alerts: Alertmanager tells of them, and schedules with a trigger for one make a session of its pod at once.
//!
//! The token must have a right of its own, `create` on `profilingschedules/alerts`, in the schedule's namespace. What is in a namespace without
//! that right is not told: the answer depends on the alert's own labels alone.
//!
//! Whoever has any token may send a body. What that costs the API server is bounded by what there
//! is to trigger, not by what the body names.

mod desk;
mod known;
mod outcome;
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

pub(crate) use desk::Desk;
pub(crate) use webhook::Webhook;

use crate::gateway::alerts::outcome::{AlertAnswer, AlertResult, Outcome};
use crate::gateway::alerts::webhook::Told;
use crate::gateway::extract::body;
use crate::gateway::problem::{Guarded, Problem, ProblemDetails};
use crate::gateway::request::is_namespace;
use crate::gateway::slots::{Full, Slots};
use crate::gateway::token::Token;

/// Largest body.
pub(crate) const MOST_BYTES: usize = 1 << 20;
/// Most namespaces that the alerts of a body name, and most of them that are asked about whether or
/// not a schedule there has a trigger.
const MAX_NAMESPACES: usize = 256;
const MAX_REVIEWED_NAMESPACES: usize = 8;
/// Bodies that are answered at once, and those of one user: each may cost a review for every
/// namespace with a trigger.
const MAX_BODIES: usize = 32;
const MAX_BODIES_PER_USER: usize = 8;
/// Reviews at once, and schedules at once.
const AT_ONCE: usize = 8;
/// Label with an alert's namespace where no trigger says otherwise.
const NAMESPACE_LABEL: &str = "namespace";

/// Stands for every namespace, as the API server has it.
const EVERYWHERE: &str = "";

/// Where a token may tell of alerts.
struct Rights {
    /// Whose it is.
    user: Arc<str>,
    /// [`EVERYWHERE`] may be among them.
    namespaces: BTreeSet<String>,
}

impl Rights {
    fn has(&self, namespace: &str) -> bool {
        [namespace, EVERYWHERE].iter().any(|one| self.namespaces.contains(*one))
    }
}

/// Places for bodies that are answered.
pub(crate) fn places() -> Slots {
    Slots::new(MAX_BODIES, MAX_BODIES_PER_USER)
}

/// Takes Alertmanager's webhook: each alert that fires makes at most one session for each schedule with a trigger for it. Needs `create` on
/// `profilingschedules/alerts` (flopwatch.dev) in the namespaces that the alerts name; alerts of others are left out, and whoever has the
/// right in none hears 403. Sent again it makes nothing anew, so a 503 is to be tried again.
#[utoipa::path(post, path = "/api/alerts", tag = "schedules", request_body = Webhook,
    responses(
        (status = 200, body = AlertAnswer, description = "What became of each alert."),
        Guarded,
        (status = 413, body = ProblemDetails, content_type = "application/problem+json"),
        (status = 415, body = ProblemDetails, content_type = "application/problem+json")))]
pub(crate) async fn alerts(
    State(desk): State<Arc<Desk>>,
    State(reviewer): State<Arc<Reviewer>>,
    token: Token,
    told: Result<Json<Webhook>, JsonRejection>,
) -> Result<Json<AlertAnswer>, Problem> {
    let credentials = Credentials::new(&token.0);
    let user = reviewer.identify(&credentials).await?;
    let _place = desk.places.take(&user).map_err(|full| match full {
        Full::All => Problem::AlertsBusy,
        Full::Own => Problem::AlertsBusyCaller,
    })?;
    let told = body(told)?.alerts();
    let told = told.map_err(|error| Problem::BadRequest(error.to_string()))?;
    let schedules = desk.schedules();
    let labels = labels_of_namespaces(&schedules);
    let named = namespaces_of(&told, &labels);
    if named.len() > MAX_NAMESPACES {
        let words = format!(
            "the alerts of a body name at most {MAX_NAMESPACES} namespaces: let Alertmanager group by {NAMESPACE_LABEL}"
        );
        return Err(Problem::BadRequest(words));
    }
    let asked = asked_about(named, &namespaces_with_triggers(&schedules));
    let rights = rights(&reviewer, &credentials, asked).await?;
    answer(&desk, &schedules, &labels, &told, &rights).await.map(Json)
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

fn namespaces_of(told: &[Told], labels: &BTreeSet<String>) -> BTreeSet<String> {
    let alerts = told.iter();
    alerts
        .flat_map(|told| namespaces_of_alert(&told.alert, labels))
        .cloned()
        .collect()
}

fn namespaces_with_triggers(schedules: &[Arc<ProfilingSchedule>]) -> BTreeSet<String> {
    schedules.iter().filter_map(|schedule| schedule.namespace()).collect()
}

/// The namespaces about which the API server is asked: of few that are named all, of many those
/// with something to trigger and one question more, which is about all namespaces.
///
/// A right where nothing is triggered makes no session: it decides only whether an alert hears that
/// it is not allowed or that there is no trigger. Which of the named namespaces have triggers shows
/// in no answer to who lacks the right there: such alerts are not allowed either way.
fn asked_about(named: BTreeSet<String>, with_triggers: &BTreeSet<String>) -> BTreeSet<String> {
    let everywhere = || EVERYWHERE.to_owned();
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

/// Those of the namespaces for which the token has the right.
async fn rights(
    reviewer: &Reviewer,
    credentials: &Credentials<'_>,
    asked: BTreeSet<String>,
) -> Result<Rights, Problem> {
    let mut reviews = Vec::new();
    for namespace in asked {
        reviews.push(async move {
            let review = reviewer.review_alerts(credentials, &namespace).await;
            (namespace, review)
        });
    }
    let mut reviews = stream::iter(reviews).buffer_unordered(AT_ONCE);
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

/// An alert and its place in the body.
type Place<'a> = (usize, &'a Alert);

/// Gives each alert to the schedules that it is for. Where the API server cannot be asked, all of it is to be sent again.
async fn answer(
    desk: &Desk,
    schedules: &[Arc<ProfilingSchedule>],
    labels: &BTreeSet<String>,
    told: &[Told],
    rights: &Rights,
) -> Result<AlertAnswer, Problem> {
    let mut tasks = Vec::new();
    for schedule in schedules {
        let namespace = schedule.namespace().unwrap_or_default();
        if !rights.namespaces.contains(&namespace) {
            continue;
        }
        let firing = told.iter().enumerate().filter(|(_, told)| told.is_firing);
        let places: Vec<Place<'_>> = firing
            .map(|(at, told)| (at, &told.alert))
            .filter(|(_, alert)| trigger_of(&schedule.spec, &namespace, alert).is_some())
            .collect();
        if !places.is_empty() {
            tasks.push(async move {
                let alerts: Vec<&Alert> = places.iter().map(|(_, alert)| *alert).collect();
                let outcomes = desk.take(schedule, &alerts, &rights.user).await;
                let at = places.into_iter().map(|(at, _)| at);
                outcomes.map(|outcomes| (schedule, at.zip(outcomes).collect::<Vec<_>>()))
            });
        }
    }
    let mut rows: Vec<Vec<((String, String), Outcome)>> = told.iter().map(|_| Vec::new()).collect();
    let mut tasks = stream::iter(tasks).buffer_unordered(AT_ONCE);
    let mut failed = None;
    while let Some(result) = tasks.next().await {
        match result {
            Ok((schedule, outcomes)) => {
                for (at, outcome) in outcomes {
                    if let Some(rows) = rows.get_mut(at) {
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
    for (told, mut rows) in told.iter().zip(rows) {
        rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        if rows.is_empty() {
            let result = without_schedule(told, labels, rights);
            answer.add(told, None, Outcome::of(result), &desk.results);
        }
        for (schedule, outcome) in rows {
            answer.add(told, Some(schedule), outcome, &desk.results);
        }
    }
    Ok(answer)
}

/// What became of an alert that no schedule was given.
fn without_schedule(told: &Told, labels: &BTreeSet<String>, rights: &Rights) -> AlertResult {
    let mut namespaces = namespaces_of_alert(&told.alert, labels).peekable();
    let names_any = namespaces.peek().is_some();
    if names_any && !namespaces.any(|namespace| rights.has(namespace)) {
        AlertResult::NotAllowed
    } else if told.is_firing {
        AlertResult::NoTrigger
    } else {
        AlertResult::Resolved
    }
}
