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
        Lookup::Hidden => findings.push(Finding::new(
            Level::Unchecked,
            format!("whether Flopwatch runs: you may not list pods in namespace {namespace}"),
        )),
        Lookup::Absent => findings.push(
            Finding::new(
                Level::BlocksAll,
                format!("nothing of Flopwatch runs in namespace {namespace}"),
            )
            .remedy("name the namespace that it is installed in (--flopwatch-namespace), or install it"),
        ),
        Lookup::Found(pods) => {
            findings.push(component(
                pods,
                "controller",
                Level::BlocksAll,
                namespace,
                "no session is taken up",
            ));
            if !serves(pods, "gateway") {
                findings.push(
                    Finding::new(
                        Level::Note,
                        "no gateway is ready: results cannot be fetched through it now",
                    )
                    .remedy(see(namespace, "gateway")),
                );
            }
        }
    }
    if let Lookup::Found(settings) = &world.settings {
        let data = settings.data.as_ref();
        if data
            .and_then(|data| data.get("capturesSuspended"))
            .is_some_and(|value| value.trim() == "true")
        {
            findings.push(
                Finding::new(Level::BlocksAll, "new captures are suspended in this cluster").remedy(format!(
                    "ask your administrator: capturesSuspended in ConfigMap {namespace}/{}",
                    settings.name_any()
                )),
            );
        }
    }
    findings
}

/// Whether a pod of the component is ready, and what it means when none is.
pub(super) fn component(pods: &[Pod], name: &str, level: Level, namespace: &str, else_what: &str) -> Finding {
    if serves(pods, name) {
        Finding::new(Level::Good, format!("the {name} runs"))
    } else {
        Finding::new(level, format!("no {name} is ready: {else_what}")).remedy(see(namespace, name))
    }
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
