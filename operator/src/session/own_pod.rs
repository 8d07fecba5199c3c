//! The pod that a session makes from `spec.target.podTemplate` or `replicaOf`: what it is, and
//! making it.

use std::collections::BTreeSet;
use std::sync::Arc;

use flopwatch_api::pod;
use flopwatch_api::preparation::{
    HOLD_ANNOTATION, NCU_OPTIONS_ANNOTATION, NSYS_CUDA_GRAPH_ANNOTATION, NSYS_GPU_METRICS_ANNOTATION,
    NSYS_NVTX_CAPTURE_ANNOTATION, NSYS_TRACE_ANNOTATION, NSYS_TRACE_DEFAULT, PREPARE_CONTAINERS_ANNOTATION,
    PREPARE_LABEL, PreparationWord, REPLICA_OF_ANNOTATION, START_ANNOTATION, split_names,
};
use flopwatch_api::profiler::TraceCategory;
use flopwatch_api::reason::SessionReason;
use flopwatch_api::session::{PodTemplate, ProfilingSession, StartMode};
use flopwatch_api::{OPERATOR_FIELD_MANAGER, REQUESTED_BY_ANNOTATION, SESSION_LABEL};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ApiResource, DeleteParams, ListParams, PostParams, Preconditions};
use kube::core::DynamicObject;
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::controller::context::Context;
use crate::deadline::{CallError, bounded};
use crate::session::targets::{Selection, choose_among};

/// ClusterRole of the chart that lets the controller make pods where it is bound to it, and nowhere
/// else.
pub const POD_TEMPLATES_ROLE: &str = "flopwatch-pod-templates";
/// ServiceAccount of the chart that the controller runs as.
const CONTROLLER_ACCOUNT: &str = "flopwatch-controller";

/// The result of creating a session's own pod.
#[derive(Clone, Debug)]
pub enum Attempt {
    /// The pod exists.
    Made(Arc<Pod>),
    /// Not now; trying again may help.
    Waits {
        /// `PodRefused`, `PodsNotAllowed` or `PodNotPrepared`.
        reason: SessionReason,
        /// What the API server or admission said, for the session's condition.
        message: String,
    },
    /// Not this pod, ever.
    Refused {
        /// `PodRefused` or `PodNotPrepared`.
        reason: SessionReason,
        /// Why, and what to do.
        message: String,
    },
}

/// Name of the session's pod, the same in every try: the session's name and ten hexadecimal digits
/// of its UID.
pub fn name(session: &ProfilingSession) -> String {
    let mut digits = hex::encode(Sha256::digest(session.uid().unwrap_or_default()));
    digits.truncate(10);
    format!("{}-{digits}", session.name_any())
}

/// The field of the session that its pod was made of, as sentences name it.
fn field(session: &ProfilingSession) -> &'static str {
    session.spec.target.own_pod_field().unwrap_or("spec.target")
}

/// Whether this very session made the pod.
pub fn is_own(session: &ProfilingSession, pod: &Pod) -> bool {
    let owns = |uid: &str| {
        pod.owner_references()
            .iter()
            .any(|owner| owner.controller == Some(true) && owner.uid == uid)
    };
    session.metadata.uid.as_deref().is_some_and(owns)
}

