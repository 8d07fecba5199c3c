//! Which profiler a capture uses: the deepest that is open, or the one that was asked for, or a
//! refusal that helps.

use std::sync::Arc;

use flopwatch_api::capability::Capability;
use flopwatch_api::profiler::{NsysOptions, ProfilerSpec, ProfilerType};
use flopwatch_api::reason::CaptureReason;
use flopwatch_model::Category;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::sentence::{names, one_of};

use crate::profilers::{AnyProfiler, State};

/// A profiler, and the state with which it would collect in the container.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The profiler that would collect.
    pub profiler: Arc<AnyProfiler>,
    /// State of the profiler.
    pub state: State,
}

/// The profiler to use, and what the user should know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// State of the profiler.
    pub profiler: State,
    /// Why it is not a deeper one, and what would open that; empty when the deepest is open.
    pub note: String,
}

/// Picks one of the candidates, which are in order of their depth, from what the probe found.
pub fn choose(
    spec: &ProfilerSpec,
    require: &[Category],
    capabilities: &[Capability],
    candidates: &[Candidate],
) -> Result<Choice, Failure> {
    if spec.type_ == ProfilerType::Auto {
        return auto(spec, require, capabilities, candidates);
    }
    open(spec.type_, capabilities)?;
    let found = candidates
        .iter()
        .find(|candidate| candidate.profiler.type_() == spec.type_);
    let Candidate { profiler, state } = found.ok_or_else(|| unusable(spec.type_))?;
    profiler.covers(spec, require, state)?;
    Ok(Choice {
        profiler: state.clone(),
        note: String::new(),
    })
}

fn auto(
    spec: &ProfilerSpec,
    require: &[Category],
    capabilities: &[Capability],
    candidates: &[Candidate],
) -> Result<Choice, Failure> {
    let mut notes = Vec::new();
    for Candidate { profiler, state } in candidates {
        if let Err(closed) = open(profiler.type_(), capabilities) {
            notes.push(format!("{}: {}", profiler.type_().as_str(), closed.message));
            continue;
        }
        if let Some(why) = profiler.passed_over(state)? {
            notes.push(format!("{}: {why}", profiler.type_().as_str()));
            continue;
        }
        // What was asked for by name must be recorded: falling back to less would be an empty
        // success.
        let asked = asked(spec, require);
        if !profiler.records_events() && !asked.is_empty() {
            let message = format!(
                "the session asks for {}, and only {} are open: {}",
                names(asked.into_iter()),
                profiler.type_().word(),
                notes.join("; ")
            );
            return Err(Failure::new(CaptureReason::ProfilerUnavailable, message));
        }
        profiler.covers(spec, require, state)?;
        return Ok(Choice {
            profiler: state.clone(),
            note: notes.join("; "),
        });
    }
    Err(Failure::new(
        CaptureReason::ProfilerUnavailable,
        format!("nothing is open for this container: {}", notes.join("; ")),
    ))
}

/// What a session names: the options of a profiler, and the events that it requires.
fn asked<'a>(spec: &'a ProfilerSpec, require: &'a [Category]) -> Vec<&'a str> {
    let options = spec.nsys.iter().flat_map(NsysOptions::asked);
    options.chain(require.iter().map(|category| category.name())).collect()
}

/// Whether a profiler is open, with the probe's own reason and remedy when it is not.
fn open(profiler: ProfilerType, capabilities: &[Capability]) -> Result<(), Failure> {
    match capabilities.iter().find(|capability| capability.profiler == profiler) {
        Some(capability) if capability.available => Ok(()),
        Some(capability) => {
            let reason = CaptureReason::from_name(&capability.reason).unwrap_or(CaptureReason::ProfilerUnavailable);
            Err(Failure::new(reason, capability.remedy.clone()))
        }
        None => Err(unusable(profiler)),
    }
}

fn unusable(profiler: ProfilerType) -> Failure {
    let others = ProfilerType::ALL.into_iter().filter(|other| *other != profiler);
    let message = format!(
        "this version of Flopwatch cannot use {}; use {}",
        profiler.as_str(),
        one_of(others.map(ProfilerType::as_str))
    );
    Failure::new(CaptureReason::ProfilerUnavailable, message)
}

#[cfg(test)]
mod tests {
    use flopwatch_api::profiler::{CudaGraphTrace, TraceCategory};

    use super::*;
    use crate::profilers::Registry;

