//! Which profiler a capture uses: the deepest that is open, or the one that was asked for, or a refusal that helps.

use std::collections::BTreeSet;

use flopwatch_api::capability::Capability;
use flopwatch_api::profiler::{ProfilerSpec, ProfilerType, TraceCategory};
use flopwatch_api::reason::CaptureReason;
use flopwatch_api::requirement::Requirement;

use crate::failure::Failure;
use crate::profilers::nsys::categories::covers;

/// Profilers by depth, deepest first. Those that this version cannot run are never open, so they are never chosen.
const DEEPEST_FIRST: [ProfilerType; 2] = [ProfilerType::Nsys, ProfilerType::Metrics];

/// The profiler to use, and what the user should know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Profiler.
    pub profiler: ProfilerType,
    /// Why it is not a deeper one, and what would open that; empty when the deepest is open.
    pub note: String,
}

/// Picks the profiler from what the probe found. `traced` holds the categories that the container's session records.
pub fn choose(
    spec: &ProfilerSpec,
    require: &[Requirement],
    capabilities: &[Capability],
    traced: &BTreeSet<TraceCategory>,
) -> Result<Choice, Failure> {
    match spec.type_ {
        ProfilerType::Auto => auto(spec, require, capabilities, traced),
        explicit => {
            open(explicit, capabilities)?;
            if explicit == ProfilerType::Nsys {
                covers(spec, require, traced)?;
            }
            Ok(Choice {
                profiler: explicit,
                note: String::new(),
            })
        }
    }
}

fn auto(
    spec: &ProfilerSpec,
    require: &[Requirement],
    capabilities: &[Capability],
    traced: &BTreeSet<TraceCategory>,
) -> Result<Choice, Failure> {
    let mut notes = Vec::new();
    for profiler in DEEPEST_FIRST {
        match open(profiler, capabilities) {
            // What was asked for by name must be recorded: falling back to less would be an empty success.
            Ok(()) if profiler == ProfilerType::Nsys => {
                covers(spec, require, traced)?;
                return Ok(Choice {
                    profiler,
                    note: notes.join("; "),
                });
            }
            Ok(()) => {
                let traced = spec.nsys.iter().flat_map(|options| &options.trace);
                let wanted: Vec<_> = traced
                    .map(|category| category.as_str())
                    .chain(require.iter().map(|requirement| requirement.as_str()))
                    .collect();
                if wanted.is_empty() {
                    return Ok(Choice {
                        profiler,
                        note: notes.join("; "),
                    });
                }
                let message = format!(
                    "the session requires events of {}, and only metrics are open: {}",
                    names(wanted.into_iter()),
                    notes.join("; ")
                );
                return Err(Failure::new(CaptureReason::ProfilerUnavailable, message));
            }
            Err(closed) => notes.push(format!("{}: {}", profiler.as_str(), closed.message)),
        }
    }
    Err(Failure::new(
        CaptureReason::ProfilerUnavailable,
        format!("nothing is open for this container: {}", notes.join("; ")),
    ))
}

/// Whether a profiler is open, with the probe's own reason and remedy when it is not.
fn open(profiler: ProfilerType, capabilities: &[Capability]) -> Result<(), Failure> {
    match capabilities.iter().find(|capability| capability.profiler == profiler) {
        Some(capability) if capability.available => Ok(()),
        Some(capability) => {
            let reason = CaptureReason::from_name(&capability.reason).unwrap_or(CaptureReason::ProfilerUnavailable);
            Err(Failure::new(reason, capability.remedy.clone()))
        }
        None => Err(Failure::new(
            CaptureReason::ProfilerUnavailable,
            format!(
                "this version of Flopwatch cannot use {}; use Auto, Nsys or Metrics",
                profiler.as_str()
            ),
        )),
    }
}

