//! What the pod was prepared for, and what it takes to prepare it for Nsight Systems where it was
//! not.

use std::collections::BTreeMap;

use flopwatch_api::capture::Capture;
use flopwatch_api::pod;
use flopwatch_api::preparation::{
    NSYS_TRACE_ANNOTATION, NSYS_TRACE_DEFAULT, PREPARE_CONTAINERS_ANNOTATION, PREPARE_LABEL, PREPARED_ANNOTATION,
    PreparationWord, PreparedFor, UNPREPARED_ANNOTATION, split_names,
};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt as _;
use kube::core::{Selector, SelectorExt as _};

use crate::doctor::installation::{see, serves};
use crate::doctor::{Finding, Level, Lookup, World, last_probed};

/// The webhook that prepares pods.
const PODS_WEBHOOK: &str = "pods.flopwatch.dev";

/// Whether admission wrote down that it prepared the container, and did: a user may copy the
/// annotation alone.
pub(super) fn is_prepared(pod: &Pod, container: &str) -> bool {
    pod::has_launcher(pod) && pod::is_prepared(pod, container)
}

pub(super) fn examine(world: &World, containers: &[&Container]) -> Vec<Finding> {
    let pod = &world.pod;
    let found = containers.iter().map(|container| of_container(pod, container));
    let mut findings: Vec<Finding> = found.collect();
    let is_settled = |finding: &Finding| matches!(finding.level, Level::Good | Level::LacksNsys);
    if !findings.iter().all(is_settled) {
        findings.extend(admission(world));
        findings.extend(obstacles(pod, containers));
    }
    findings.extend(containers.iter().filter_map(|container| others(pod, container)));
    findings.extend(last_probe(&world.captures, containers));
    findings
}

fn of_container(pod: &Pod, container: &Container) -> Finding {
    let name = &container.name;
    if is_prepared(pod, name) {
        let trace = pod.annotations().get(NSYS_TRACE_ANNOTATION);
        let trace = trace.map_or(NSYS_TRACE_DEFAULT, String::as_str);
        let what = format!("container {name} is prepared and can trace {trace}");
        return Finding::new(Level::Good, what);
    }
    if let Some(why) = refusal(pod, name) {
        return Finding::new(Level::BlocksNsys, format!("container {name} was not prepared: {why}"))
            .remedy(format!("change that, and {}", anew(pod)));
    }
    let unprepared = |why: &str| {
        let what = format!("container {name} is not prepared: {why}");
        Finding::new(Level::BlocksNsys, what)
    };
    let Some(label) = pod.labels().get(PREPARE_LABEL) else {
        return unprepared("nobody asked for it").remedy(opt_in(pod));
    };
    match label.parse::<PreparedFor>() {
        Err(unknown) => return Finding::new(Level::BlocksNsys, unknown.to_string()).remedy(opt_in(pod)),
        Ok(words) if !words.contains(PreparationWord::Nsys) => {
            let what = format!("label {PREPARE_LABEL} is {label}, which leaves Nsight Systems out");
            let level = if pod::prepared_for(pod, name).is_empty() {
                Level::BlocksNsys
            } else {
                Level::LacksNsys
            };
            return Finding::new(level, what).remedy(opt_in(pod));
        }
        Ok(_) => {}
    }
    let named = pod.annotations().get(PREPARE_CONTAINERS_ANNOTATION);
    if let Some(named) = named.filter(|named| !split_names(named).any(|other| other == name)) {
        let why = format!("annotation {PREPARE_CONTAINERS_ANNOTATION} names {named} alone");
        return unprepared(&why).remedy(format!("add it there, and {}", anew(pod)));
    }
    if pod.annotations().contains_key(PREPARED_ANNOTATION) {
        let anew = anew(pod);
        let remedy = format!("name it in annotation {PREPARE_CONTAINERS_ANNOTATION}, and {anew}");
        return unprepared("containers that ask for a GPU go before it").remedy(remedy);
    }
    let why = "the pod asks for it, and admission did not see the pod when it was created";
    unprepared(why).remedy(anew(pod))
}

