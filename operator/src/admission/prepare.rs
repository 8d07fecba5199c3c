//! Prepares a pod: a function of the pod, the options and what was looked up, to a JSON patch.
//!
//! The pod stays what it was: its commands run as they did, in the same order of arguments; its
//! quality of service, its share of quotas and its Pod Security level do not change. Preparing a
//! prepared pod changes nothing.

mod candidates;
mod capture_bytes;
mod cuda;
mod environment;
mod injected;
mod jax;
mod library;
mod memory_volume;
mod ncu;
mod recorder;
pub mod restore;
mod tools;
mod volumes;

use std::collections::BTreeMap;

use flopwatch_api::pod;
use flopwatch_api::preparation::{
    CAPTURE_BYTES_ANNOTATION, PREPARE_LABEL, PREPARED_ANNOTATION, PREPARED_FOR_ANNOTATION, PREPARED_VERSION_ANNOTATION,
    PreparationWord, PreparedFor, RECORDER_KERNELS_PERCENT_ANNOTATION, UNPREPARED_ANNOTATION, UnknownWord,
};
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation};
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::admission::entrypoint::{EntrypointMode, ImageCommand, LookupError};
use crate::admission::refusal::Refusal;

use candidates::Candidate;
pub use ncu::NcuTools;
use tools::Tools;
use volumes::Volumes;

/// How the launcher and the tools come into a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Init containers copy them into a volume of the pod.
    Copy,
    /// The folders of their images are mounted: nothing is copied, and nothing has to end before
    /// the pod starts.
    Mount,
}

/// What is put into prepared pods.
#[derive(Clone, Debug)]
pub struct PrepareOptions {
    /// Image with the launcher at `/usr/local/bin/flopwatch-launcher`.
    pub launcher_image: String,
    /// Image with Nsight Systems.
    pub tools_image: String,
    /// Folder in it, named `target-linux-x64`.
    pub tools_path: String,
    /// Pull policy of both; None leaves it to the API server.
    pub image_pull_policy: Option<String>,
    /// Version to write down.
    pub version: String,
    /// Nsight Compute; None where the cluster has no image of it.
    pub ncu: Option<NcuTools>,
    /// Bytes that the tools take in the pod's ephemeral storage.
    pub tools_bytes: u64,
    /// `sizeLimit` of the volume in which launcher, profiler and agent meet; None: no limit.
    /// Captures are kept below it: a pod that exceeds it is evicted.
    pub run_size_limit: Option<String>,
    /// Memory limit in bytes below which the tools are not copied.
    pub min_memory_bytes: u64,
    /// Whether entrypoints are looked up.
    pub entrypoints: EntrypointMode,
    /// How launcher and tools come into pods.
    pub delivery: Delivery,
}

impl PrepareOptions {
    /// The options with another delivery.
    #[must_use]
    pub fn delivered(&self, delivery: Delivery) -> Self {
        let tools_bytes = match delivery {
            Delivery::Copy => self.tools_bytes,
            // An image is the node's, and in no pod's storage.
            Delivery::Mount => 0,
        };
        Self {
            tools_bytes,
            delivery,
            ..self.clone()
        }
    }
}

/// Entrypoints that were looked up, by container.
pub type Entrypoints = BTreeMap<String, Result<ImageCommand, LookupError>>;

/// The result of preparing a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preparation {
    /// Changes to the pod; empty when it stays as it is.
    pub operations: Vec<PatchOperation>,
    /// Containers whose command the launcher starts.
    pub prepared: Vec<String>,
    /// What each container was prepared for; those that were prepared for nothing are left out.
    pub prepared_for: Vec<(String, PreparedFor)>,
    /// Containers that were to be prepared and were not, or not for everything.
    pub unprepared: Vec<(String, Refusal)>,
}

