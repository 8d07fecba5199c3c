//! Prepared pods that do not start because of the preparation: their tools cannot be pulled or
//! mounted, or an init container of ours fails. Nothing within the pod can fail open there, so
//! whoever waits for it is told, with the remedy.

pub mod announce;
pub mod unprepared;

use std::fmt;

use flopwatch_api::pod;
use flopwatch_api::preparation::{
    LAUNCHER_INIT_CONTAINER, PREPARE_LABEL, PROFILER_VOLUME, TOOLS_INIT_CONTAINER, TOOLS_VOLUME,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Longest name of an image in a message, in characters.
const MAX_IMAGE: usize = 256;

/// A component that admission adds to a pod: by an init container, or as a volume of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InjectedComponent {
    /// The launcher, from the agent's image.
    Launcher,
    /// The tools, from the tools image.
    Tools,
}

impl InjectedComponent {
    /// Every component, in the order in which the init containers run.
    pub const ALL: [Self; 2] = [Self::Launcher, Self::Tools];

    /// Name of the component's init container.
    pub const fn init_container(self) -> &'static str {
        match self {
            Self::Launcher => LAUNCHER_INIT_CONTAINER,
            Self::Tools => TOOLS_INIT_CONTAINER,
        }
    }

    /// Name of the component's volume, where its image is mounted.
    const fn volume(self) -> &'static str {
        match self {
            Self::Launcher => TOOLS_VOLUME,
            Self::Tools => PROFILER_VOLUME,
        }
    }

    /// The component whose init container has the name `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|component| component.init_container() == name)
    }

    /// Whether a volume of the name `name` may be the image of a component.
    pub fn is_volume(name: &str) -> bool {
        Self::ALL.into_iter().any(|component| component.volume() == name)
    }

    /// The chart's value that names the component's image.
    const fn setting(self) -> &'static str {
        match self {
            Self::Launcher => "images.agent",
            Self::Tools => "images.tools",
        }
    }
}

/// Why a component keeps a pod from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The node cannot pull the image.
    Pull,
    /// The node cannot use the image; the text completes a sentence that begins with the image.
    Image(&'static str),
    /// The container cannot be started, or the image not be mounted; the kubelet's reason.
    Start(&'static str),
    /// The container ended with this exit code.
    Exit(i32),
}

impl Cause {
    /// What the kubelet's reason for waiting means, if it is one that holds the pod up. A pull that
    /// fails alternates between two reasons, which read as one here: what is said of it stays as it
    /// is.
    fn of_waiting(reason: &str) -> Option<Self> {
        Some(match reason {
            "ErrImagePull" | "ImagePullBackOff" | "RegistryUnavailable" => Self::Pull,
            "InvalidImageName" => Self::Image("is no valid name of an image"),
            "ErrImageNeverPull" => Self::Image("is not on the node and imagePullPolicy is Never"),
            "ImageInspectError" => Self::Image("cannot be inspected"),
            "SignatureValidationFailed" => Self::Image("has no valid signature"),
            "CreateContainerConfigError" => Self::Start("CreateContainerConfigError"),
            "CreateContainerError" => Self::Start("CreateContainerError"),
            "RunContainerError" => Self::Start("RunContainerError"),
            "CrashLoopBackOff" => Self::Start("CrashLoopBackOff"),
            _ => return None,
        })
    }
}

/// The reasons of Events and metrics about pods that the preparation keeps from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PreparationFailureReason {
    /// The image with the launcher does not come onto the node.
    LauncherImageUnavailable,
    /// The tools image does not come onto the node.
    ToolsImageUnavailable,
    /// An init container of ours cannot be started, or fails; or an image of ours cannot be
    /// mounted.
    PreparationFailed,
}

impl PreparationFailureReason {
    /// Every reason, in the order of declaration.
    pub const ALL: [Self; 3] = [
        Self::LauncherImageUnavailable,
        Self::ToolsImageUnavailable,
        Self::PreparationFailed,
    ];

