//! The preparation for the CUDA tracer: variables by which CUDA's driver loads the tracer's
//! library, and a volume in memory for the tracer's file.

use flopwatch_api::preparation::{
    CUDA_BYTES, CUDA_BYTES_ANNOTATION, CUDA_BYTES_DEFAULT, CUDA_DIR, CUDA_INJECTION64_PATH, CUDA_LIBRARY,
    CUDA_VOLUME_PREFIX, CUPTI_DIR, FLOPWATCH_CUDA_BYTES, FLOPWATCH_CUDA_CUPTI, FLOPWATCH_CUDA_DIR, FLOPWATCH_CUDA_NEXT,
    PreparationWord, PreparedFor,
};
use k8s_openapi::api::core::v1::{Container, Pod};

use super::library::{Added, Library, variable};
use super::memory_volume::{self, MemoryVolume};
use super::{PrepareOptions, candidates, environment};
use crate::admission::refusal::Refusal;

/// How the names begin of libraries that have CUPTI for as long as they are loaded: those of Nsight
/// Systems, Nsight Compute and parcagpu.
const PROFILERS: [&str; 3] = ["libToolsInjection", "libcuda-injection", "libparcagpu"];

/// Whether the words ask for the tracer: Nsight Compute, which starts programs itself, leaves it
/// out.
fn is_asked_for(words: &PreparedFor) -> bool {
    words.contains(PreparationWord::Cuda) && !words.contains(PreparationWord::Ncu)
}

/// Whether a pod gets a copy of libcupti where images are not mounted.
pub(super) fn needs_cupti(pod: &Pod, words: &PreparedFor, options: &PrepareOptions) -> bool {
    is_asked_for(words) && refuse_pod(pod, options).is_none()
}

fn refuse_pod(pod: &Pod, options: &PrepareOptions) -> Option<Refusal> {
    candidates::refuse_sandbox(pod).or_else(|| candidates::refuse_cupti(pod, options))
}

/// The words with the flight recorder's, which the tracer's implies: its ranges stand in the same
/// timeline. Where the agent cannot see a pod's programs, nothing is implied.
pub(super) fn with_recorder(pod: &Pod, words: PreparedFor) -> PreparedFor {
    if is_asked_for(&words) && candidates::refuse_sandbox(pod).is_none() {
        words.with(PreparationWord::Recorder)
    } else {
        words
    }
}

/// Prepares the `index`-th container of a pod, of which it is known whether it has the tools of
/// Nsight Systems, for the tracer; None where the pod does not ask for it.
pub(super) fn of(
    pod: &Pod,
    words: &PreparedFor,
    options: &PrepareOptions,
    (index, container, has_tools): (usize, &Container, bool),
) -> Option<Result<Library, Refusal>> {
    is_asked_for(words).then(|| {
        if has_tools {
            return Err(Refusal::BesideNsys);
        }
        tracer(pod, options, index, container)
    })
}