/// Containers whose images' entrypoints are needed: name and image.
pub fn needed_entrypoints(pod: &Pod, options: &PrepareOptions) -> Vec<(String, String)> {
    let Some(Ok(words)) = asked_for(pod).filter(|_| options.entrypoints != EntrypointMode::Off && !pod::has_tools(pod))
    else {
        return Vec::new();
    };
    match tools::choose(pod, &words, options) {
        Ok(Some(tools)) if candidates::refuse_pod(pod, &tools.options).is_none() => {}
        _ => return Vec::new(),
    }
    candidates::choose(pod)
        .into_iter()
        .filter_map(|candidate| candidate.container.ok())
        .filter(|(_, container)| container.command.as_ref().is_none_or(Vec::is_empty))
        .filter(|(_, container)| options.entrypoints.admits(container))
        .filter_map(|(_, container)| Some((container.name.clone(), container.image.clone()?)))
        .collect()
}

/// Prepares a pod.
pub fn prepare(pod: &Pod, options: &PrepareOptions, entrypoints: &Entrypoints) -> Preparation {
    let words = match asked_for(pod) {
        None => return Preparation::default(),
        Some(Ok(words)) if tools::are_wanted(&words) && pod::has_tools(pod) => return Preparation::default(),
        Some(words) => words,
    };
    let mut chosen: Vec<(usize, &Container, Command)> = Vec::new();
    let mut unprepared: Vec<(String, Refusal)> = Vec::new();
    let mut present: Vec<(usize, &Container)> = Vec::new();
    let (tools, words) = match words {
        Err(unknown) => (Err(Refusal::UnknownProfiler(unknown)), PreparedFor::default()),
        Ok(words) => {
            let tools = tools::choose(pod, &words, options);
            (
                tools.and_then(|tools| fits(pod, tools)),
                cuda::with_recorder(pod, words),
            )
        }
    };
    for Candidate { name, container } in candidates::choose(pod) {
        present.extend(container.as_ref().ok());
        let decided = match (&tools, container) {
            (Err(refusal), _) => Err(refusal.clone()),
            (Ok(_), Err(refusal)) => Err(refusal),
            (Ok(None), Ok(_)) => continue,
            (Ok(Some(tools)), Ok((index, container))) => candidates::refuse_paths(container)
                .map_or_else(|| command(container, &tools.prefix, options, entrypoints), Err)
                .map(|command| (index, container, command)),
        };
        match decided {
            Ok(ready) => chosen.push(ready),
            Err(refusal) => unprepared.push((name, refusal)),
        }
    }
    if let Some(refusal) = candidates::refuse_memory(
        &chosen.iter().map(|(_, container, _)| *container).collect::<Vec<_>>(),
        options,
    ) {
        unprepared.extend(
            chosen
                .drain(..)
                .map(|(_, container, _)| (container.name.clone(), refusal.clone())),
        );
    }
    let mut operations = Vec::new();
    let tools = tools.ok().flatten();
    let options = tools.as_ref().map_or(options, |tools| &tools.options);
    if let Some(tools) = tools.as_ref().filter(|_| !chosen.is_empty()) {
        let with_cupti = present.len() > chosen.len() && cuda::needs_cupti(pod, &words, options);
        inject(pod, tools, &chosen, with_cupti, &mut operations);
    }
    let mut prepared_for = Vec::new();
    let everyone = present.clone();
    let mut volumes = Volumes::of(pod, options, &everyone, !chosen.is_empty());
    for (index, container) in present {
        let at = index.to_string();
        let has_tools = chosen.iter().any(|(chosen, ..)| *chosen == index);
        let mut environment = environment::of(container, &words);
        let refused = volumes.add(&words, (index, container, has_tools), &mut environment, &mut operations);
        unprepared.extend(refused.into_iter().map(|refusal| (container.name.clone(), refusal)));
        for (place, value) in environment.changed {
            // Adding a value that is there replaces it.
            let path = ["spec", "containers", &at, "env", &place.to_string(), "value"];
            operations.push(add(&path, Value::String(value)));
        }
        if !environment.added.is_empty() {
            let path = ["spec", "containers", &at, "env"];
            append(&mut operations, &path, container.env.is_some(), environment.added);
        }
        unprepared.extend(environment.kept.into_iter().map(|why| (container.name.clone(), why)));
        let word = tools.as_ref().filter(|_| has_tools).map(|tools| tools.word);
        let prepared: PreparedFor = word.into_iter().chain(environment.prepared_for.words()).collect();
        if !prepared.is_empty() {
            let (prepared, refusal) = with_options(pod, prepared, &words);
            unprepared.extend(refusal.map(|refusal| (container.name.clone(), refusal)));
            prepared_for.push((container.name.clone(), prepared));
        }
    }
    let mut preparation = Preparation {
        operations,
        prepared: chosen.iter().map(|(_, container, _)| container.name.clone()).collect(),
        prepared_for,
        unprepared,
    };
    annotate(pod, options, &mut preparation);
    preparation
}