    /// Reason of the Event.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LauncherImageUnavailable => "LauncherImageUnavailable",
            Self::ToolsImageUnavailable => "ToolsImageUnavailable",
            Self::PreparationFailed => "PreparationFailed",
        }
    }

    /// Value of the metrics label `reason`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::LauncherImageUnavailable => "launcher_image_unavailable",
            Self::ToolsImageUnavailable => "tools_image_unavailable",
            Self::PreparationFailed => "preparation_failed",
        }
    }
}

/// Why a prepared pod does not start. Its `Display` is a statement of the failure, without the
/// remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparationFailure {
    /// The component that keeps the pod from starting.
    pub component: InjectedComponent,
    /// Whether the component's image is mounted, rather than copied by an init container.
    pub mounted: bool,
    /// Name of the component's image, at most 256 characters.
    pub image: String,
    /// Why the component keeps the pod from starting.
    pub cause: Cause,
    /// When the pod failed for good; None while the kubelet goes on trying.
    pub ended: Option<Timestamp>,
}

impl PreparationFailure {
    /// The reason for Events and metrics.
    pub const fn reason(&self) -> PreparationFailureReason {
        match (self.cause, self.component) {
            (Cause::Pull | Cause::Image(_), InjectedComponent::Launcher) => {
                PreparationFailureReason::LauncherImageUnavailable
            }
            (Cause::Pull | Cause::Image(_), InjectedComponent::Tools) => {
                PreparationFailureReason::ToolsImageUnavailable
            }
            (Cause::Start(_) | Cause::Exit(_), _) => PreparationFailureReason::PreparationFailed,
        }
    }

    /// The failure and the remedy, as the text of an Event.
    pub fn note(&self) -> String {
        let (name, setting) = (self.component.init_container(), self.component.setting());
        match self.cause {
            Cause::Pull => format!(
                "{self}: give the pod's service account pull secrets for it, or correct {setting} of Flopwatch or remove the label {PREPARE_LABEL} and create the pod anew"
            ),
            Cause::Image(_) => format!(
                "{self}: correct {setting} of Flopwatch or remove the label {PREPARE_LABEL}, and create the pod anew"
            ),
            Cause::Start(_) | Cause::Exit(_) if self.mounted => format!(
                "{self}: see the pod's events; to have tools copied set admission.delivery of Flopwatch to copy, to start without preparation remove the label {PREPARE_LABEL}, and create the pod anew"
            ),
            Cause::Start(_) | Cause::Exit(_) => format!(
                "{self}: see the pod's events and the log of {name}; to start without preparation remove the label {PREPARE_LABEL} and create the pod anew"
            ),
        }
    }
}

impl fmt::Display for PreparationFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let image = &self.image;
        let location = if self.mounted {
            format!("volume {}", self.component.volume())
        } else {
            format!("init container {}", self.component.init_container())
        };
        match self.cause {
            Cause::Pull => write!(f, "image {image} of {location} cannot be pulled"),
            Cause::Image(what) => write!(f, "image {image} of {location} {what}"),
            Cause::Start(reason) if self.mounted => {
                write!(f, "{location} (image {image}) cannot be mounted ({reason})")
            }
            Cause::Start(reason) => write!(f, "{location} (image {image}) cannot be started ({reason})"),
            Cause::Exit(code) => write!(f, "{location} (image {image}) failed with exit code {code}"),
        }
    }
}

/// Why a prepared pod does not start, if the preparation is what holds it up.
pub fn preparation_failure(pod: &Pod) -> Option<PreparationFailure> {
    pod::prepared_containers(pod).next()?;
    let status = pod.status.as_ref()?;
    let failed = status.phase.as_deref() == Some("Failed");
    // A pod that was ended as a whole (deleted, evicted, out of time) takes its init containers
    // along.
    if pod.metadata.deletion_timestamp.is_some() || (failed && status.reason.is_some()) {
        return None;
    }
    let statuses = status.init_container_statuses.as_deref().unwrap_or_default();
    let copied = InjectedComponent::ALL.into_iter().find_map(|component| {
        let status = statuses
            .iter()
            .find(|status| status.name == component.init_container())?;
        let (cause, finished) = held_up(status)?;
        Some(PreparationFailure {
            component,
            mounted: false,
            image: image(pod, component),
            cause,
            ended: failed.then_some(finished.unwrap_or_default()),
        })
    });
    copied.or_else(|| unmounted(pod))
}

