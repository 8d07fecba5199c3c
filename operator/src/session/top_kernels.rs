//! The kernels that a finished session found to take the longest, as a filter for Nsight Compute.

use std::collections::BTreeMap;
use std::sync::Arc;

use flopwatch_api::capture::Capture;
use flopwatch_api::profiler::NcuOptions;
use flopwatch_api::reason::SessionCondition;
use flopwatch_api::session::ProfilingSession;

/// What comes before a name in no namespace that is named.
const ANONYMOUS: &str = "(anonymous namespace)";

/// Function names of the kernels that `options` ask for, by the captures of the session `of`; none
/// where they ask for none of another session. Fails with a sentence where that session is absent,
/// has not ended or saw no kernels.
pub fn resolve(
    options: &NcuOptions,
    of: Option<&ProfilingSession>,
    captures: &[Arc<Capture>],
) -> Result<Vec<String>, String> {
    let Some(name) = &options.top_kernels_of else {
        return Ok(Vec::new());
    };
    let Some(session) = of else {
        return Err(format!(
            "spec.profiler.ncu.topKernelsOf: there is no session {name} in this namespace; name one that has ended, or kernels"
        ));
    };
    if !has_ended(session) {
        return Err(format!(
            "spec.profiler.ncu.topKernelsOf: session {name} has not ended; create this one anew when it has"
        ));
    }
    let mut times: BTreeMap<String, i64> = BTreeMap::new();
    let summaries = captures
        .iter()
        .filter_map(|capture| capture.status.as_ref()?.summary.as_ref());
    for kernel in summaries.flat_map(|summary| &summary.top_kernels) {
        if let Some(name) = function_name(&kernel.name) {
            let time = times.entry(name).or_default();
            *time = time.saturating_add(kernel.total_nanoseconds);
        }
    }
    let mut names: Vec<(String, i64)> = times.into_iter().collect();
    names.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let max_names = usize::try_from(options.top_kernels).unwrap_or(1);
    let names: Vec<String> = names.into_iter().take(max_names).map(|(name, _)| name).collect();
    if names.is_empty() {
        return Err(format!(
            "spec.profiler.ncu.topKernelsOf: the captures of session {name} hold no kernels; name kernels yourself (kernelNames)"
        ));
    }
    Ok(names)
}

fn has_ended(session: &ProfilingSession) -> bool {
    let conditions = session.status.iter().flat_map(|status| &status.conditions);
    conditions
        .into_iter()
        .any(|condition| condition.type_ == SessionCondition::Succeeded.as_str() && condition.status != "Unknown")
}

/// The name of a kernel's function, without result, namespaces, templates and arguments; none where
/// it has no plain one.
fn function_name(kernel: &str) -> Option<String> {
    let mut depth = 0_u32;
    let mut bare = String::new();
    for letter in kernel.replace(ANONYMOUS, "").chars() {
        match letter {
            '<' => depth = depth.saturating_add(1),
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 => break,
            _ if depth == 0 => bare.push(letter),
            _ => {}
        }
    }
    let name = bare.rsplit("::").next()?.split_whitespace().next_back()?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '$';
    let begins = name.starts_with(|letter: char| !letter.is_ascii_digit());
    (begins && name.len() <= 256 && name.chars().all(is_plain)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn options(text: &str) -> NcuOptions {
        serde_json::from_str(text).unwrap()
    }

    fn session(succeeded: &str) -> ProfilingSession {
        serde_json::from_value(json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession", "metadata": {"name": "first"},
            "spec": {"target": {"podName": "p"}},
            "status": {"conditions": [{"type": "Succeeded", "status": succeeded, "reason": "R", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
        }))
        .unwrap()
    }

    fn capture(kernels: &[(&str, i64)]) -> Arc<Capture> {
        let kernels: Vec<Value> = kernels
            .iter()
            .map(|(name, time)| json!({"name": name, "totalNanoseconds": time, "calls": 1}))
            .collect();
        Arc::new(
            serde_json::from_value(json!({
                "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture", "metadata": {"name": "c"},
                "spec": {"sessionRef": {"name": "first", "id": "0123abcd"}, "nodeName": "n", "podRef": {"name": "p", "uid": "u"},
                    "containerName": "c", "durationSeconds": 1, "startDeadlineSeconds": 1, "outputs": ["Timeline"]},
                "status": {"summary": {"windowNanoseconds": 1, "events": 1, "dropped": 0, "topKernels": kernels}}
            }))
            .unwrap(),
        )
    }

    #[test]
    fn the_kernels_of_all_captures_are_taken_by_their_time_together() {
        let captures = [
            capture(&[("gemm", 50), ("void at::native::softmax<float>(float*)", 40)]),
            capture(&[("at::native::softmax<half>(half*)", 40), ("copy(int)", 10)]),
        ];
        let resolved = |text: &str| resolve(&options(text), Some(&session("True")), &captures).unwrap();
        assert_eq!(
            resolved(r#"{"topKernelsOf": "first", "topKernels": 2}"#),
            ["softmax", "gemm"]
        );
        assert_eq!(resolved(r#"{"topKernelsOf": "first"}"#), ["softmax", "gemm", "copy"]);
        assert_eq!(resolved("{}"), [""; 0]);
    }

    #[test]
    fn a_session_that_is_absent_unfinished_or_without_kernels_says_so() {
        let asked = options(r#"{"topKernelsOf": "first"}"#);
        let why = |of: Option<&ProfilingSession>, captures: &[Arc<Capture>]| resolve(&asked, of, captures).unwrap_err();
        assert!(why(None, &[]).contains("there is no session first"));
        assert!(why(Some(&session("Unknown")), &[capture(&[("gemm", 1)])]).contains("has not ended"));
        assert!(why(Some(&session("False")), &[capture(&[])]).contains("hold no kernels"));
    }

    #[test]
    fn a_kernels_function_is_found_in_what_profilers_call_it() {
        for (kernel, function) in [
            ("ampere_sgemm_128x64_tn", Some("ampere_sgemm_128x64_tn")),
            (
                "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>>(int, float)",
                Some("vectorized_elementwise_kernel"),
            ),
            (
                "void (anonymous namespace)::softmax_warp<float, (int)5>(float*)",
                Some("softmax_warp"),
            ),
            ("void cutlass::Kernel<cut...", Some("Kernel")),
            ("ncclKernel_AllReduce(ncclDevComm*)", Some("ncclKernel_AllReduce")),
            ("$_0$kernel", Some("$_0$kernel")),
            ("9lives", None),
            ("a|b", None),
            ("", None),
        ] {
            assert_eq!(function_name(kernel).as_deref(), function, "{kernel}");
        }
    }
}