fn tracer(pod: &Pod, options: &PrepareOptions, index: usize, container: &Container) -> Result<Library, Refusal> {
    let volume = MemoryVolume::of(CUDA_VOLUME_PREFIX, index, CUDA_DIR);
    if volume.is_there(pod, container)? {
        return Ok(Library::AlreadyAdded);
    }
    if let Some(refusal) = refuse_pod(pod, options) {
        return Err(refusal);
    }
    let own = own(container)?;
    let bytes = memory_volume::bytes(pod, CUDA_BYTES_ANNOTATION, &CUDA_BYTES, CUDA_BYTES_DEFAULT)
        .map_err(Refusal::CudaBytes)?;
    // The library makes a file of a power of two.
    let bytes = bytes.next_power_of_two();
    if let Some((limit, needed)) = memory_volume::too_small(container, bytes) {
        return Err(Refusal::CudaMemory { limit, needed });
    }
    // What an earlier review added for another library lies there too: it is looked at last.
    if let Some(refusal) = candidates::refuse_paths(container) {
        return Err(refusal);
    }
    let mut variables = Vec::new();
    let mut changed = Vec::new();
    match own {
        None => variables.push(variable(CUDA_INJECTION64_PATH, CUDA_LIBRARY)),
        Some(own) if own.path == CUDA_LIBRARY => {}
        Some(own) => {
            changed.push((own.place, CUDA_LIBRARY.to_owned()));
            if !own.path.is_empty() {
                variables.push(variable(FLOPWATCH_CUDA_NEXT, own.path));
            }
        }
    }
    variables.push(variable(FLOPWATCH_CUDA_DIR, CUDA_DIR));
    variables.push(variable(FLOPWATCH_CUDA_BYTES, &bytes.to_string()));
    // A container may bring a libcupti of its own.
    if environment::set(container, FLOPWATCH_CUDA_CUPTI).is_none() {
        variables.push(variable(FLOPWATCH_CUDA_CUPTI, CUPTI_DIR));
    }
    let (volume, mount) = volume.added(bytes);
    Ok(Library::Added(Box::new(Added {
        volume,
        mount,
        variables,
        changed,
    })))
}

/// The library that a container has CUDA load itself.
#[derive(Debug, PartialEq, Eq)]
struct Own<'a> {
    /// Place of the variable in the container's list.
    place: usize,
    /// Path of the library; empty where CUDA is to load none.
    path: &'a str,
}

/// The library that the container names, where the tracer's can call it first; None where it names
/// none.
fn own(container: &Container) -> Result<Option<Own<'_>>, Refusal> {
    let Some((place, variable)) = environment::set(container, CUDA_INJECTION64_PATH) else {
        return Ok(None);
    };
    let path = variable.value.as_deref().unwrap_or_default();
    // Of another text nobody knows here which library it names.
    let is_known = path.is_empty() || path.starts_with('/') && !path.contains('$');
    if variable.value_from.is_some() || !is_known {
        return Err(Refusal::VariableKept {
            name: CUDA_INJECTION64_PATH,
            value: CUDA_LIBRARY,
        });
    }
    let file = path.rsplit('/').next().unwrap_or_default();
    if PROFILERS.iter().any(|name| file.starts_with(name)) {
        return Err(Refusal::OtherProfiler(path.to_owned()));
    }
    Ok(Some(Own { place, path }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn own_of(env: &Value) -> Result<Option<String>, Refusal> {
        let container: Container = serde_json::from_value(json!({"name": "main", "env": env})).unwrap();
        own(&container).map(|own| own.map(|own| format!("{} {}", own.place, own.path)))
    }

    #[test]
    fn a_library_that_is_named_by_its_path_is_called_first_and_no_other() {
        let named = |value: &str| json!([{"name": "A"}, {"name": "CUDA_INJECTION64_PATH", "value": value}]);
        assert_eq!(own_of(&Value::Null), Ok(None));
        assert_eq!(own_of(&named("/opt/own.so")), Ok(Some("1 /opt/own.so".to_owned())));
        assert_eq!(own_of(&named("")), Ok(Some("1 ".to_owned())));
        let kept = Refusal::VariableKept {
            name: CUDA_INJECTION64_PATH,
            value: CUDA_LIBRARY,
        };
        let from = json!({"configMapKeyRef": {"name": "a", "key": "b"}});
        for env in [
            named("own.so"),
            named("/opt/$(NAME).so"),
            json!([{"name": "CUDA_INJECTION64_PATH", "valueFrom": from}]),
        ] {
            assert_eq!(own_of(&env), Err(kept.clone()), "{env}");
        }
        for file in ["libToolsInjection64.so", "libcuda-injection.so", "libparcagpu.so.1"] {
            let path = format!("/opt/x/{file}");
            assert_eq!(own_of(&named(&path)), Err(Refusal::OtherProfiler(path)));
        }
    }
}
