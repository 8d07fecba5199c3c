//! Which profiler a capture uses: the deepest that is open, or the one that was asked for, or a refusal that helps.

use std::collections::BTreeSet;

use flopwatch_api::capability::Capability;
use flopwatch_api::preparation::{NSYS_TRACE_ANNOTATION, NSYS_TRACE_DEFAULT, split_names};
use flopwatch_api::profiler::{ProfilerSpec, ProfilerType, TraceCategory};
use flopwatch_api::reason::CaptureReason;

use crate::failure::Failure;
use crate::verify::is_supported;

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
    require: &[TraceCategory],
    capabilities: &[Capability],
    traced: &BTreeSet<TraceCategory>,
) -> Result<Choice, Failure> {
    can_hold(require)?;
    let wanted = wanted_categories(spec, require);
    match spec.type_ {
        ProfilerType::Auto => auto(&wanted, capabilities, traced),
        explicit => {
            open(explicit, capabilities)?;
            if explicit == ProfilerType::Nsys {
                prepared_for(&wanted, traced)?;
            }
            Ok(Choice {
                profiler: explicit,
                note: String::new(),
            })
        }
    }
}

/// What can never be in a timeline cannot be required of one: the window would be for nothing.
fn can_hold(require: &[TraceCategory]) -> Result<(), Failure> {
    let never: Vec<_> = require.iter().filter(|category| !is_supported(**category)).collect();
    if never.is_empty() {
        return Ok(());
    }
    let message = format!(
        "a timeline of this version of Flopwatch holds no events of {}, so they cannot be required: take them out of spec.require",
        names(never.into_iter())
    );
    Err(Failure::new(CaptureReason::ProfilerUnavailable, message))
}

/// The categories that a session's container records, from the pod's annotation.
pub fn traced_categories(annotation: Option<&str>) -> BTreeSet<TraceCategory> {
    split_names(annotation.unwrap_or(NSYS_TRACE_DEFAULT))
        .filter_map(TraceCategory::from_name)
        .collect()
}

fn wanted_categories(spec: &ProfilerSpec, require: &[TraceCategory]) -> BTreeSet<TraceCategory> {
    let listed = spec.nsys.iter().flat_map(|options| &options.trace);
    listed.chain(require).copied().collect()
}

fn auto(
    wanted: &BTreeSet<TraceCategory>,
    capabilities: &[Capability],
    traced: &BTreeSet<TraceCategory>,
) -> Result<Choice, Failure> {
    let mut notes = Vec::new();
    for profiler in DEEPEST_FIRST {
        match open(profiler, capabilities) {
            // What was asked for by name must be recorded: falling back to less would be an empty success.
            Ok(()) if profiler == ProfilerType::Nsys => {
                prepared_for(wanted, traced)?;
                return Ok(Choice {
                    profiler,
                    note: notes.join("; "),
                });
            }
            Ok(()) if wanted.is_empty() => {
                return Ok(Choice {
                    profiler,
                    note: notes.join("; "),
                });
            }
            Ok(()) => {
                let names = names(wanted.iter());
                let message = format!(
                    "the session requires events of {names}, and only metrics are open: {}",
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

fn prepared_for(wanted: &BTreeSet<TraceCategory>, traced: &BTreeSet<TraceCategory>) -> Result<(), Failure> {
    let missing: Vec<_> = wanted.difference(traced).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the container records {} since its start, not {}: annotate the pod template with {NSYS_TRACE_ANNOTATION}: {} and let \
         the pod be created anew",
        names(traced.iter()),
        names(missing.into_iter()),
        wanted
            .union(traced)
            .map(|category| category.as_str())
            .collect::<Vec<_>>()
            .join(","),
    );
    Err(Failure::new(CaptureReason::CategoryNotPrepared, message))
}

/// Names in a sentence: `cuda`, `cuda and nvtx`, `cuda, nvtx and osrt`.
pub(crate) fn names<'a>(categories: impl Iterator<Item = &'a TraceCategory>) -> String {
    let names: Vec<_> = categories.map(|category| category.as_str()).collect();
    match names.split_last() {
        None => "nothing".to_owned(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_api::profiler::NsysOptions;

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
        &'a [TraceCategory],
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
                &[Cuda],
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
                &[Nvtx],
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
                &[Osrt],
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

    #[test]
    fn a_missing_category_names_the_annotation_and_its_whole_value() {
        let traced = traced_categories(None);
        let failure = prepared_for(&BTreeSet::from([TraceCategory::Osrt]), &traced).unwrap_err();
        assert!(
            failure.message.contains("flopwatch.dev/nsys-trace: cuda,nvtx,osrt"),
            "{}",
            failure.message
        );
    }
}
