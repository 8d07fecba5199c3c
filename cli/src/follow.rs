//! Where a session stands, and waiting for its end.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use flopwatch_api::SESSION_LABEL;
use flopwatch_api::capture::Capture;
use flopwatch_api::phase::Phase;
use flopwatch_api::reason::{CaptureCondition, SessionCondition};
use flopwatch_api::session::ProfilingSession;
use futures::{StreamExt as _, TryStreamExt as _};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kube::ResourceExt as _;
use kube::api::Api;
use kube::runtime::{WatchStreamExt as _, watcher};

use crate::ask;
use crate::cluster::{Cluster, ClusterError, of_status};
use crate::error::Error;
use crate::live::words;
use crate::print::line;

/// Time between two drawings of what has not changed.
const DRAW_INTERVAL: Duration = Duration::from_millis(120);

/// Where a session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// How far all its captures are together, 0 to 100.
    pub percent: u64,
    /// What is being done.
    pub message: String,
    /// How it ended, when it did.
    pub end: Option<End>,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Every capture succeeded.
    Succeeded,
    /// Not every one did.
    Failed {
        /// Reason of the session.
        reason: String,
        /// What the session and its captures say.
        message: String,
    },
}

impl Progress {
    /// Whether the session `name`, which ended, did so with success.
    pub fn succeeded(self, name: &str) -> Result<(), Error> {
        match self.end {
            Some(End::Failed { reason, message }) => Err(Error::SessionFailed {
                name: name.to_owned(),
                reason,
                message,
            }),
            _ => Ok(()),
        }
    }
}

/// Where a session stands, by what is known of it and of its captures.
pub fn progress<'a>(session: &ProfilingSession, captures: impl Iterator<Item = &'a Capture> + Clone) -> Progress {
    let verdict = session.condition(SessionCondition::Succeeded);
    let end = verdict.and_then(|verdict| match verdict.status.as_str() {
        "True" => Some(End::Succeeded),
        "False" => Some(End::Failed {
            reason: line(&verdict.reason),
            message: why(&verdict.message, captures.clone()),
        }),
        _ => None,
    });
    Progress {
        percent: if end.is_some() { 100 } else { percent(captures.clone()) },
        message: message(session, captures),
        end,
    }
}

fn percent<'a>(captures: impl Iterator<Item = &'a Capture>) -> u64 {
    let (mut total, mut count) = (0_u64, 0_u64);
    for capture in captures {
        let progress = capture.status.as_ref().and_then(|status| status.progress.as_ref());
        total += progress.map_or(0, |progress| {
            u64::try_from(progress.percent).unwrap_or_default().min(100)
        });
        count += 1;
    }
    total.checked_div(count).unwrap_or_default()
}

fn message<'a>(session: &ProfilingSession, captures: impl Iterator<Item = &'a Capture> + Clone) -> String {
    let ended = |capture: &&Capture| Phase::of(capture).has_ended();
    let (all, done) = (captures.clone().count(), captures.clone().filter(ended).count());
    let at_work = captures.filter(|capture| !ended(capture)).find_map(|capture| {
        let progress = capture.status.as_ref()?.progress.as_ref()?;
        let text = format!("{} {}", progress.stage.as_str(), line(&progress.message));
        let recorded = progress.live.as_ref().map(words).unwrap_or_default();
        let gap = if recorded.is_empty() { "" } else { ": " };
        Some(format!("{}{gap}{recorded}", text.trim_end()))
    });
    let count = if all > 1 {
        format!(" ({done} of {all} captures ended)")
    } else {
        String::new()
    };
    if let Some(at_work) = at_work {
        return at_work + &count;
    }
    let found = session
        .condition(SessionCondition::TargetsFound)
        .filter(|found| found.status != "True");
    let accepted = session
        .condition(SessionCondition::Accepted)
        .filter(|found| found.status == "False");
    match accepted.or(found) {
        Some(why) if why.message.is_empty() => line(&why.reason),
        Some(why) => format!("{}: {}", line(&why.reason), line(&why.message)),
        None if all == 0 => "Waiting for the controller".to_owned(),
        None if done == all => format!("Done{count}"),
        None => format!("Waiting for the agent{count}"),
    }
}

/// What a session that failed says, with the first captures that failed.
fn why<'a>(text: &str, captures: impl Iterator<Item = &'a Capture>) -> String {
    let mut words = vec![line(text)];
    let failed = captures.filter_map(|capture| {
        let verdict = capture.condition(CaptureCondition::Succeeded)?;
        // The session's own words may hold them already.
        let untold = verdict.message.is_empty() || !text.contains(verdict.message.trim());
        (verdict.status == "False" && untold).then(|| {
            let pod = &capture.spec.pod_ref.name;
            format!("pod {pod}: {}: {}", line(&verdict.reason), line(&verdict.message))
        })
    });
    for failure in failed.take(3) {
        words.push(failure);
    }
    words.retain(|word| !word.is_empty());
    words.join("\n  ")
}

