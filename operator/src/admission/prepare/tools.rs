//! The profiler whose tools go into a pod, and how the launcher runs a container's command with it.

use flopwatch_api::pod;
use flopwatch_api::preparation::{
    HOLD_ANNOTATION, LAUNCHER, NCU_OPTIONS_ANNOTATION, NSYS_GPU_METRICS_ANNOTATION, NSYS_TRACE_ANNOTATION,
    NSYS_TRACE_DEFAULT, PreparationWord, PreparedFor, split_names,
};
use flopwatch_api::profiler::NcuOptions;
use k8s_openapi::api::core::v1::Pod;

use super::{Delivery, PrepareOptions};
use crate::admission::refusal::Refusal;

/// The launcher's words before a container's command.
const RUN: [&str; 3] = [LAUNCHER, "run", "--"];
/// The same where the container stays for its capture; its collection may have to start before its
/// program does, so the launcher is given longer.
const HOLD: [&str; 8] = [LAUNCHER, "hold", "--", LAUNCHER, "run", "--session-seconds", "40", "--"];

/// How the launcher calls the files for metrics of GPUs.
const GPU_METRICS: &str = "gpu-metrics";

/// What goes into a pod.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    /// The profiler's word.
    pub(super) word: PreparationWord,
    /// The options, with the image of that profiler.
    pub(super) options: PrepareOptions,
    /// What stands before a container's command.
    pub(super) prefix: Vec<String>,
    /// The parts of the tools that the containers need, as the launcher takes them; None: all.
    pub(super) parts: Option<String>,
}

/// Whether any of the words needs tools.
pub(super) fn are_wanted(words: &PreparedFor) -> bool {
    words.contains(PreparationWord::Nsys) || words.contains(PreparationWord::Ncu)
}

/// The tools that the words ask for; None where they need none.
pub(super) fn choose(pod: &Pod, words: &PreparedFor, options: &PrepareOptions) -> Result<Option<Tools>, Refusal> {
    let held = pod::annotation(pod, HOLD_ANNOTATION) == Some("true");
    match (
        words.contains(PreparationWord::Nsys),
        words.contains(PreparationWord::Ncu),
    ) {
        (false, false) => Ok(None),
        (true, true) => Err(Refusal::TwoProfilers),
        (true, false) => {
            let prefix: &[&str] = if held { &HOLD } else { &RUN };
            Ok(Some(Tools {
                word: PreparationWord::Nsys,
                options: options.clone(),
                prefix: prefix.iter().map(|word| (*word).to_owned()).collect(),
                parts: Some(parts(pod)),
            }))
        }
        (false, true) if !held => Err(Refusal::NotASessionsPod),
        (false, true) => ncu(pod, options).map(Some),
    }
}

/// The categories that the containers trace, and metrics of GPUs where the pod asks for them.
fn parts(pod: &Pod) -> String {
    let traced = pod::annotation(pod, NSYS_TRACE_ANNOTATION).unwrap_or(NSYS_TRACE_DEFAULT);
    let metrics = pod::annotation(pod, NSYS_GPU_METRICS_ANNOTATION).filter(|value| value.trim() == "true");
    let parts: Vec<&str> = split_names(traced).chain(metrics.map(|_| GPU_METRICS)).collect();
    parts.join(",")
}

fn ncu(pod: &Pod, options: &PrepareOptions) -> Result<Tools, Refusal> {
    let ncu = options.ncu.as_ref().ok_or(Refusal::NoNcuImage)?;
    let chosen: NcuOptions = match pod::annotation(pod, NCU_OPTIONS_ANNOTATION) {
        None => NcuOptions::default(),
        Some(text) => serde_json::from_str(text).map_err(|error| Refusal::NcuOptions(error.to_string()))?,
    };
    Ok(Tools {
        word: PreparationWord::Ncu,
        options: PrepareOptions {
            tools_image: ncu.image.clone(),
            tools_path: ncu.path.clone(),
            tools_bytes: ncu.bytes,
            // The launcher's image has no folder to mount it at, and nobody waits for a session's
            // own pod.
            delivery: Delivery::Copy,
            ..options.clone()
        },
        prefix: ncu.prefix(&chosen),
        parts: None,
    })
}
