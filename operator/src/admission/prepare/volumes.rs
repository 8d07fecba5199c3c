//! Volumes that a container gets beside its tools: for dumps of JAX's compiler, and for the files
//! of libraries that its programs load.

use flopwatch_api::preparation::{PreparationWord, PreparedFor};
use json_patch::PatchOperation;
use k8s_openapi::api::core::v1::{Container, Pod};
use serde_json::Value;

use super::environment::Environment;
use super::library::Library;
use super::{PrepareOptions, append, candidates, cuda, injected, insert_first, jax, recorder};
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
        let mut loads = false;
        let libraries = [
            (
                PreparationWord::Recorder,
                recorder::of(self.pod, words, index, container),
            ),
            (
                PreparationWord::Cuda,
                cuda::of(self.pod, words, self.options, (index, container, has_tools)),
            ),
        ];
        for (word, library) in libraries {
            match library.map(|library| self.check(library)) {
                None => {}
                Some(Ok(library)) => {
                    environment.is_prepared_for(word);
                    if let Library::Added(added) = library {
                        volumes.push(added.volume);
                        mounts.push(added.mount);
                        environment.added.extend(added.variables);
                        environment.changed.extend(added.changed);
                        loads = true;
                    }
                }
                Some(Err(refusal)) => refused.push(refusal),
            }
        }
        if loads {
            if !has_tools {
                mounts.push(injected::tools_mount(self.options));
            }
            volumes.extend(self.launcher(words, operations));
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

    /// Refuses a library that the pod has no place for.
    fn check(&self, library: Result<Library, Refusal>) -> Result<Library, Refusal> {
        let library = library?;
        let refusal = match library {
            Library::Added(_) if !self.has_launcher => candidates::refuse_tools(self.pod),
            _ => None,
        };
        refusal.map_or(Ok(library), Err)
    }

    /// Puts the launcher into a pod that does not have it, and returns its volume.
    fn launcher(&mut self, words: &PreparedFor, operations: &mut Vec<PatchOperation>) -> Option<Value> {
        if std::mem::replace(&mut self.has_launcher, true) {
            return None;
        }
        let with_cupti = cuda::needs_cupti(self.pod, words, self.options);
        let launcher = injected::launcher(self.pod, self.containers, self.options, with_cupti);
        insert_first(self.pod, launcher.into_iter().collect(), operations);
        Some(injected::tools_volume(self.options))
    }
}
