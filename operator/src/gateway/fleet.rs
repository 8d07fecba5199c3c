//! The kernels and operations that a fleet spends its time on: the rows that agents wrote to the
//! object store, added up for callers who may list the sessions that the rows came from.

mod answer;
mod problem;
mod question;
mod read;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use flopwatch_fleet::{Bounds, Query as FleetQuery, Totals};
use flopwatch_http::Verb;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::gateway::access::SessionAccess;
use crate::gateway::extract::query;
use crate::gateway::fleet::answer::FleetTop;
use crate::gateway::fleet::question::TopQuery;
use crate::gateway::fleet::read::{FleetSelection, read};
use crate::gateway::problem::{Guarded, Problem, ProblemDetails};
use crate::gateway::request::is_namespace;
use crate::gateway::slots::Slots;
use crate::gateway::store::ObjectStore;
use crate::gateway::token::Token;

/// Most requests whose files are read at once.
const MAX_CONCURRENT_REQUESTS: usize = 4;
/// Most requests of one user whose files are read at once.
const MAX_CONCURRENT_REQUESTS_PER_USER: usize = 1;
/// Longest reading of the files of one request: clients wait a minute for an answer to begin.
const READ_TIMEOUT: Duration = Duration::from_secs(50);
/// Longest time that a request may cover, in days.
const MAX_DAYS: i64 = 92;
/// Time that a request covers where it gives no `since`, in hours.
const DEFAULT_HOURS: i64 = 24;
/// Most groups in an answer.
const MAX_GROUPS: u16 = 500;
/// Most groups in an answer where the request gives no `limit`.
const DEFAULT_GROUPS: u16 = 20;

pub(crate) use problem::FleetProblem;

/// The fleet's rows, with the limits on reading them; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct FleetRows {
    /// The object store that holds the rows, where there is one.
    store: Option<Arc<ObjectStore>>,
    request_slots: Slots,
    /// The permit to read a large file: one at a time, as each may take as much memory as the small
    /// files of all requests together.
    large: Arc<Semaphore>,
}

impl FleetRows {
    /// The rows in `store`, where there is one.
    pub(crate) fn new(store: Option<Arc<ObjectStore>>) -> Self {
        Self {
            store,
            request_slots: Slots::new(MAX_CONCURRENT_REQUESTS, MAX_CONCURRENT_REQUESTS_PER_USER),
            large: Arc::new(Semaphore::new(1)),
        }
    }
}

/// The requested time: from the first instant on, and before the second.
fn period(since: Option<&str>, until: Option<&str>, now: Timestamp) -> Result<(Timestamp, Timestamp), Problem> {
    let parse = |name: &str, text: &str| {
        let parsed = text.parse::<Timestamp>();
        parsed.map_err(|_other| Problem::BadRequest(format!("{name} must be a time as in RFC 3339")))
    };
    let until = until.map_or(Ok(now), |text| parse("until", text))?;
    let usual = SignedDuration::from_hours(DEFAULT_HOURS);
    let since = match since {
        Some(text) => parse("since", text)?,
        None => until.saturating_sub(usual).unwrap_or(Timestamp::MIN),
    };
    let length = until.duration_since(since);
    if !length.is_positive() || length > SignedDuration::from_hours(24 * MAX_DAYS) {
        return Err(Problem::BadRequest(format!(
            "since must be before until, and at most {MAX_DAYS} days"
        )));
    }
    Ok((since, until))
}

fn nanoseconds(time: Timestamp) -> i64 {
    let end = if time.as_second() < 0 { i64::MIN } else { i64::MAX };
    i64::try_from(time.as_nanosecond()).unwrap_or(end)
}