/// What the pod's label asks for; None where it has none.
fn asked_for(pod: &Pod) -> Option<Result<PreparedFor, UnknownWord>> {
    pod.labels().get(PREPARE_LABEL).map(|value| value.parse())
}

/// What a container is prepared for, with the options that the pod's words ask for, and why one of
/// them is left out.
fn with_options(pod: &Pod, prepared: PreparedFor, words: &PreparedFor) -> (PreparedFor, Option<Refusal>) {
    let asked = prepared.clone().with_options_of(words);
    if asked.records_kernels() && pod::kernels_percent(pod).is_none() {
        let said = pod::annotation(pod, RECORDER_KERNELS_PERCENT_ANNOTATION);
        return (prepared, said.map(|said| Refusal::KernelsPercent(said.to_owned())));
    }
    (asked, None)
}

/// The tools, where the pod has a place for them.
fn fits(pod: &Pod, tools: Option<Tools>) -> Result<Option<Tools>, Refusal> {
    let refusal = tools
        .as_ref()
        .and_then(|tools| candidates::refuse_pod(pod, &tools.options));
    refusal.map_or(Ok(tools), Err)
}

/// What a container is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Command {
    command: Vec<String>,
    /// Arguments that came from the image; the container's own are left as they are.
    args: Option<Vec<String>>,
}

fn command(
    container: &Container,
    prefix: &[String],
    options: &PrepareOptions,
    entrypoints: &Entrypoints,
) -> Result<Command, Refusal> {
    let wrapped = |command: Vec<String>| prefix.iter().cloned().chain(command).collect::<Vec<String>>();
    if let Some(command) = container.command.clone().filter(|command| !command.is_empty()) {
        return Ok(Command {
            command: wrapped(command),
            args: None,
        });
    }
    let found = match entrypoints.get(&container.name) {
        Some(Ok(found)) => found,
        Some(Err(error)) => return Err(Refusal::Lookup(error.clone())),
        None if options.entrypoints == EntrypointMode::Off => return Err(Refusal::NoCommand),
        None if !options.entrypoints.admits(container) => return Err(Refusal::NotPinned),
        None => return Err(Refusal::Lookup(LookupError::NoImage)),
    };
    let own_args = container.args.as_ref().is_some_and(|args| !args.is_empty());
    let escape = |words: &[String]| words.iter().map(|word| word.replace('$', "$$")).collect::<Vec<_>>();
    // What kubelet would run: the container's arguments replace those of the image. Kubelet expands
    // $(VAR) in the container's words and not in the image's, so the image's are escaped.
    let args = (!own_args && !found.cmd.is_empty()).then(|| escape(&found.cmd));
    if found.entrypoint.is_empty() && args.is_none() && !own_args {
        return Err(Refusal::EmptyEntrypoint);
    }
    Ok(Command {
        command: wrapped(escape(&found.entrypoint)),
        args,
    })
}

