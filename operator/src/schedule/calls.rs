//! The calls of the API server that a schedule's pass makes.

use flopwatch_api::OPERATOR_FIELD_MANAGER;
use flopwatch_api::schedule::{ProfilingSchedule, ProfilingScheduleStatus};
use flopwatch_api::session::{ProfilingSession, StopMode};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Resource as _, ResourceExt as _};

use crate::deadline::{CallError, bounded, merge};
use crate::schedule::series::RunResult;

/// Most attempts to write a status that is changed meanwhile.
const MAX_WRITE_ATTEMPTS: usize = 3;

/// Ends a session, and keeps what it recorded. One that has ended or gone needs nothing, and one
/// that its user discards meanwhile is not to be kept: the API server refuses that.
pub(super) async fn stop(name: &str, sessions: &Api<ProfilingSession>) -> Result<(), CallError> {
    let patch = serde_json::json!({"spec": {"stop": StopMode::Keep}});
    let (patch, params) = (Patch::Merge(&patch), merge());
    match bounded("stopping a session", sessions.patch(name, &params, &patch)).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() || error.refusal().is_some_and(|(code, _)| code == 422) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes a session. One that is there already is success.
pub(super) async fn create(
    session: &ProfilingSession,
    sessions: &Api<ProfilingSession>,
) -> Result<RunResult, CallError> {
    let params = PostParams {
        field_manager: Some(OPERATOR_FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    };
    match bounded("creating a session", sessions.create(&params, session)).await {
        Ok(_) => Ok(RunResult::Created),
        Err(error) if error.already_exists() => Ok(RunResult::Existed),
        Err(error) => Err(error),
    }
}

/// Writes the status by server-side apply, and only onto the version that it was planned from or
/// one that differs in nothing that was planned from. Anything else is planned anew.
pub(super) async fn write(
    schedule: &ProfilingSchedule,
    status: &ProfilingScheduleStatus,
    schedules: &Api<ProfilingSchedule>,
) -> Result<(), CallError> {
    let params = PatchParams::apply(OPERATOR_FIELD_MANAGER).force();
    let mut version = schedule.resource_version();
    for left in (0..MAX_WRITE_ATTEMPTS).rev() {
        let patch = serde_json::json!({
            "apiVersion": ProfilingSchedule::api_version(&()),
            "kind": ProfilingSchedule::kind(&()),
            "metadata": {"resourceVersion": version},
            "status": status,
        });
        let (name, patch) = (schedule.name_any(), Patch::Apply(&patch));
        let written = schedules.patch_status(&name, &params, &patch);
        match bounded("writing a schedule's status", written).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) if error.is_conflict() && left > 0 => {
                let fresh = bounded("reading the schedule", schedules.get_opt(&schedule.name_any())).await?;
                match fresh {
                    Some(fresh) if is_as_planned(schedule, &fresh) => version = fresh.resource_version(),
                    Some(_) => return Err(error),
                    None => return Ok(()),
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether what was planned from one version holds for another one: only labels, annotations or
/// finalizers differ.
fn is_as_planned(planned: &ProfilingSchedule, fresh: &ProfilingSchedule) -> bool {
    planned.metadata.uid == fresh.metadata.uid
        && planned.metadata.generation == fresh.metadata.generation
        && planned.spec == fresh.spec
        && planned.status == fresh.status
}

/// Deletes a session, if it is still that very one.
pub(super) async fn delete(name: &str, uid: Option<String>, sessions: &Api<ProfilingSession>) -> Result<(), CallError> {
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid,
            resource_version: None,
        }),
        ..DeleteParams::background()
    };
    match bounded("deleting a session", sessions.delete(name, &params)).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
        Err(error) => Err(error),
    }
}