/// What the container was prepared for beside Nsight Systems.
fn others(pod: &Pod, container: &Container) -> Option<Finding> {
    let name = &container.name;
    let others = pod::prepared_for(pod, name);
    let others = others.words().filter(|word| *word != PreparationWord::Nsys);
    let others = others.map(PreparationWord::as_str).collect::<Vec<_>>().join(", ");
    (!others.is_empty()).then(|| Finding::new(Level::Good, format!("container {name} is prepared for {others}")))
}

/// What admission wrote down about the container.
fn refusal<'a>(pod: &'a Pod, container: &str) -> Option<&'a str> {
    let lines = pod.annotations().get(UNPREPARED_ANNOTATION)?.lines();
    lines
        .filter_map(|line| line.split_once(": "))
        .find(|(name, _)| *name == container)
        .map(|(_, why)| why)
}

/// Whether admission would see the pod that comes next.
fn admission(world: &World) -> Vec<Finding> {
    let mut findings = Vec::new();
    match &world.webhooks {
        Lookup::Hidden => {
            let what = "whether admission sees pods of this namespace: you may not read the webhook configuration";
            findings.push(Finding::new(Level::Unchecked, what));
        }
        Lookup::Absent => {
            let what = "Flopwatch's admission is not installed: no pod is prepared";
            let remedy = "install the chart with admission.enabled=true";
            findings.push(Finding::new(Level::BlocksNsys, what).remedy(remedy));
        }
        Lookup::Found(webhooks) if !sees(webhooks, world) => {
            let namespace = world.pod.namespace().unwrap_or_default();
            let what = format!("admission does not look at namespace {namespace}");
            let remedy = "run the pod in another namespace, or change admission.excludedNamespaces of the chart";
            findings.push(Finding::new(Level::BlocksNsys, what).remedy(remedy));
        }
        Lookup::Found(_) => {}
    }
    if let Lookup::Found(pods) = &world.installation
        && matches!(world.webhooks, Lookup::Found(_))
        && !serves(pods, "admission")
    {
        let what = "no admission is ready: pods are created unprepared now";
        let remedy = see(&world.flopwatch_namespace, "admission");
        findings.push(Finding::new(Level::BlocksNsys, what).remedy(remedy));
    }
    findings
}

fn sees(webhooks: &MutatingWebhookConfiguration, world: &World) -> bool {
    let mut all = webhooks.webhooks.iter().flatten();
    let Some(webhook) = all.find(|webhook| webhook.name == PODS_WEBHOOK) else {
        return false;
    };
    let Some(selector) = webhook.namespace_selector.clone() else {
        return true;
    };
    let labels: BTreeMap<String, String> = match &world.namespace {
        Lookup::Found(namespace) => namespace.labels().clone(),
        // Every namespace has this one.
        _ => BTreeMap::from([(
            "kubernetes.io/metadata.name".to_owned(),
            world.pod.namespace().unwrap_or_default(),
        )]),
    };
    Selector::try_from(selector).is_ok_and(|selector| selector.matches(&labels))
}