/// The pod to make: the template, with what the session adds to it. `kernels` are those that
/// another session found, where this one asks for them.
pub fn manifest(session: &ProfilingSession, template: &PodTemplate, kernels: &[String]) -> DynamicObject {
    let metadata = template.metadata.clone().unwrap_or_default();
    let (mut labels, mut annotations) = (metadata.labels, metadata.annotations);
    labels.insert(SESSION_LABEL.to_owned(), session.name_any());
    // Policies and audits see the controller create the pod; here they read for whom. A template
    // cannot forge it.
    annotations.remove(REQUESTED_BY_ANNOTATION);
    if session.spec.target.replica_of.is_none() {
        annotations.remove(REPLICA_OF_ANNOTATION);
    }
    if let Some(user) = session.annotations().get(REQUESTED_BY_ANNOTATION) {
        annotations.insert(REQUESTED_BY_ANNOTATION.to_owned(), user.clone());
    }
    if let Some(word) = session.spec.profiler.type_.preparation_word() {
        labels.insert(PREPARE_LABEL.to_owned(), word.as_str().to_owned());
        if let Some((key, value)) = fixed_at_start(session, kernels) {
            // The launcher starts the program, and holds the container for its capture.
            annotations.insert(HOLD_ANNOTATION.to_owned(), "true".to_owned());
            annotations.insert(START_ANNOTATION.to_owned(), session.spec.start.as_str().to_owned());
            annotations.entry(key.to_owned()).or_insert(value);
        }
        let options = session.spec.profiler.nsys.as_ref();
        if let Some(mode) = options.and_then(|options| options.cuda_graph_trace) {
            annotations
                .entry(NSYS_CUDA_GRAPH_ANNOTATION.to_owned())
                .or_insert_with(|| mode.as_str().to_owned());
        }
        if options.is_some_and(|options| options.gpu_metrics.is_some()) {
            annotations
                .entry(NSYS_GPU_METRICS_ANNOTATION.to_owned())
                .or_insert_with(|| "true".to_owned());
        }
        let range = options.and_then(|options| options.capture_range.as_ref());
        if let Some(name) = range.and_then(|range| range.name.clone()) {
            annotations
                .entry(NSYS_NVTX_CAPTURE_ANNOTATION.to_owned())
                .or_insert(name);
        }
        if !session.spec.target.container_names.is_empty() {
            annotations
                .entry(PREPARE_CONTAINERS_ANNOTATION.to_owned())
                .or_insert_with(|| session.spec.target.container_names.join(","));
        }
    }
    let mut spec = template.spec.clone();
    spec.insert("restartPolicy".to_owned(), json!("Never"));
    let mut pod = DynamicObject::new(&name(session), &ApiResource::erase::<Pod>(&()));
    pod.metadata = ObjectMeta {
        namespace: session.namespace(),
        labels: Some(labels),
        annotations: Some(annotations),
        owner_references: session.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..pod.metadata
    };
    pod.data = json!({ "spec": Value::Object(spec) });
    pod
}

/// The annotation with what is fixed when the program starts; None where the program starts without
/// the launcher.
fn fixed_at_start(session: &ProfilingSession, kernels: &[String]) -> Option<(&'static str, String)> {
    let profiler = &session.spec.profiler;
    match profiler.type_.preparation_word()? {
        PreparationWord::Nsys => Some((NSYS_TRACE_ANNOTATION, traced(session))),
        PreparationWord::Ncu => {
            let mut options = profiler.ncu.clone().unwrap_or_default();
            options.kernel_names.extend_from_slice(kernels);
            Some((NCU_OPTIONS_ANNOTATION, json!(options).to_string()))
        }
        _ => None,
    }
}

/// What is prepared unless the template says otherwise: what the session asks for, and the default.
fn traced(session: &ProfilingSession) -> String {
    let spec = &session.spec;
    let default = split_names(NSYS_TRACE_DEFAULT).filter_map(TraceCategory::from_name);
    let asked = spec.profiler.nsys.iter().flat_map(|options| {
        let trigger = options.capture_range.as_ref().map(|range| range.trigger.traced());
        options.trace.iter().copied().chain(trigger)
    });
    let required = spec.require.iter().copied().filter_map(TraceCategory::recording);
    let all: BTreeSet<TraceCategory> = asked.chain(required).chain(default).collect();
    all.into_iter().map(TraceCategory::as_str).collect::<Vec<_>>().join(",")
}

/// Why a pod, as admission left it, is of no use to the session: a sentence, and whether trying
/// again may help.
pub fn unprepared(session: &ProfilingSession, pod: &Pod) -> Option<(String, bool)> {
    let spec = &session.spec;
    if !spec.profiler.type_.needs_launcher() && spec.start != StartMode::ContainerStart {
        return None;
    }
    if let Some(why) = pod::unprepared(pod) {
        let message = format!(
            "the pod of {} cannot be prepared: {}",
            field(session),
            why.replace('\n', "; ")
        );
        return Some((message, false));
    }
    pod::prepared_containers(pod).next().is_none().then(|| {
        let message = format!(
            "the pod of {} would not be prepared: Flopwatch's admission did not answer, or does not look at this namespace",
            field(session)
        );
        (message, true)
    })
}

