//! How soon an alert of a real Alertmanager has its session.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::REQUESTED_BY_ANNOTATION;
use flopwatch_api::schedule::{PROBABILITY_ANNOTATION, TRIGGER_ANNOTATION};
use flopwatch_system_tests::alertmanager::Alertmanager;
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::shared::alerts::Setting;

/// Alerts whose time to a session is measured.
const ALERT_COUNT: usize = 20;
/// Longest time to a session, of 19 of 20.
const MAX_ALERT_DELAY: Duration = Duration::from_secs(2);

#[tokio::test]
async fn an_alert_has_its_session_within_seconds() -> Result<()> {
    let Some(setting) = Setting::begin(Group::Timed, "alerts", "Nsys").await? else {
        return Ok(());
    };
    let alertmanager = Alertmanager::start(&setting.client, &setting.url, &setting.token).await?;
    let (mut times, mut windows) = (Vec::new(), Vec::new());
    for number in 0..ALERT_COUNT {
        let (began, fired) = (Instant::now(), SystemTime::now());
        alertmanager
            .fire(&[json!({ "labels": setting.labels(number) })])
            .await?;
        let sessions = setting.made(number + 1).await;
        let sessions = sessions.with_context(|| alertmanager.log().unwrap_or_default())?;
        times.push(began.elapsed());
        let newest = sessions.iter().max_by_key(|session| session.creation_timestamp());
        let name = newest.context("no session")?.name_any();
        setting.namespace.finished(&name).await?;
        let window = UNIX_EPOCH + Duration::from_nanos(window(&setting.namespace, &name).await?);
        windows.push(window.duration_since(fired)?);
    }
    times.sort_unstable();
    windows.sort_unstable();
    let late = times.iter().rev().take_while(|time| **time > MAX_ALERT_DELAY).count();
    // How long a profiler takes to attach is the machine's, which other tests keep busy: told, and
    // not held to a bound.
    println!("times to a session: {times:?}; to a window: {windows:?}");
    ensure!(late <= ALERT_COUNT / 20, "{times:?}");
    let sessions = setting.sessions().await?;
    ensure!(sessions.len() == ALERT_COUNT, "{} sessions", sessions.len());
    for session in &sessions {
        let annotations = session.annotations();
        let by = annotations.get(REQUESTED_BY_ANNOTATION).map(String::as_str);
        let account = format!("system:serviceaccount:{}:alertmanager", setting.namespace.name);
        ensure!(by == Some(account.as_str()), "{annotations:?}");
        let trigger = annotations.get(TRIGGER_ANNOTATION);
        ensure!(trigger.is_some_and(|of| of.starts_with("Slow/")));
        ensure!(!annotations.contains_key(PROBABILITY_ANNOTATION));
    }
    setting.namespace.delete().await
}

/// When the window of a session that ended began, in ns since 1970.
async fn window(namespace: &TestNamespace, session: &str) -> Result<u64> {
    let capture = namespace.only_capture(session).await?;
    let summary: Value = serde_json::from_slice(&namespace.artifact(&capture, "summary.json").await?)?;
    summary["session_start_utc_ns"]
        .as_u64()
        .context("no time in the summary")
}
