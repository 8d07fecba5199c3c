//! Examines whether a pod can be profiled, and reports what is missing and the remedy.
//!
//! The examination is a pure function of the pod, its node and namespace, and Flopwatch's own
//! objects. It judges by every profiler that the pod is prepared for, and by Nsight Systems where
//! it is prepared for none. An object that the caller may not read is reported as unchecked.

mod gather;
mod installation;
mod placement;
mod preparation;
mod sharing;

use std::collections::BTreeSet;

use flopwatch_api::capture::Capture;
use flopwatch_api::pod::{asked_for, asks_for_gpu, prepared_for, profilable};
use flopwatch_api::preparation::PreparationWord;
use flopwatch_api::profiler::ProfilerType;
use flopwatch_report::{Layout, Tone};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Container, Namespace, Node, Pod};
use kube::ResourceExt as _;
use serde::Serialize;

use crate::arguments::{DoctorArguments, Format};
use crate::cluster::Cluster;
use crate::error::Error;
use crate::print::{line, object, say};

/// The result of looking up an object of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup<T> {
    /// The object exists.
    Found(T),
    /// The object does not exist.
    Absent,
    /// The caller may not read the object.
    Hidden,
}

/// What the examination looks at.
#[derive(Clone, Debug)]
pub struct World {
    /// Pod that is looked at.
    pub pod: Pod,
    /// Namespace of the pod, as far as the caller may read it.
    pub namespace: Lookup<Namespace>,
    /// Its node; absent for a pod that has none.
    pub node: Lookup<Node>,
    /// Pods of Flopwatch itself; absent when there are none.
    pub installation: Lookup<Vec<Pod>>,
    /// Namespace in which they were looked for.
    pub flopwatch_namespace: String,
    /// Where the API server sends pods before it creates them.
    pub webhooks: Lookup<MutatingWebhookConfiguration>,
    /// The controller's settings.
    pub settings: Lookup<ConfigMap>,
    /// Captures of this very pod.
    pub captures: Vec<Capture>,
}

/// What a finding means for profiling the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    /// As it should be.
    Good,
    /// Something worth knowing that keeps nothing from working.
    Note,
    /// The caller may not read what it takes to tell.
    Unchecked,
    /// No Nsight Systems, and nobody asked for it: the pod is prepared for another profiler.
    LacksNsys,
    /// No Nsight Systems as it is; metrics are unaffected.
    BlocksNsys,
    /// Nothing can be captured as it is.
    BlocksAll,
}

/// Something that was found out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What the finding means for profiling the pod.
    pub level: Level,
    /// What is so.
    pub what: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    fn new(level: Level, what: impl Into<String>) -> Self {
        Self {
            level,
            what: line(&what.into()),
            remedy: None,
        }
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(line(&remedy.into()));
        self
    }
}

/// Whether a profiler can profile the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// The profiler.
    pub profiler: ProfilerType,
    /// Whether it can, by all that could be checked.
    pub open: bool,
}

/// What became of the examination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The pod, as `namespace/name`.
    pub pod: String,
    /// Containers that were looked at.
    pub containers: Vec<String>,
    /// Whether Nsight Systems can profile them, by all that could be checked.
    pub nsys: bool,
    /// Whether metrics can be captured, by all that could be checked.
    pub metrics: bool,
    /// The profilers that the pod is prepared for or asks for, in the order of their table; Nsight
    /// Systems where there are none.
    pub profilers: Vec<Judgement>,
    /// What was found out, in the order in which it matters.
    pub findings: Vec<Finding>,
}

/// Examines a pod, or one container of it.
pub fn examine(world: &World, container: Option<&str>) -> Report {
    let mut findings = installation::examine(world);
    findings.extend(placement::examine(world));
    let (containers, chosen) = choose(&world.pod, container);
    findings.push(chosen);
    findings.extend(preparation::examine(world, &containers));
    findings.extend(sharing::examine(world, &containers));
    let none = |level: &[Level]| !findings.iter().any(|finding| level.contains(&finding.level));
    let nsys = none(&[Level::BlocksAll, Level::BlocksNsys, Level::LacksNsys]);
    let metrics = none(&[Level::BlocksAll]);
    Report {
        pod: format!("{}/{}", world.pod.namespace().unwrap_or_default(), world.pod.name_any()),
        nsys,
        metrics,
        profilers: judge(&world.pod, &containers, nsys, metrics),
        containers: containers.iter().map(|container| container.name.clone()).collect(),
        findings,
    }
}

/// What each profiler that the pod is prepared for, or Nsight Systems, can do: it by `nsys`, the
/// others where anything is `open`.
fn judge(pod: &Pod, containers: &[&Container], nsys: bool, open: bool) -> Vec<Judgement> {
    let mut words: BTreeSet<PreparationWord> = BTreeSet::new();
    for container in containers {
        words.extend(prepared_for(pod, &container.name).words());
    }
    let is_asked = asked_for(pod).is_some_and(|asked| asked.contains(PreparationWord::Nsys));
    if words.is_empty() || is_asked {
        words.insert(PreparationWord::Nsys);
    }
    let judged = words.into_iter().map(|word| Judgement {
        profiler: word.profiler(),
        open: if word == PreparationWord::Nsys { nsys } else { open },
    });
    judged.collect()
}