/// How many captures the session makes of its pod. What cannot be told before admission has seen it
/// counts as one.
pub fn captures(session: &ProfilingSession, pod: &Pod) -> usize {
    match choose_among(&session.spec.target, vec![pod], &BTreeSet::new()) {
        Selection::Found(targets) => targets.len(),
        Selection::Waiting(_) | Selection::Impossible { .. } => session.spec.target.container_names.len().max(1),
    }
}

/// Name and UID of a pod that may still run.
pub fn unfinished(pod: &Pod) -> Option<(String, String)> {
    let over = pod::has_ended(pod) || pod.metadata.deletion_timestamp.is_some();
    (!over).then(|| Some((pod.name_any(), pod.uid()?))).flatten()
}

/// Makes the pod. First for trial, so that a pod that admission would not prepare never runs.
pub async fn make(session: &ProfilingSession, pod: &DynamicObject, context: &Context) -> Result<Attempt, CallError> {
    let namespace = session.namespace().unwrap_or_default();
    let api: Api<DynamicObject> =
        Api::namespaced_with(context.client.clone(), &namespace, &ApiResource::erase::<Pod>(&()));
    for dry_run in [true, false] {
        let params = PostParams {
            dry_run,
            field_manager: Some(OPERATOR_FIELD_MANAGER.to_owned()),
        };
        let answer = match bounded("creating the session's pod", api.create(&params, pod)).await {
            Ok(answer) => answer,
            Err(error) if error.already_exists() => {
                let existing = find(session, context).await?;
                return existing.map(Attempt::Made).ok_or(error);
            }
            Err(error) => return refusal(error, session, context).await,
        };
        let Some(made) = typed(answer) else {
            let message = format!("the pod of {} is none that this version can read", field(session));
            let reason = SessionReason::PodRefused;
            return Ok(Attempt::Refused { reason, message });
        };
        if !dry_run {
            tracing::info!(
                namespace,
                session = session.name_any(),
                pod = made.name_any(),
                "created the session's pod"
            );
            return Ok(Attempt::Made(Arc::new(made)));
        }
        if let Some((message, may_help)) = unprepared(session, &made) {
            let reason = SessionReason::PodNotPrepared;
            return Ok(if may_help {
                Attempt::Waits { reason, message }
            } else {
                Attempt::Refused { reason, message }
            });
        }
    }
    Ok(Attempt::Waits {
        reason: SessionReason::PodRefused,
        message: "the pod was not made".to_owned(),
    })
}

/// What the API server's refusal means for the session: a quota may have room later, a malformed
/// pod stays malformed.
async fn refusal(error: CallError, session: &ProfilingSession, context: &Context) -> Result<Attempt, CallError> {
    let Some((code, message)) = error.refusal() else {
        return Err(error);
    };
    let namespace = &session.namespace().unwrap_or_default();
    let message = format!("the pod of {} is refused: {message}", field(session));
    let reason = SessionReason::PodRefused;
    match code {
        400 | 422 => Ok(Attempt::Refused { reason, message }),
        403 if !may_create_pods(namespace, context).await => Ok(Attempt::Waits {
            reason: SessionReason::PodsNotAllowed,
            message: not_allowed(namespace, context.client.default_namespace()),
        }),
        403 => Ok(Attempt::Waits { reason, message }),
        _ => Err(error),
    }
}