/// Names in a sentence: `cuda_kernel`, `cuda_kernel and nvtx_range`, `cuda_kernel, nvtx_range and os_runtime`.
pub(crate) fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    match names.split_last() {
        None => "nothing".to_owned(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_api::profiler::NsysOptions;
    use flopwatch_trace::model::Category;

    use super::*;

    fn capability(profiler: ProfilerType, closed: Option<(CaptureReason, &str)>) -> Capability {
        Capability {
            profiler,
            available: closed.is_none(),
            reason: closed.map_or("Available", |(reason, _)| reason.as_str()).to_owned(),
            remedy: closed.map_or("", |(_, remedy)| remedy).to_owned(),
        }
    }

    fn profiler(type_: ProfilerType, trace: &[TraceCategory]) -> ProfilerSpec {
        ProfilerSpec {
            type_,
            nsys: Some(NsysOptions { trace: trace.to_vec() }),
        }
    }

    const METRICS_OPEN: (ProfilerType, Option<(CaptureReason, &str)>) = (ProfilerType::Metrics, None);
    const NSYS_OPEN: (ProfilerType, Option<(CaptureReason, &str)>) = (ProfilerType::Nsys, None);
    const NSYS_CLOSED: (ProfilerType, Option<(CaptureReason, &str)>) = (
        ProfilerType::Nsys,
        Some((CaptureReason::NotPrepared, "label the pod template")),
    );

    type Row<'a> = (
        &'a str,
        ProfilerSpec,
        &'a [Requirement],
        [(ProfilerType, Option<(CaptureReason, &'a str)>); 2],
        Result<ProfilerType, CaptureReason>,
    );

    #[test]
    fn each_situation_leads_to_its_profiler_or_its_reason() {
        use ProfilerType::{Auto, Metrics, Ncu, Nsys};
        use TraceCategory::{Cuda, Nvtx, Osrt};
        let default = [Cuda, Nvtx];
        let rows: [Row<'_>; 10] = [
            (
                "auto takes the deepest",
                profiler(Auto, &[]),
                &[],
                [NSYS_OPEN, METRICS_OPEN],
                Ok(Nsys),
            ),
            (
                "auto falls back",
                profiler(Auto, &[]),
                &[],
                [NSYS_CLOSED, METRICS_OPEN],
                Ok(Metrics),
            ),
            (
                "auto does not fall below what is required",
                profiler(Auto, &[]),
                &[Requirement::Category(Category::CudaKernel)],
                [NSYS_CLOSED, METRICS_OPEN],
                Err(CaptureReason::ProfilerUnavailable),
            ),
            (
                "auto with a category that is not recorded",
                profiler(Auto, &[Osrt]),
                &[],
                [NSYS_OPEN, METRICS_OPEN],
                Err(CaptureReason::CategoryNotPrepared),
            ),
            (
                "auto with nothing open",
                profiler(Auto, &[]),
                &[],
                [
                    NSYS_CLOSED,
                    (Metrics, Some((CaptureReason::NvmlUnavailable, "no NVML"))),
                ],
                Err(CaptureReason::ProfilerUnavailable),
            ),
            (
                "explicit and open",
                profiler(Nsys, &[Cuda]),
                &[Requirement::Category(Category::NvtxRange)],
                [NSYS_OPEN, METRICS_OPEN],
                Ok(Nsys),
            ),
            (
                "explicit and closed",
                profiler(Nsys, &[]),
                &[],
                [NSYS_CLOSED, METRICS_OPEN],
                Err(CaptureReason::NotPrepared),
            ),
            (
                "explicit with a required category that is not recorded",
                profiler(Nsys, &[]),
                &[Requirement::Category(Category::OsRuntime)],
                [NSYS_OPEN, METRICS_OPEN],
                Err(CaptureReason::CategoryNotPrepared),
            ),
            (
                "explicit metrics",
                profiler(Metrics, &[]),
                &[],
                [NSYS_OPEN, METRICS_OPEN],
                Ok(Metrics),
            ),
            (
                "a profiler of a later version",
                profiler(Ncu, &[]),
                &[],
                [NSYS_OPEN, METRICS_OPEN],
                Err(CaptureReason::ProfilerUnavailable),
            ),
        ];
        for (situation, spec, require, probe, expected) in rows {
            let capabilities: Vec<_> = probe
                .into_iter()
                .map(|(type_, closed)| capability(type_, closed))
                .collect();
            let chosen = choose(&spec, require, &capabilities, &BTreeSet::from(default));
            let short = chosen.map(|choice| choice.profiler).map_err(|failure| failure.reason);
            assert_eq!(short, expected, "{situation}");
        }
    }

    #[test]
    fn falling_back_to_metrics_says_what_would_open_more() {
        let capabilities = [
            capability(NSYS_CLOSED.0, NSYS_CLOSED.1),
            capability(METRICS_OPEN.0, METRICS_OPEN.1),
        ];
        let choice = choose(&profiler(ProfilerType::Auto, &[]), &[], &capabilities, &BTreeSet::new()).unwrap();
        assert!(choice.note.contains("label the pod template"), "{}", choice.note);
    }
}
