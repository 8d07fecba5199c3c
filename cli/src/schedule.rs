//! `kubectl flopwatch schedule`: what schedules there are, what one will do next, and why it leaves
//! pods out.

mod show;

use std::collections::BTreeMap;
use std::sync::Arc;

use flopwatch_api::capture::Capture;
use flopwatch_api::schedule::{ProfilingSchedule, SCHEDULE_LABEL};
use flopwatch_api::session::ProfilingSession;
use flopwatch_report::Layout;
use flopwatch_schedule::{Explanation, Gathered, Objects, ScheduleError, explain, hardware};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};

use crate::arguments::{Format, ScheduleArguments};
use crate::cluster::{Cluster, ClusterError};
use crate::error::Error;
use crate::listing::{as_objects, print_none};
use crate::print::{object, say};
use crate::sessions::Columns;

/// Schedules as messages and `-o name` call them.
const KIND: &str = "profilingschedule.flopwatch.dev";

/// What a schedule will do, as far as it can be told.
pub(crate) struct Outlook {
    pub(crate) schedule: ProfilingSchedule,
    /// Why it does nothing, where its spec cannot be followed.
    pub(crate) explanation: Result<Explanation, ScheduleError>,
    /// Running pods that match and have no container to profile.
    pub(crate) without_container: usize,
    /// What could not be read, and what that hides.
    pub(crate) unread: Option<String>,
}

/// Lists schedules, explains one, or suspends or resumes it.
pub async fn run(cluster: &Cluster, arguments: &ScheduleArguments, layout: Layout) -> Result<(), Error> {
    let Some(name) = &arguments.schedule else {
        return list(cluster, arguments, layout).await;
    };
    if arguments.suspend || arguments.resume {
        return switch(cluster, &name.0, arguments).await;
    }
    let schedules: Api<ProfilingSchedule> = cluster.api();
    let schedule = cluster.call("read the schedule", schedules.get(&name.0)).await?;
    let format = arguments.format.output;
    if format == Some(Format::Name) {
        return say(&format!("{KIND}/{}\n", schedule.name_any()));
    }
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_else(|_| Timestamp::now());
    let outlook = outlook(cluster, schedule, usize::from(arguments.runs), now).await?;
    match format {
        Some(format @ (Format::Json | Format::Yaml)) => say(&object(&show::data(&outlook), format)?),
        _ => say(&show::outlook(&outlook, now, layout)),
    }
}

async fn list(cluster: &Cluster, arguments: &ScheduleArguments, layout: Layout) -> Result<(), Error> {
    let schedules: Api<ProfilingSchedule> = if arguments.all_namespaces {
        cluster.all()
    } else {
        cluster.api()
    };
    let mut found = cluster
        .list("list schedules", &schedules, arguments.selector.as_deref())
        .await?;
    found.sort_by_cached_key(|schedule| (schedule.namespace(), schedule.name_any()));
    let format = arguments.format.output;
    if let Some(text) = as_objects(KIND, &found, format)? {
        return say(&text);
    }
    if found.is_empty() {
        let help = "docs/schedules.md has one to begin with";
        print_none("schedules", cluster, arguments.all_namespaces, help);
        return Ok(());
    }
    let columns = Columns {
        namespaces: arguments.all_namespaces,
        wide: format == Some(Format::Wide),
    };
    say(&show::list(&found, columns, Timestamp::now(), layout))
}

async fn switch(cluster: &Cluster, name: &str, arguments: &ScheduleArguments) -> Result<(), Error> {
    let schedules: Api<ProfilingSchedule> = cluster.api();
    let (doing, done) = if arguments.suspend {
        ("suspend the schedule", "suspended")
    } else {
        ("resume the schedule", "resumed")
    };
    let patch = serde_json::json!({"spec": {"suspend": arguments.suspend}});
    let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
    let changed = schedules.patch(name, &params, &patch);
    let changed = cluster.call(doing, changed).await?;
    match arguments.format.output {
        Some(format @ (Format::Json | Format::Yaml)) => say(&object(&changed, format)?),
        Some(Format::Name) => say(&format!("{KIND}/{name}\n")),
        Some(Format::Wide) | None => say(&format!("{KIND}/{name} {done}\n")),
    }
}

/// Asks the cluster for what the controller decides with, and decides.
async fn outlook(
    cluster: &Cluster,
    schedule: ProfilingSchedule,
    runs: usize,
    now: Timestamp,
) -> Result<Outlook, Error> {
    let made = format!("{SCHEDULE_LABEL}={}", schedule.name_any());
    let (pods, sessions, captures) = (cluster.api::<Pod>(), cluster.api(), cluster.api());
    let pods = shared(cluster.list("list pods", &pods, None).await?);
    let sessions: Vec<Arc<ProfilingSession>> = shared(cluster.list("list sessions", &sessions, Some(&made)).await?);
    let captures: Vec<Arc<Capture>> = shared(cluster.list("list captures", &captures, Some(&made)).await?);
    let (nodes, unread) = match cluster.list("list nodes", &cluster.all::<Node>(), None).await {
        Ok(nodes) => (nodes, None),
        Err(ClusterError::Forbidden { .. }) => {
            let hidden = "you may not list nodes, so what hardware pods run on is not known: backoff and budgets of their classes are left out";
            (Vec::new(), Some(hidden.to_owned()))
        }
        Err(error) => return Err(error.into()),
    };
    let nodes: BTreeMap<String, String> = nodes
        .iter()
        .filter_map(|node| Some((node.name_any(), hardware(node)?)))
        .collect();
    let objects = Objects {
        schedule: &schedule,
        pods: &pods,
        sessions: &sessions,
        captures: &captures,
        hardware: &|node| nodes.get(node).cloned(),
    };
    let gathered = Gathered::new(&objects, now);
    let without_container = gathered.as_ref().map_or(0, |gathered| gathered.without_container);
    let explanation = gathered.and_then(|gathered| explain(&gathered.facts(&schedule.spec, now), runs));
    Ok(Outlook {
        schedule,
        explanation,
        without_container,
        unread,
    })
}

fn shared<T>(objects: Vec<T>) -> Vec<Arc<T>> {
    objects.into_iter().map(Arc::new).collect()
}