/// Whether the controller itself may create pods there. A quota and Pod Security answer 403 as
/// well, so the API server is asked; where it does not say, its refusal speaks for itself.
async fn may_create_pods(namespace: &str, context: &Context) -> bool {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: Some(namespace.to_owned()),
                verb: Some("create".to_owned()),
                resource: Some("pods".to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let api: Api<SelfSubjectAccessReview> = Api::all(context.client.clone());
    let params = PostParams::default();
    match bounded("asking for the controller's own rights", api.create(&params, &review)).await {
        Ok(review) => review.status.is_none_or(|status| status.allowed),
        Err(error) => {
            tracing::warn!(%error, "whether the controller may create pods cannot be told");
            true
        }
    }
}

/// What an administrator does about it.
fn not_allowed(namespace: &str, own_namespace: &str) -> String {
    format!(
        "the controller may not create pods in namespace {namespace}: its administrator binds ClusterRole {POD_TEMPLATES_ROLE} there \
         (kubectl -n {namespace} create rolebinding {POD_TEMPLATES_ROLE} --clusterrole={POD_TEMPLATES_ROLE} \
         --serviceaccount={own_namespace}:{CONTROLLER_ACCOUNT}, or chart value controller.podTemplates.namespaces), \
         or you create the pod yourself and name it in spec.target.podName"
    )
}

/// The pod as this version reads it; None for what is no pod.
pub fn typed(object: DynamicObject) -> Option<Pod> {
    object.try_parse().ok()
}

/// The session's pod as the API server has it now.
pub async fn find(session: &ProfilingSession, context: &Context) -> Result<Option<Arc<Pod>>, CallError> {
    let namespace = session.namespace().unwrap_or_default();
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &namespace);
    // A list of one: reading a pod by its name would be a right of its own.
    let named = ListParams::default().fields(&format!("metadata.name={}", name(session)));
    let found = bounded("reading the session's pod", api.list(&named)).await?;
    Ok(found.items.into_iter().next().map(Arc::new))
}

/// The pod that the session copies, as the API server has it now: with every field, those that this
/// version does not know too.
pub async fn original(
    session: &ProfilingSession,
    name: &str,
    context: &Context,
) -> Result<Option<DynamicObject>, CallError> {
    let namespace = session.namespace().unwrap_or_default();
    let api: Api<DynamicObject> =
        Api::namespaced_with(context.client.clone(), &namespace, &ApiResource::erase::<Pod>(&()));
    let named = ListParams::default().fields(&format!("metadata.name={name}"));
    let found = bounded("reading the pod to copy", api.list(&named)).await?;
    Ok(found.items.into_iter().next())
}

/// The pods that sessions of a namespace made, as the API server has them now.
pub async fn list(namespace: &str, context: &Context) -> Result<Vec<Arc<Pod>>, CallError> {
    let api: Api<Pod> = Api::namespaced(context.client.clone(), namespace);
    let of_sessions = ListParams::default().labels(SESSION_LABEL);
    let listed = bounded("listing sessions' pods", api.list(&of_sessions)).await?;
    Ok(listed.items.into_iter().map(Arc::new).collect())
}

