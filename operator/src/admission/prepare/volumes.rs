//! Volumes that a container gets beside its tools: for dumps of JAX's compiler and for the flight
//! recorder.

use flopwatch_api::preparation::{PreparationWord, PreparedFor};
use json_patch::PatchOperation;
use k8s_openapi::api::core::v1::{Container, Pod};
use serde_json::Value;

use super::environment::Environment;
use super::recorder::{self, Recorder};
use super::{PrepareOptions, append, candidates, injected, insert_first, jax};
use crate::admission::refusal::Refusal;

/// What the pod has of them so far.
pub(super) struct Volumes<'a> {
    pod: &'a Pod,
    options: &'a PrepareOptions,
    /// All containers that are to be prepared.
    containers: &'a [(usize, &'a Container)],
    /// Whether it has a list of volumes.
    lists: bool,
    /// Whether it has the launcher's volume, and its init container where it needs one.
    has_launcher: bool,
}

impl<'a> Volumes<'a> {
    /// Of a pod whose tools are in it already, where it has some.
    pub(super) fn of(
        pod: &'a Pod,
        options: &'a PrepareOptions,
        containers: &'a [(usize, &'a Container)],
        has_tools: bool,
    ) -> Self {
        Self {
            pod,
            options,
            containers,
            lists: has_tools || pod.spec.as_ref().is_some_and(|spec| spec.volumes.is_some()),
            has_launcher: has_tools,
        }
    }

    /// Adds what the words ask for to a container, of which it is known whether it has tools; says
    /// what is not added.
    pub(super) fn add(
        &mut self,
        words: &PreparedFor,
        (index, container, has_tools): (usize, &Container, bool),
        environment: &mut Environment,
        operations: &mut Vec<PatchOperation>,
    ) -> Vec<Refusal> {
        let mut refused = Vec::new();
        let (mut volumes, mut mounts) = (Vec::new(), Vec::new());
        match jax::dumps(self.pod, words, index, container) {
            None => {}
            Some(Ok(dumps)) => {
                environment.dump_programs(container);
                if let jax::Dumps::Added(added) = dumps {
                    let [volume, mount] = *added;
                    volumes.push(volume);
                    mounts.push(mount);
                }
            }
            Some(Err(refusal)) => refused.push(refusal),
        }
        match self.recorder(words, index, container) {
            None => {}
            Some(Ok(recorder)) => {
                environment.is_prepared_for(PreparationWord::Recorder);
                if let Recorder::Added {
                    volume,
                    mount,
                    variables,
                } = recorder
                {
                    volumes.push(volume);
                    mounts.push(mount);
                    environment.added.extend(variables);
                    if !has_tools {
                        mounts.push(injected::tools_mount(self.options));
                    }
                    volumes.extend(self.launcher(operations));
                }
            }
            Some(Err(refusal)) => refused.push(refusal),
        }
        if !volumes.is_empty() {
            append(operations, &["spec", "volumes"], self.lists, volumes);
            self.lists = true;
        }
        if !mounts.is_empty() {
            let path = ["spec", "containers", &index.to_string(), "volumeMounts"];
            append(
                operations,
                &path,
                has_tools || container.volume_mounts.is_some(),
                mounts,
            );
        }
        refused
    }

    fn recorder(&self, words: &PreparedFor, index: usize, container: &Container) -> Option<Result<Recorder, Refusal>> {
        let recorder = recorder::of(self.pod, words, index, container)?;
        Some(match &recorder {
            Ok(Recorder::Added { .. }) if !self.has_launcher => {
                candidates::refuse_tools(self.pod).map_or(recorder, Err)
            }
            _ => recorder,
        })
    }

    /// Puts the launcher into a pod that does not have it, and returns its volume.
    fn launcher(&mut self, operations: &mut Vec<PatchOperation>) -> Option<Value> {
        if std::mem::replace(&mut self.has_launcher, true) {
            return None;
        }
        let launcher = injected::launcher(self.pod, self.containers, self.options);
        insert_first(self.pod, launcher.into_iter().collect(), operations);
        Some(injected::tools_volume(self.options))
    }
}