/// An image of ours that a container cannot have mounted: the kubelet names it in what it says of
/// the container.
fn unmounted(pod: &Pod) -> Option<PreparationFailure> {
    let statuses = pod.status.as_ref()?.container_statuses.as_deref()?;
    let volumes = pod.spec.as_ref()?.volumes.as_deref()?;
    let images: Vec<(InjectedComponent, &str)> = InjectedComponent::ALL
        .into_iter()
        .filter_map(|component| {
            let volume = volumes.iter().find(|volume| volume.name == component.volume())?;
            Some((component, volume.image.as_ref()?.reference.as_deref()?))
        })
        .collect();
    statuses.iter().find_map(|status| {
        let waiting = status.state.as_ref()?.waiting.as_ref()?;
        let cause = Cause::of_waiting(waiting.reason.as_deref()?)?;
        let message = waiting.message.as_deref()?;
        let mut named = images.iter().filter(|(_, image)| message.contains(image));
        let (component, image) = match cause {
            Cause::Start(_) if message.contains(MOUNT_FAILED) => images.last()?,
            Cause::Start(_) | Cause::Exit(_) => return None,
            Cause::Pull | Cause::Image(_) => named.next()?,
        };
        Some(PreparationFailure {
            component: *component,
            mounted: true,
            image: image.chars().take(MAX_IMAGE).collect(),
            cause,
            ended: None,
        })
    })
}

/// What the kubelet says of a container whose image volume the runtime does not mount; it does not
/// say which.
const MOUNT_FAILED: &str = "failed to mount image volume";

/// What holds an init container up, and when it ended by that.
fn held_up(status: &ContainerStatus) -> Option<(Cause, Option<Timestamp>)> {
    let state = status.state.as_ref()?;
    if let Some(ended) = state.terminated.as_ref() {
        let finished = ended.finished_at.as_ref().map(|Time(finished)| *finished);
        return (ended.exit_code != 0).then_some((Cause::Exit(ended.exit_code), finished));
    }
    let cause = Cause::of_waiting(state.waiting.as_ref()?.reason.as_deref()?)?;
    let exited = status.last_state.as_ref().and_then(|last| last.terminated.as_ref());
    match (cause, exited) {
        // What it ended with says more than that it is tried again.
        (Cause::Start("CrashLoopBackOff"), Some(ended)) => Some((Cause::Exit(ended.exit_code), None)),
        (cause, _) => Some((cause, None)),
    }
}