/// Deletes the pod; one that is gone is fine.
pub async fn remove(session: &ProfilingSession, name: &str, uid: &str, context: &Context) -> Result<(), CallError> {
    let namespace = session.namespace().unwrap_or_default();
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &namespace);
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        }),
        ..DeleteParams::background()
    };
    match bounded("deleting the session's pod", api.delete(name, &params)).await {
        Ok(_) => {
            tracing::info!(
                namespace,
                session = session.name_any(),
                pod = name,
                "deleted the session's pod"
            );
            Ok(())
        }
        // Another pod of that name has another UID: a conflict, and nothing of ours.
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
        // The binding was taken back after the pod was made: garbage collection deletes it with its
        // session.
        Err(error) if error.refusal().is_some_and(|(code, _)| code == 403) => {
            tracing::warn!(namespace, pod = name, %error, "the session's pod stays for as long as its session");
            Ok(())
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flopwatch_api::preparation::{PREPARED_ANNOTATION, UNPREPARED_ANNOTATION};
    use flopwatch_api::profiler::NcuOptions;

    fn session(spec: &Value) -> ProfilingSession {
        let mut full = json!({"target": {"podTemplate": {
            "metadata": {"labels": {"app": "a", PREPARE_LABEL: "other"}},
            "spec": {"containers": [{"name": "main", "image": "a", "fieldOfTomorrow": 1}]}
        }}});
        json_patch::merge(&mut full, spec);
        serde_json::from_value(json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession",
            "metadata": {"name": "s".repeat(52), "namespace": "team", "uid": "session-uid"}, "spec": full
        }))
        .unwrap()
    }

    fn made(spec: &Value) -> (ProfilingSession, Value) {
        let session = session(spec);
        let template = session.spec.target.pod_template.clone().unwrap();
        let pod = serde_json::to_value(manifest(&session, &template, &[])).unwrap();
        (session, pod)
    }

    #[test]
    fn the_pod_is_the_template_prepared_run_once_and_owned() {
        let (session, pod) = made(&json!({"start": "ContainerStart", "require": ["os_runtime"]}));
        assert_eq!(pod["metadata"]["name"].as_str().unwrap().len(), 63);
        assert_eq!(pod["metadata"]["labels"][PREPARE_LABEL], "nsys");
        assert_eq!(pod["metadata"]["labels"]["app"], "a");
        assert_eq!(pod["metadata"]["labels"][SESSION_LABEL], session.name_any());
        let annotations = &pod["metadata"]["annotations"];
        assert_eq!(annotations[NSYS_TRACE_ANNOTATION], "cuda,nvtx,osrt");
        assert_eq!(annotations[START_ANNOTATION], "ContainerStart");
        assert_eq!(annotations[HOLD_ANNOTATION], "true");
        assert_eq!(pod["spec"]["restartPolicy"], "Never");
        assert_eq!(
            pod["spec"]["containers"][0]["fieldOfTomorrow"], 1,
            "fields that we do not know stay"
        );
        let typed: Pod = serde_json::from_value(pod).unwrap();
        assert!(is_own(&session, &typed));
        assert_eq!(name(&session), typed.name_any(), "every try makes the same pod");
    }

    #[test]
    fn a_pod_for_nsight_compute_carries_the_sessions_options() {
        let options = json!({"set": "Full", "kernelNames": ["gemm"], "launchCount": 3});
        let (_, pod) = made(&json!({"profiler": {"type": "Ncu", "ncu": options}}));
        assert_eq!(pod["metadata"]["labels"][PREPARE_LABEL], "ncu");
        let annotations = &pod["metadata"]["annotations"];
        assert_eq!(annotations[HOLD_ANNOTATION], "true");
        assert_eq!(annotations.get(NSYS_TRACE_ANNOTATION), None);
        let written: Value = serde_json::from_str(annotations[NCU_OPTIONS_ANNOTATION].as_str().unwrap()).unwrap();
        assert_eq!((&written["set"], &written["launchCount"]), (&json!("Full"), &json!(3)));
        let asks = session(&json!({"profiler": {"type": "Ncu", "ncu": {"topKernelsOf": "first"}}}));
        let template = asks.spec.target.pod_template.clone().unwrap();
        let found = manifest(&asks, &template, &["softmax".to_owned()]);
        let written: Value = serde_json::from_str(&found.annotations()[NCU_OPTIONS_ANNOTATION]).unwrap();
        assert_eq!(written["kernelNames"], json!(["softmax"]));
        let (_, default) = made(&json!({"profiler": {"type": "Ncu"}}));
        let written = default["metadata"]["annotations"][NCU_OPTIONS_ANNOTATION]
            .as_str()
            .unwrap();
        assert_eq!(
            serde_json::from_str::<NcuOptions>(written).unwrap(),
            NcuOptions::default()
        );
    }

    #[test]
    fn the_pod_says_for_whom_it_was_made_and_its_template_cannot_say_otherwise() {
        let lie =
            json!({"metadata": {"annotations": {REQUESTED_BY_ANNOTATION: "root", REPLICA_OF_ANNOTATION: "other/uid"}}});
        let (mut session, pod) = made(&json!({"target": {"podTemplate": lie}}));
        assert_eq!(pod["metadata"]["annotations"].get(REQUESTED_BY_ANNOTATION), None);
        assert_eq!(pod["metadata"]["annotations"].get(REPLICA_OF_ANNOTATION), None);
        session
            .annotations_mut()
            .insert(REQUESTED_BY_ANNOTATION.to_owned(), "ada".to_owned());
        let template = session.spec.target.pod_template.clone().unwrap();
        let pod = manifest(&session, &template, &[]);
        assert_eq!(pod.annotations()[REQUESTED_BY_ANNOTATION], "ada");
    }

    #[test]
    fn what_is_fixed_at_the_programs_start_follows_the_options_of_the_session() {
        let range = json!({"trigger": "Nvtx", "name": "step@torch"});
        let nsys = json!({"cudaGraphTrace": "Node", "captureRange": range, "gpuMetrics": {}});
        let (_, pod) = made(&json!({"profiler": {"type": "Nsys", "nsys": nsys}}));
        let annotations = &pod["metadata"]["annotations"];
        assert_eq!(annotations[NSYS_CUDA_GRAPH_ANNOTATION], "node");
        assert_eq!(annotations[NSYS_NVTX_CAPTURE_ANNOTATION], "step@torch");
        assert_eq!(annotations[NSYS_GPU_METRICS_ANNOTATION], "true");
        let (_, pod) = made(&json!({}));
        let fixed = [
            NSYS_CUDA_GRAPH_ANNOTATION,
            NSYS_NVTX_CAPTURE_ANNOTATION,
            NSYS_GPU_METRICS_ANNOTATION,
        ];
        for annotation in fixed {
            assert!(pod["metadata"]["annotations"].get(annotation).is_none(), "{annotation}");
        }
    }

    #[test]
    fn what_the_template_says_of_its_preparation_goes_first() {
        let annotation = json!({NSYS_TRACE_ANNOTATION: "nvtx", PREPARE_CONTAINERS_ANNOTATION: "side"});
        let template = json!({"metadata": {"annotations": annotation}});
        let (_, pod) = made(&json!({"target": {"podTemplate": template, "containerNames": ["main"]}}));
        assert_eq!(pod["metadata"]["annotations"][NSYS_TRACE_ANNOTATION], "nvtx");
        assert_eq!(pod["metadata"]["annotations"][PREPARE_CONTAINERS_ANNOTATION], "side");
    }

    #[test]
    fn a_pod_for_metrics_alone_is_not_prepared() {
        let (_, pod) = made(&json!({"profiler": {"type": "Metrics"}, "target": {"podTemplate": {"metadata": null}}}));
        assert_eq!(pod["metadata"]["labels"], json!({SESSION_LABEL: "s".repeat(52)}));
    }

    #[test]
    fn a_pod_for_a_profiler_that_takes_variables_alone_starts_without_the_launcher() {
        for (type_, word) in [("Kineto", "kineto"), ("Jax", "jax")] {
            let (_, pod) = made(&json!({"profiler": {"type": type_}}));
            assert_eq!(pod["metadata"]["labels"][PREPARE_LABEL], word);
            assert!(pod["metadata"]["annotations"].get(HOLD_ANNOTATION).is_none());
        }
    }

    #[test]
    fn only_a_session_that_cannot_do_without_refuses_an_unprepared_pod() {
        let pod = |annotations: Value| -> Pod {
            serde_json::from_value(json!({"metadata": {"name": "p", "annotations": annotations}})).unwrap()
        };
        let (nsys, _) = made(&json!({"profiler": {"type": "Nsys"}}));
        let (start, _) = made(&json!({"start": "ContainerStart"}));
        let (auto, _) = made(&json!({}));
        let away = pod(json!({}));
        let refused = pod(json!({UNPREPARED_ANNOTATION: "main: no command"}));
        let prepared = pod(json!({PREPARED_ANNOTATION: "main"}));
        for session in [&nsys, &start] {
            assert!(matches!(unprepared(session, &away), Some((message, true)) if message.contains("admission")));
            assert!(matches!(unprepared(session, &refused), Some((message, false)) if message.contains("no command")));
            assert_eq!(unprepared(session, &prepared), None);
        }
        assert_eq!(unprepared(&auto, &away), None);
    }
}