/// What would keep a container from being prepared though the pod opted in; told before the user
/// tries.
fn obstacles(pod: &Pod, containers: &[&Container]) -> Vec<Finding> {
    let spec = pod.spec.as_ref();
    let mut findings = Vec::new();
    if spec.and_then(|spec| spec.host_pid) == Some(true) {
        let what = "the pod has hostPID, so a profile would see every process of the node";
        findings.push(Finding::new(Level::BlocksNsys, what).remedy("remove hostPID"));
    }
    for container in containers.iter().filter(|container| !is_prepared(pod, &container.name)) {
        let name = &container.name;
        if refusal(pod, name).is_some() {
            continue;
        }
        if container.command.as_ref().is_none_or(Vec::is_empty) {
            let what = format!("container {name} has no command of its own, which preparation needs");
            let remedy = "write the image's entrypoint as its command, or let admission look it up (admission.entrypointLookup of the chart)";
            findings.push(Finding::new(Level::Note, what).remedy(remedy));
        }
        let mounts = container.volume_mounts.iter().flatten();
        let paths = mounts.map(|mount| mount.mount_path.trim_end_matches('/'));
        for path in paths.filter(|path| *path == "/flopwatch" || path.starts_with("/flopwatch/")) {
            let what = format!("container {name} mounts a volume at {path}");
            findings.push(Finding::new(Level::BlocksNsys, what).remedy("/flopwatch must be free"));
        }
    }
    findings
}

/// What the agent found when the pod was profiled last.
fn last_probe(captures: &[Capture], containers: &[&Container]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for container in containers {
        let Some(last) = last_probed(captures, &container.name) else {
            continue;
        };
        let at = last
            .creation_timestamp()
            .map(|time| format!(" of {}", time.0))
            .unwrap_or_default();
        let capabilities = last.status.iter().flat_map(|status| &status.capabilities);
        for closed in capabilities.filter(|capability| !capability.available) {
            let (name, profiler, reason) = (&container.name, closed.profiler.as_str(), &closed.reason);
            let what = format!(
                "capture {}{at} found {profiler} closed for container {name}: {reason}",
                last.name_any()
            );
            let finding = Finding::new(Level::Note, what);
            findings.push(if closed.remedy.is_empty() {
                finding
            } else {
                finding.remedy(&closed.remedy)
            });
        }
    }
    findings
}

/// How to opt in, by what the pod was made from. What it asks for already stays.
fn opt_in(pod: &Pod) -> String {
    let namespace = pod.namespace().unwrap_or_default();
    let words = pod::asked_for(pod).unwrap_or_default().with(PreparationWord::Nsys);
    let template = format!(r#"{{"spec":{{"template":{{"metadata":{{"labels":{{"{PREPARE_LABEL}":"{words}"}}}}}}}}}}"#);
    match maker(pod) {
        Some((kind @ ("Deployment" | "StatefulSet" | "DaemonSet"), name)) => format!(
            "kubectl -n {namespace} patch {}/{name} -p '{template}' (its pods are created anew)",
            kind.to_ascii_lowercase()
        ),
        Some((kind, name)) => format!(
            "put the label {PREPARE_LABEL}: {words} on the pod template of {kind} {name} and let it make its pods anew"
        ),
        None => format!("put the label {PREPARE_LABEL}: {words} on the pod, delete it and create it anew"),
    }
}

/// How to get the pod anew.
fn anew(pod: &Pod) -> String {
    match maker(pod) {
        Some((kind @ ("Deployment" | "StatefulSet" | "DaemonSet"), name)) => {
            let namespace = pod.namespace().unwrap_or_default();
            format!(
                "let the pod be created anew: kubectl -n {namespace} rollout restart {}/{name}",
                kind.to_ascii_lowercase()
            )
        }
        _ => "create the pod anew".to_owned(),
    }
}

/// Kind and name of what made the pod; a Deployment's ReplicaSet is seen through.
fn maker(pod: &Pod) -> Option<(&str, String)> {
    let owners = pod.metadata.owner_references.as_deref()?;
    let owner = owners.iter().find(|owner| owner.controller == Some(true))?;
    let hash = pod.labels().get("pod-template-hash");
    let deployment = hash.and_then(|hash| owner.name.strip_suffix(hash.as_str())?.strip_suffix('-'));
    match (owner.kind.as_str(), deployment) {
        ("ReplicaSet", Some(deployment)) => Some(("Deployment", deployment.to_owned())),
        (kind, _) => Some((kind, owner.name.clone())),
    }
}