/// Puts the tools into the pod and before the commands of the chosen containers; `with_cupti` says
/// whether another container needs a libcupti.
fn inject(
    pod: &Pod,
    tools: &Tools,
    chosen: &[(usize, &Container, Command)],
    with_cupti: bool,
    operations: &mut Vec<PatchOperation>,
) {
    let spec = pod.spec.as_ref();
    let Tools { options, parts, .. } = tools;
    let containers: Vec<(usize, &Container)> = chosen
        .iter()
        .map(|(index, container, _)| (*index, *container))
        .collect();
    append(
        operations,
        &["spec", "volumes"],
        spec.is_some_and(|spec| spec.volumes.is_some()),
        injected::volumes(&containers, options),
    );
    insert_first(
        pod,
        injected::init_containers(pod, &containers, options, parts.as_deref(), with_cupti),
        operations,
    );
    for (index, container, command) in chosen {
        let at = index.to_string();
        operations.push(add(&["spec", "containers", &at, "command"], json!(command.command)));
        if let Some(args) = &command.args {
            operations.push(add(&["spec", "containers", &at, "args"], json!(args)));
        }
        let mounts = injected::mounts(*index, container, options);
        append(
            operations,
            &["spec", "containers", &at, "volumeMounts"],
            container.volume_mounts.is_some(),
            mounts,
        );
    }
}

/// Puts init containers before the pod's own, of which one may run for ever (a sidecar).
fn insert_first(pod: &Pod, init: Vec<Value>, operations: &mut Vec<PatchOperation>) {
    if init.is_empty() {
        return;
    }
    if pod.spec.as_ref().is_some_and(|spec| spec.init_containers.is_some()) {
        for container in init.into_iter().rev() {
            operations.push(add(&["spec", "initContainers", "0"], container));
        }
    } else {
        operations.push(add(&["spec", "initContainers"], Value::Array(init)));
    }
}

fn annotate(pod: &Pod, options: &PrepareOptions, preparation: &mut Preparation) {
    let Preparation {
        operations,
        prepared,
        prepared_for,
        unprepared,
    } = preparation;
    let writing = prepared_for.iter().filter(|(_, words)| writes(words)).count();
    let tools = (!prepared.is_empty()).then_some(options);
    let capture_bytes = pod
        .spec
        .as_ref()
        .filter(|_| writing > 0)
        .and_then(|spec| capture_bytes::of_each(spec, writing, tools));
    let words: Vec<String> = prepared_for
        .iter()
        .map(|(name, words)| format!("{name}: {words}"))
        .collect();
    let lines: Vec<String> = unprepared.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    let wanted = [
        (PREPARED_ANNOTATION, (!prepared.is_empty()).then(|| prepared.join(","))),
        (PREPARED_FOR_ANNOTATION, (!words.is_empty()).then(|| words.join("\n"))),
        (
            PREPARED_VERSION_ANNOTATION,
            (!words.is_empty()).then(|| options.version.clone()),
        ),
        (CAPTURE_BYTES_ANNOTATION, capture_bytes.map(|bytes| bytes.to_string())),
        (UNPREPARED_ANNOTATION, (!lines.is_empty()).then(|| lines.join("\n"))),
    ];
    let mut missing = pod.metadata.annotations.is_none();
    for (key, value) in wanted {
        let now = pod.annotations().get(key);
        match value {
            Some(value) if now != Some(&value) => {
                if std::mem::take(&mut missing) {
                    operations.push(add(&["metadata", "annotations"], json!({})));
                }
                operations.push(add(&["metadata", "annotations", key], Value::String(value)));
            }
            None if now.is_some() => {
                let path = PointerBuf::from_tokens(["metadata", "annotations", key]);
                operations.push(PatchOperation::Remove(RemoveOperation { path }));
            }
            _ => {}
        }
    }
}

/// Whether captures of a container that is prepared for these words write into its pod.
fn writes(words: &PreparedFor) -> bool {
    words.words().any(PreparationWord::writes)
}

fn add(path: &[&str], value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation {
        path: PointerBuf::from_tokens(path.iter().copied()),
        value,
    })
}

/// Appends to a list that may not be there.
fn append(operations: &mut Vec<PatchOperation>, path: &[&str], exists: bool, values: Vec<Value>) {
    if exists {
        let end: Vec<&str> = path.iter().copied().chain(["-"]).collect();
        operations.extend(values.into_iter().map(|value| add(&end, value)));
    } else {
        operations.push(add(path, Value::Array(values)));
    }
}

#[cfg(test)]
pub(super) mod tests;
