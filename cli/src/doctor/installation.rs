//! Whether Flopwatch itself is there and at work.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

use crate::doctor::{Finding, Level, Lookup, World};
use crate::gateway::is_ready;

/// Label that tells Flopwatch's pods apart.
const COMPONENT: &str = "app.kubernetes.io/component";

pub(super) fn examine(world: &World) -> Vec<Finding> {
    let namespace = &world.flopwatch_namespace;
    let mut findings = Vec::new();
    match &world.installation {
        Lookup::Hidden => {
            let what = format!("whether Flopwatch runs: you may not list pods in namespace {namespace}");
            findings.push(Finding::new(Level::Unchecked, what));
        }
        Lookup::Absent => {
            let what = format!("nothing of Flopwatch runs in namespace {namespace}");
            let remedy = "name the namespace that it is installed in (--flopwatch-namespace), or install it";
            findings.push(Finding::new(Level::BlocksAll, what).remedy(remedy));
        }
        Lookup::Found(pods) => {
            findings.push(controller(pods, namespace));
            if !serves(pods, "gateway") {
                let what = "no gateway is ready: results cannot be fetched through it now";
                findings.push(Finding::new(Level::Note, what).remedy(see(namespace, "gateway")));
            }
        }
    }
    if let Lookup::Found(settings) = &world.settings {
        let suspended = settings.data.iter().find_map(|data| data.get("capturesSuspended"));
        if suspended.is_some_and(|value| value.trim() == "true") {
            let what = "new captures are suspended in this cluster";
            let map = settings.name_any();
            let remedy = format!("ask your administrator: capturesSuspended in ConfigMap {namespace}/{map}");
            findings.push(Finding::new(Level::BlocksAll, what).remedy(remedy));
        }
    }
    findings
}

/// Whether the controller is ready, without which no session goes on.
fn controller(pods: &[Pod], namespace: &str) -> Finding {
    if serves(pods, "controller") {
        return Finding::new(Level::Good, "the controller runs");
    }
    let what = "no controller is ready: no session is taken up";
    Finding::new(Level::BlocksAll, what).remedy(see(namespace, "controller"))
}

pub(super) fn is_component(pod: &Pod, name: &str) -> bool {
    pod.labels().get(COMPONENT).is_some_and(|component| component == name)
}

pub(super) fn serves(pods: &[Pod], name: &str) -> bool {
    pods.iter().any(|pod| is_component(pod, name) && is_ready(pod))
}

pub(super) fn see(namespace: &str, name: &str) -> String {
    format!("kubectl -n {namespace} describe pods -l {COMPONENT}={name}")
}