    /// Every profiler, in a container whose session traces these.
    fn candidates(traced: &[TraceCategory]) -> Vec<Candidate> {
        let candidate = |profiler: &Arc<AnyProfiler>| Candidate {
            profiler: Arc::clone(profiler),
            state: State::of(profiler.type_(), &serde_json::json!({"traced": traced})).unwrap(),
        };
        Registry::default().iter().map(candidate).collect()
    }

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
            nsys: Some(NsysOptions {
                trace: trace.to_vec(),
                ..NsysOptions::default()
            }),
            ..ProfilerSpec::default()
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
        &'a [Category],
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
                &[Category::CudaKernel],
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
                &[Category::NvtxRange],
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
                &[Category::OsRuntime],
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
            let chosen = choose(&spec, require, &capabilities, &candidates(&default));
            let short = chosen
                .map(|choice| choice.profiler.type_)
                .map_err(|failure| failure.reason);
            assert_eq!(short, expected, "{situation}");
        }
    }

    #[test]
    fn an_option_of_a_profiler_keeps_auto_from_metrics() {
        let capabilities = [
            capability(NSYS_CLOSED.0, NSYS_CLOSED.1),
            capability(METRICS_OPEN.0, METRICS_OPEN.1),
        ];
        let mut spec = profiler(ProfilerType::Auto, &[]);
        spec.nsys = Some(NsysOptions {
            cuda_graph_trace: Some(CudaGraphTrace::Node),
            ..NsysOptions::default()
        });
        let failure = choose(&spec, &[], &capabilities, &candidates(&[])).unwrap_err();
        assert_eq!(failure.reason, CaptureReason::ProfilerUnavailable);
        assert!(
            failure.message.contains("asks for cudaGraphTrace"),
            "{}",
            failure.message
        );
    }

    #[test]
    fn falling_back_to_metrics_says_what_would_open_more() {
        let capabilities = [
            capability(NSYS_CLOSED.0, NSYS_CLOSED.1),
            capability(METRICS_OPEN.0, METRICS_OPEN.1),
        ];
        let choice = choose(&profiler(ProfilerType::Auto, &[]), &[], &capabilities, &candidates(&[])).unwrap();
        assert!(choice.note.contains("label the pod template"), "{}", choice.note);
    }
    /// A container whose CUDA tracer and Kineto are open; `unproven` says why no GPU's word stands
    /// for its driver.
    fn with_tracer(unproven: Option<&str>) -> (Vec<Capability>, Vec<Candidate>) {
        let types = [ProfilerType::Cuda, ProfilerType::Kineto, ProfilerType::Metrics];
        let state = |type_| match type_ {
            ProfilerType::Cuda => serde_json::json!({"file": "/flopwatch/cuda/cuda.trace", "unproven": unproven}),
            ProfilerType::Kineto => {
                serde_json::json!({
                    "request": {"options": {}, "start_ms": 0, "length_ms": 0}, "temporary": "/tmp", "cuda": true
                })
            }
            _ => serde_json::json!({}),
        };
        let registry = Registry::default();
        let profilers = registry.iter().filter(|profiler| types.contains(&profiler.type_()));
        let candidates = profilers.map(|profiler| Candidate {
            profiler: Arc::clone(profiler),
            state: State::of(profiler.type_(), &state(profiler.type_())).unwrap(),
        });
        let open = types.into_iter().map(|type_| capability(type_, None));
        (open.collect(), candidates.collect())
    }

    #[test]
    fn auto_takes_the_cuda_tracer_before_kineto_where_its_driver_is_proven() {
        let (capabilities, candidates) = with_tracer(None);
        let chosen = choose(&profiler(ProfilerType::Auto, &[]), &[], &capabilities, &candidates).unwrap();
        assert_eq!((chosen.profiler.type_, chosen.note.as_str()), (ProfilerType::Cuda, ""));
    }

    #[test]
    fn auto_passes_the_cuda_tracer_over_where_its_driver_is_not_proven_and_who_names_it_has_it() {
        let (capabilities, candidates) = with_tracer(Some("no GPU has shown it"));
        let choose = |type_| choose(&profiler(type_, &[]), &[], &capabilities, &candidates).unwrap();
        let auto = choose(ProfilerType::Auto);
        assert_eq!(auto.profiler.type_, ProfilerType::Kineto);
        assert!(
            auto.note.starts_with("Cuda: ") && auto.note.ends_with("no GPU has shown it"),
            "{}",
            auto.note
        );
        assert_eq!(choose(ProfilerType::Cuda).profiler.type_, ProfilerType::Cuda);
    }
}