/// Shows where a session stands: a bar on a terminal, a line for each change elsewhere.
pub enum Display {
    /// On a terminal.
    Bar(ProgressBar),
    /// Elsewhere: what was said last.
    Lines(String),
}

impl Display {
    /// On standard error, so that standard output holds results alone.
    pub fn of_stderr() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::Lines(String::new());
        }
        let bar = ProgressBar::with_draw_target(Some(100), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} [{bar:30}] {percent:>3} % {elapsed} {wide_msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(DRAW_INTERVAL);
        Self::Bar(bar)
    }

    /// Shows where the session is.
    pub fn show(&mut self, progress: &Progress) {
        match self {
            Self::Bar(bar) => {
                bar.set_position(progress.percent);
                bar.set_message(progress.message.clone());
            }
            Self::Lines(last) if *last != progress.message => {
                drop(writeln!(
                    std::io::stderr(),
                    "{:>3} % {}",
                    progress.percent,
                    progress.message
                ));
                last.clone_from(&progress.message);
            }
            Self::Lines(_) => {}
        }
    }

    /// Clears the terminal for what comes after.
    pub fn clear(self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// Waits for the session's end and shows where it stands meanwhile; `seconds` 0: for ever.
pub async fn until_end(cluster: &Cluster, name: &str, seconds: u32, mut display: Display) -> Result<Progress, Error> {
    let result = tokio::select! {
        result = ended(cluster, name, seconds, |progress| display.show(progress)) => result,
        () = interrupted() => Err(Error::Interrupted(name.to_owned())),
    };
    display.clear();
    result
}

/// Waits for the session's end, and calls `on_progress` with each change; `seconds` 0: for ever.
pub async fn ended(
    cluster: &Cluster,
    name: &str,
    seconds: u32,
    mut on_progress: impl FnMut(&Progress) + Send,
) -> Result<Progress, Error> {
    let waiting = Box::pin(wait(cluster, name, &mut on_progress));
    if seconds == 0 {
        return waiting.await;
    }
    let result = tokio::time::timeout(Duration::from_secs(seconds.into()), waiting).await;
    result.unwrap_or_else(|_elapsed| {
        Err(Error::TimedOut {
            name: name.to_owned(),
            seconds,
        })
    })
}

/// Ends when the user asks this program to.
pub async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// An event of one of the watches.
enum WatchEvent {
    Session(Box<watcher::Event<ProfilingSession>>),
    Capture(Box<watcher::Event<Capture>>),
}

async fn wait(
    cluster: &Cluster,
    name: &str,
    on_progress: &mut (dyn FnMut(&Progress) + Send),
) -> Result<Progress, Error> {
    let sessions: Api<ProfilingSession> = cluster.api();
    // A session that is not there is told at once, and so is one that may not be read.
    let mut session = ask::session(cluster, name).await?;
    let uid = session.uid();
    let one = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let of_session = watcher::Config::default().labels(&format!("{SESSION_LABEL}={name}"));
    let news = watcher(sessions, one)
        .default_backoff()
        .map_ok(|event| WatchEvent::Session(Box::new(event)));
    let of_captures = watcher(cluster.api::<Capture>(), of_session)
        .default_backoff()
        .map_ok(|event| WatchEvent::Capture(Box::new(event)));
    let mut news = std::pin::pin!(futures::stream::select(news, of_captures));
    let mut captures: BTreeMap<String, Capture> = BTreeMap::new();
    let mut listed = false;
    loop {
        let progress = progress(&session, captures.values());
        if listed {
            on_progress(&progress);
        }
        if progress.end.is_some() && listed {
            // The session's end may be heard of before that of its captures, whose reasons are told
            // with it.
            let labels = format!("{SESSION_LABEL}={name}");
            let doing = format!("list captures of session {name}");
            let ended = cluster.list(&doing, &cluster.api::<Capture>(), Some(&labels)).await?;
            return Ok(self::progress(&session, ended.iter()));
        }
        match news.next().await {
            Some(Ok(WatchEvent::Session(event))) => match *event {
                watcher::Event::Apply(now) | watcher::Event::InitApply(now) => {
                    if now.uid() != uid {
                        return Err(Error::SessionDeleted(name.to_owned()));
                    }
                    session = now;
                }
                watcher::Event::Delete(gone) if gone.uid() == uid => {
                    return Err(Error::SessionDeleted(name.to_owned()));
                }
                _ => {}
            },
            Some(Ok(WatchEvent::Capture(event))) => match *event {
                watcher::Event::Apply(now) | watcher::Event::InitApply(now) => {
                    captures.insert(now.name_any(), now);
                }
                watcher::Event::Init => captures.clear(),
                watcher::Event::InitDone => listed = true,
                watcher::Event::Delete(gone) => {
                    captures.remove(&gone.name_any());
                }
            },
            Some(Err(error)) => {
                if let Some(refusal) = refusal(&error) {
                    return Err(refusal.into());
                }
            }
            None => return Err(Error::SessionDeleted(name.to_owned())),
        }
    }
}

/// An error of a watch that will not pass.
fn refusal(error: &watcher::Error) -> Option<ClusterError> {
    let (watcher::Error::InitialListFailed(kube::Error::Api(status))
    | watcher::Error::WatchStartFailed(kube::Error::Api(status))) = error
    else {
        return None;
    };
    matches!(status.code, 401 | 403 | 404).then(|| of_status("watch sessions and captures", status))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::describe::tests::{capture, published};
    use crate::sessions::tests::{CREATED, condition, session, verdict};

    #[test]
    fn a_bar_goes_with_all_captures_together() {
        let session = session("first", CREATED, &json!({"counts": {"captures": 2}}));
        let at_work = json!({"progress": {"stage": "Collecting", "percent": 31, "message": "3 s left"}});
        let captures = [
            capture("a", &json!({"progress": {"stage": "Done", "percent": 100}})),
            capture("b", &at_work),
        ];
        let now = progress(&session, captures.iter());
        assert_eq!((now.percent, now.end), (65, None));
        let ended = [capture("a", &published()), captures[1].clone()];
        let now = progress(&session, ended.iter());
        assert_eq!(now.message, "Collecting 3 s left (1 of 2 captures ended)");
    }

    #[test]
    fn what_an_open_window_records_stands_behind_its_progress_until_it_is_over() {
        let session = session("first", CREATED, &json!(null));
        let told = |at_work: &Value| {
            let captures = [capture("a", &json!({ "progress": at_work }))];
            progress(&session, captures.iter()).message
        };
        let live = json!({
            "categories": [{"category": "cuda_kernel", "events": 12}],
            "latestKernels": [{"name": "gemm", "totalNanoseconds": 2_500_000, "calls": 3}]
        });
        let mut at_work = json!({"stage": "Collecting", "percent": 31, "message": "recording, 3 of 10 s"});
        assert_eq!(told(&at_work), "Collecting recording, 3 of 10 s");
        at_work["live"] = json!({});
        assert_eq!(told(&at_work), "Collecting recording, 3 of 10 s");
        at_work["live"] = live;
        assert_eq!(
            told(&at_work),
            "Collecting recording, 3 of 10 s: cuda_kernel 12; latest gemm 2.50 ms"
        );
    }

    #[test]
    fn before_there_are_captures_the_session_says_what_it_waits_for() {
        let nothing = session("first", CREATED, &json!(null));
        assert_eq!(progress(&nothing, [].iter()).message, "Waiting for the controller");
        let why = "pod trainer is not running";
        let waiting = condition("TargetsFound", "Unknown", "WaitingForTargets", why);
        let waiting = session("first", CREATED, &json!({"conditions": [waiting]}));
        let waiting = progress(&waiting, [].iter());
        assert_eq!(waiting.message, "WaitingForTargets: pod trainer is not running");
        let taken = progress(&nothing, [capture("a", &json!(null))].iter());
        assert_eq!(taken.message, "Waiting for the agent");
    }

    #[test]
    fn the_end_is_told_with_the_reasons_of_the_captures() {
        let done = session("first", CREATED, &verdict("True", "Succeeded", ""));
        let now = progress(&done, [capture("a", &published())].iter());
        assert_eq!((now.percent, now.end), (100, Some(End::Succeeded)));

        let failed = json!({"conditions": [condition("Succeeded", "False", "NotPrepared", "label it")]});
        let told = "0 of 1 succeeded; failed: NotPrepared: label it";
        let session_failed = session("first", CREATED, &verdict("False", "Failed", told));
        let Some(End::Failed { message, .. }) = progress(&session_failed, [capture("a", &failed)].iter()).end else {
            panic!("it has failed");
        };
        assert_eq!(message, told, "nothing is told twice");
        let session = session("first", CREATED, &verdict("False", "Failed", "no capture succeeded"));
        let now = progress(&session, [capture("a", &failed)].iter());
        assert_eq!(
            now.end,
            Some(End::Failed {
                reason: "Failed".into(),
                message: "no capture succeeded\n  pod trainer: NotPrepared: label it".into()
            })
        );
    }
}