fn image(pod: &Pod, component: InjectedComponent) -> String {
    let containers = pod.spec.as_ref().and_then(|spec| spec.init_containers.as_deref());
    let image = containers
        .unwrap_or_default()
        .iter()
        .find(|candidate| candidate.name == component.init_container())
        .and_then(|container| container.image.as_deref());
    image.unwrap_or("of unknown name").chars().take(MAX_IMAGE).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;
    use flopwatch_api::preparation::PREPARED_ANNOTATION;

    /// A prepared pod whose init containers are in these states.
    pub(crate) fn prepared(name: &str, launcher: &Value, tools: &Value) -> Value {
        let status = |name: &str, states: &Value| {
            let mut status = json!({
                "name": name, "image": "resolved", "imageID": "", "ready": false, "restartCount": 0
            });
            for (key, state) in states.as_object().unwrap() {
                status[key] = state.clone();
            }
            status
        };
        json!({
            "metadata": {
                "name": name, "namespace": "team", "uid": format!("uid-{name}"), "labels": {"app": "train"},
                "annotations": {PREPARED_ANNOTATION: "c"}
            },
            "spec": {
                "nodeName": "n1",
                "initContainers": [
                    {"name": LAUNCHER_INIT_CONTAINER, "image": "registry/agent:1"},
                    {"name": TOOLS_INIT_CONTAINER, "image": "registry/nsys:1"},
                    {"name": "own", "image": "registry/own:1"}
                ],
                "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
            },
            "status": {
                "phase": "Pending",
                "initContainerStatuses": [
                    status("own", &waiting("ImagePullBackOff")),
                    status(LAUNCHER_INIT_CONTAINER, launcher),
                    status(TOOLS_INIT_CONTAINER, tools)
                ]
            }
        })
    }

    pub(crate) fn waiting(reason: &str) -> Value {
        json!({"state": {"waiting": {"reason": reason, "message": "as the kubelet says"}}})
    }

    pub(crate) fn exited(code: i32) -> Value {
        json!({"state": {"terminated": {"exitCode": code, "finishedAt": "2026-01-01T00:00:00Z"}}})
    }

    fn crashing(code: i32) -> Value {
        json!({
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": code}}
        })
    }

    pub(crate) fn parsed(pod: &Value) -> Pod {
        serde_json::from_value(pod.clone()).unwrap()
    }

    #[test]
    fn what_holds_a_prepared_pod_up_is_named() {
        let (done, next) = (exited(0), waiting("PodInitializing"));
        let image = "image registry/nsys:1 of init container flopwatch-tools";
        let unavailable = |why: &str| format!("ToolsImageUnavailable: {image} {why}");
        let failing = "init container flopwatch-tools (image registry/nsys:1)";
        let failed = |why: &str| format!("PreparationFailed: {failing} {why}");
        let launcher = "image registry/agent:1 of init container flopwatch-launcher";
        let invalid = "is no valid name of an image";
        let never = "is not on the node and imagePullPolicy is Never";
        let unconfigured = "cannot be started (CreateContainerConfigError)";
        let cases = [
            (&done, waiting("ErrImagePull"), unavailable("cannot be pulled")),
            (&done, waiting("ImagePullBackOff"), unavailable("cannot be pulled")),
            (&done, waiting("InvalidImageName"), unavailable(invalid)),
            (&done, waiting("ErrImageNeverPull"), unavailable(never)),
            (&done, waiting("CreateContainerConfigError"), failed(unconfigured)),
            (
                &done,
                waiting("CrashLoopBackOff"),
                failed("cannot be started (CrashLoopBackOff)"),
            ),
            (&done, crashing(3), failed("failed with exit code 3")),
            (&done, exited(137), failed("failed with exit code 137")),
            (
                &waiting("ImagePullBackOff"),
                next.clone(),
                format!("LauncherImageUnavailable: {launcher} cannot be pulled"),
            ),
            (&done, next.clone(), String::new()),
            (&next, next.clone(), String::new()),
            (&done, exited(0), String::new()),
            (
                &done,
                json!({"state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1}}}),
                String::new(),
            ),
            (&done, json!({}), String::new()),
        ];
        for (launcher, tools, expected) in cases {
            let message = preparation_failure(&parsed(&prepared("p", launcher, &tools)))
                .map(|failure| format!("{}: {failure}", failure.reason().as_str()));
            assert_eq!(message.unwrap_or_default(), expected, "{launcher} {tools}");
        }
    }

    /// A prepared pod with images as volumes, whose container waits so.
    pub(crate) fn mounting(reason: &str, message: &str) -> Value {
        let image = |name: &str, reference: &str| json!({"name": name, "image": {"reference": reference}});
        json!({
            "metadata": {"name": "p", "namespace": "team", "uid": "uid-p", "annotations": {PREPARED_ANNOTATION: "c"}},
            "spec": {
                "containers": [{"name": "c", "image": "registry/train:1"}],
                "volumes": [image(TOOLS_VOLUME, "registry/agent:1"), image(PROFILER_VOLUME, "registry/nsys:1")]
            },
            "status": {"phase": "Pending", "containerStatuses": [{
                "name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"waiting": {"reason": reason, "message": message}}
            }]}
        })
    }

    #[test]
    fn an_image_that_cannot_be_mounted_is_named_and_the_containers_own_is_none_of_our_trouble() {
        let failed = "failed to mount image volume: ImageVolumeMountFailed: failed to ensure image subpath";
        for (reason, message, expected) in [
            (
                "ErrImagePull",
                "failed to pull and unpack image \"registry/nsys:1\": connection refused",
                "ToolsImageUnavailable: image registry/nsys:1 of volume flopwatch-profiler cannot be pulled",
            ),
            (
                "ImagePullBackOff",
                "Back-off pulling image \"registry/agent:1\"",
                "LauncherImageUnavailable: image registry/agent:1 of volume flopwatch-tools cannot be pulled",
            ),
            (
                "ErrImageNeverPull",
                "Container image \"registry/nsys:1\" is not present with pull policy of Never",
                "ToolsImageUnavailable: image registry/nsys:1 of volume flopwatch-profiler is not on the node and imagePullPolicy is Never",
            ),
            (
                "CreateContainerError",
                failed,
                "PreparationFailed: volume flopwatch-profiler (image registry/nsys:1) cannot be mounted (CreateContainerError)",
            ),
            (
                "ErrImagePull",
                "failed to pull and unpack image \"registry/train:1\"",
                "",
            ),
            ("CreateContainerError", "no such device", ""),
            ("ContainerCreating", "registry/nsys:1", ""),
        ] {
            let found = preparation_failure(&parsed(&mounting(reason, message)));
            let found = found.map(|failure| format!("{}: {failure}", failure.reason().as_str()));
            assert_eq!(found.unwrap_or_default(), expected, "{message}");
        }
        let failure = preparation_failure(&parsed(&mounting("CreateContainerError", failed)));
        let note = failure.unwrap().note();
        assert!(note.contains("admission.delivery of Flopwatch to copy"), "{note}");
    }

    #[test]
    fn a_pod_that_was_not_prepared_or_was_ended_as_a_whole_is_none_of_our_trouble() {
        let pod = prepared("p", &exited(0), &exited(1));
        assert!(preparation_failure(&parsed(&pod)).is_some());
        let changes = [
            json!({"metadata": {"annotations": {PREPARED_ANNOTATION: null}}}),
            json!({"metadata": {"annotations": {PREPARED_ANNOTATION: " ,"}}}),
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            json!({"status": {"phase": "Failed", "reason": "Evicted"}}),
            json!({"status": {"initContainerStatuses": null}}),
            json!({"status": null}),
        ];
        for change in changes {
            let mut pod = pod.clone();
            json_patch::merge(&mut pod, &change);
            assert_eq!(preparation_failure(&parsed(&pod)), None, "{change}");
        }
    }

    #[test]
    fn a_pod_that_failed_for_good_says_when() {
        let mut pod = prepared("p", &exited(0), &exited(1));
        assert_eq!(preparation_failure(&parsed(&pod)).unwrap().ended, None);
        pod["status"]["phase"] = json!("Failed");
        let ended = preparation_failure(&parsed(&pod)).unwrap().ended.unwrap();
        assert_eq!(ended.to_string(), "2026-01-01T00:00:00Z");
    }

    #[test]
    fn the_note_names_the_remedy_and_stays_short_enough_for_an_event() {
        let note = |pod: &Value| preparation_failure(&parsed(pod)).unwrap().note();
        assert_eq!(
            note(&prepared("p", &exited(0), &waiting("ErrImagePull"))),
            "image registry/nsys:1 of init container flopwatch-tools cannot be pulled: give the pod's service account pull secrets for it, or correct images.tools of Flopwatch or remove the label flopwatch.dev/prepare and create the pod anew"
        );
        assert!(
            note(&prepared("p", &waiting("ErrImagePull"), &json!({}))).contains("correct images.agent of Flopwatch")
        );
        assert!(note(&prepared("p", &exited(2), &json!({}))).contains("the log of flopwatch-launcher"));
        let mut long = prepared("p", &exited(0), &waiting("InvalidImageName"));
        long["spec"]["initContainers"][1]["image"] = json!("é".repeat(5000));
        let note = note(&long);
        assert!(note.len() < 1024 && note.ends_with("create the pod anew"), "{note}");
    }
}
