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

    /// A profiler, and why it is closed.
    type Probed<'a> = (ProfilerType, Option<(CaptureReason, &'a str)>);

    fn capability((profiler, closed): Probed<'_>) -> Capability {
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

    const METRICS_OPEN: Probed<'static> = (ProfilerType::Metrics, None);
    const METRICS_CLOSED: Probed<'static> = (ProfilerType::Metrics, Some((CaptureReason::NvmlUnavailable, "no NVML")));
    const NSYS_OPEN: Probed<'static> = (ProfilerType::Nsys, None);
    const NSYS_CLOSED: Probed<'static> = (
        ProfilerType::Nsys,
        Some((CaptureReason::NotPrepared, "label the pod template")),
    );

    type Row<'a> = (
        &'a str,
        ProfilerType,
        &'a [TraceCategory],
        &'a [Category],
        Result<ProfilerType, CaptureReason>,
    );

    /// Holds each row against what is chosen in a container that records CUDA and NVTX.
    fn check(probed: [Probed<'_>; 2], rows: &[Row<'_>]) {
        let capabilities = probed.map(capability);
        let candidates = candidates(&[TraceCategory::Cuda, TraceCategory::Nvtx]);
        for (situation, type_, trace, require, expected) in rows {
            let chosen = choose(&profiler(*type_, trace), require, &capabilities, &candidates);
            let short = chosen
                .map(|choice| choice.profiler.type_)
                .map_err(|failure| failure.reason);
            assert_eq!(short, *expected, "{situation}");
        }
    }

    #[test]
    fn each_situation_leads_to_its_profiler_or_its_reason() {
        use CaptureReason::{CategoryNotPrepared, NotPrepared, ProfilerUnavailable};
        use Category::{CudaKernel, NvtxRange, OsRuntime};
        use ProfilerType::{Auto, Metrics, Ncu, Nsys};
        use TraceCategory::{Cuda, Osrt};
        let (unavailable, unprepared) = (Err(ProfilerUnavailable), Err(CategoryNotPrepared));
        let open: [Row<'_>; 6] = [
            ("auto takes the deepest", Auto, &[], &[], Ok(Nsys)),
            ("auto, category not recorded", Auto, &[Osrt], &[], unprepared),
            ("explicit and open", Nsys, &[Cuda], &[NvtxRange], Ok(Nsys)),
            ("explicit, category not recorded", Nsys, &[], &[OsRuntime], unprepared),
            ("explicit metrics", Metrics, &[], &[], Ok(Metrics)),
            ("a profiler of a later version", Ncu, &[], &[], unavailable),
        ];
        check([NSYS_OPEN, METRICS_OPEN], &open);
        let closed: [Row<'_>; 3] = [
            ("auto falls back", Auto, &[], &[], Ok(Metrics)),
            ("auto not below what is required", Auto, &[], &[CudaKernel], unavailable),
            ("explicit and closed", Nsys, &[], &[], Err(NotPrepared)),
        ];
        check([NSYS_CLOSED, METRICS_OPEN], &closed);
        let nothing: [Row<'_>; 1] = [("auto with nothing open", Auto, &[], &[], unavailable)];
        check([NSYS_CLOSED, METRICS_CLOSED], &nothing);
    }

    #[test]
    fn an_option_of_a_profiler_keeps_auto_from_metrics() {
        let capabilities = [NSYS_CLOSED, METRICS_OPEN].map(capability);
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
        let capabilities = [NSYS_CLOSED, METRICS_OPEN].map(capability);
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
        let open = types.into_iter().map(|type_| capability((type_, None)));
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