/// What the fleet spends most time on, over captures of the object store's rows: each counts as
/// often as its schedule's probability says, and every estimate has its 95 % interval. It needs the
/// right to `list` profilingsessions in the namespace, or in all. Captures that failed, that did
/// not record it, and files that could not be read are told beside the sums.
#[utoipa::path(get, path = "/api/fleet/top", tag = "fleet", params(TopQuery),
    responses(
        (status = 200, body = FleetTop),
        Guarded,
        (status = 404, body = ProblemDetails, content_type = "application/problem+json", description = "There is no object store."),
        (status = 500, body = ProblemDetails, content_type = "application/problem+json"),
        (status = 504, body = ProblemDetails, content_type = "application/problem+json", description = "The object store is too slow for it.")))]
pub(crate) async fn top(
    State(access): State<SessionAccess>,
    State(rows): State<FleetRows>,
    token: Token,
    asked_for: Result<Query<TopQuery>, QueryRejection>,
) -> Result<Json<FleetTop>, Problem> {
    let TopQuery {
        by,
        namespace,
        since,
        until,
        limit,
        drawn_only,
    } = query(asked_for)?;
    let limit = limit.unwrap_or(DEFAULT_GROUPS);
    if !(1..=MAX_GROUPS).contains(&limit) {
        return Err(Problem::BadRequest(format!("limit must be 1 to {MAX_GROUPS}")));
    }
    if namespace.as_deref().is_some_and(|name| !is_namespace(name)) {
        return Err(Problem::BadRequest("namespace must be the name of one".to_owned()));
    }
    let (since, until) = period(since.as_deref(), until.as_deref(), Timestamp::now())?;
    let asked_namespace = namespace.as_deref().unwrap_or_default();
    let user = access.allow(&token, Verb::List, asked_namespace, None, false).await?;
    let store = rows.store.as_ref().ok_or(FleetProblem::NoObjectStore)?;
    let _slot = rows.request_slots.take(&user).map_err(FleetProblem::from)?;
    let fleet_query = FleetQuery {
        group_by: by.group(),
        categories: [by.category().name().to_owned()].into(),
        from_ns: nanoseconds(since),
        until_ns: nanoseconds(until),
        drawn_only,
    };
    let selection = FleetSelection {
        namespace: namespace.clone(),
        query: fleet_query.clone(),
    };
    let totals = Totals::new(fleet_query, Bounds::default());
    let reading = read(store.bucket(), selection, totals, &rows.large);
    let found = timeout(READ_TIMEOUT, reading).await;
    let found = found.map_err(|_elapsed| FleetProblem::Slow)??;
    let about = answer::About {
        by,
        namespace,
        since: since.to_string(),
        until: until.to_string(),
        drawn_only,
    };
    let summarized = tokio::task::spawn_blocking(move || FleetTop::of(about, &found, usize::from(limit))).await;
    summarized
        .map(Json)
        .map_err(|error| Problem::Own(format!("the sums of the fleet ended early: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_asked_for_by_its_ends_and_is_a_day_where_nobody_says() {
        let now: Timestamp = "2026-11-25T12:00:00Z".parse().unwrap();
        let parsed = |since, until| {
            let (since, until) = period(since, until, now).ok()?;
            Some((since.to_string(), until.to_string()))
        };
        let pair = |since: &str, until: &str| Some((since.to_owned(), until.to_owned()));
        assert_eq!(parsed(None, None), pair("2026-11-24T12:00:00Z", "2026-11-25T12:00:00Z"));
        let week = parsed(Some("2026-11-18T00:00:00+01:00"), None);
        assert_eq!(week, pair("2026-11-17T23:00:00Z", "2026-11-25T12:00:00Z"));
        let day = parsed(None, Some("2026-11-02T00:00:00Z"));
        assert_eq!(day, pair("2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"));
        for (since, until) in [
            (Some("yesterday"), None),
            (None, Some("")),
            (Some("2026-11-25T12:00:00Z"), None),
            (Some("2026-08-01T00:00:00Z"), None),
            (Some("2026-11-26T00:00:00Z"), None),
        ] {
            assert_eq!(parsed(since, until), None, "{since:?} {until:?}");
        }
    }
}