/// The latest capture of a container in which the agent looked at it.
fn last_probed<'a>(captures: &'a [Capture], container: &str) -> Option<&'a Capture> {
    let of_it = captures
        .iter()
        .filter(|capture| capture.spec.container_name == container);
    let is_probed = |capture: &&Capture| capture.status.iter().any(|status| !status.capabilities.is_empty());
    of_it
        .filter(is_probed)
        .max_by_key(|capture| capture.creation_timestamp())
}

/// The containers that a session would take, and what there is to say of the choice.
fn choose<'a>(pod: &'a Pod, wanted: Option<&str>) -> (Vec<&'a Container>, Finding) {
    let all: Vec<&Container> = profilable(pod).collect();
    let those = |is_one: &dyn Fn(&Container) -> bool| -> Vec<&'a Container> {
        all.iter().copied().filter(|container| is_one(container)).collect()
    };
    if let Some(wanted) = wanted {
        let found = those(&|container| container.name == wanted);
        let finding = if found.is_empty() {
            let what = format!("the pod has no container {wanted}");
            Finding::new(Level::BlocksAll, what).remedy(format!("it has {}", listed(&all)))
        } else {
            Finding::new(Level::Good, format!("the pod has container {wanted}"))
        };
        return (found, finding);
    }
    let asking = those(&asks_for_gpu);
    if !asking.is_empty() {
        let finding = Finding::new(Level::Good, format!("asks for a GPU: {}", listed(&asking)));
        return (asking, finding);
    }
    let prepared = those(&|container| {
        preparation::is_prepared(pod, &container.name) || !prepared_for(pod, &container.name).is_empty()
    });
    if !prepared.is_empty() {
        let names = listed(&prepared);
        let what = format!("no container asks for a GPU; sessions take those that were prepared: {names}");
        return (prepared, Finding::new(Level::Note, what));
    }
    let what = "no container asks for a GPU and none was prepared";
    let (name, names) = (pod.name_any(), listed(&all));
    let remedy = format!("name one: profile {name} -c CONTAINER (it has {names})");
    (all, Finding::new(Level::BlocksAll, what).remedy(remedy))
}

fn listed(containers: &[&Container]) -> String {
    let names: Vec<&str> = containers.iter().map(|container| container.name.as_str()).collect();
    names.join(", ")
}

/// The report for people.
pub fn render(report: &Report, layout: Layout) -> String {
    let mut lines = vec![format!("Pod {}", line(&report.pod)), String::new()];
    for finding in &report.findings {
        let (mark, tone) = match finding.level {
            Level::Good => ("ok  ", Tone::Good),
            Level::Note | Level::LacksNsys => ("note", Tone::Note),
            Level::Unchecked => ("?   ", Tone::Note),
            Level::BlocksNsys | Level::BlocksAll => ("no  ", Tone::Bad),
        };
        lines.push(format!("{}  {}", layout.paint(tone, mark), finding.what));
        lines.extend(finding.remedy.iter().map(|remedy| format!("      -> {remedy}")));
    }
    let verdict = |open: bool| {
        if open {
            layout.paint(Tone::Good, "open")
        } else {
            layout.paint(Tone::Bad, "closed")
        }
    };
    lines.push(format!("\nNsight Systems: {}", verdict(report.nsys)));
    let others = report.profilers.iter();
    for judged in others.filter(|judged| judged.profiler != ProfilerType::Nsys) {
        lines.push(format!(
            "{:15} {}",
            format!("{}:", judged.profiler.called()),
            verdict(judged.open)
        ));
    }
    lines.push(format!("NVML metrics:   {}\n", verdict(report.metrics)));
    lines.join("\n")
}

/// Runs `doctor`: looks, prints, and fails when something blocks a profiler that the pod is
/// prepared for.
pub async fn run(cluster: &Cluster, arguments: &DoctorArguments, layout: Layout) -> Result<(), Error> {
    let world = gather::gather(cluster, &arguments.pod.0).await?;
    let report = examine(&world, arguments.container.as_deref());
    let text = match arguments.output.as_deref() {
        Some("yaml") => object(&report, Format::Yaml)?,
        Some(_) => object(&report, Format::Json)?,
        None => render(&report, layout),
    };
    say(&text)?;
    let closed = report.profilers.iter().filter(|judged| !judged.open);
    let closed: Vec<&str> = closed.map(|judged| judged.profiler.called()).collect();
    if closed.is_empty() {
        return Ok(());
    }
    Err(Error::Unfit {
        name: arguments.pod.0.clone(),
        profilers: closed.join(" and "),
    })
}

#[cfg(test)]
mod tests;
