//! Sessions of the tests.

use anyhow::{Context as _, Result, bail, ensure};
use flopwatch_api::capture::Capture;
use flopwatch_api::schedule::ProfilingSchedule;
use flopwatch_api::session::ProfilingSession;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::cluster::{TestNamespace, eventually};

/// Conditions of a capture that are all true once it has succeeded.
const MILESTONES: [&str; 6] = [
    "Accepted",
    "Attached",
    "Captured",
    "Transformed",
    "Published",
    "Succeeded",
];

/// The spec of a session of a pod that was prepared.
pub fn spec(pod: &str, seconds: u32, profiler: &str) -> Value {
    json!({ "target": { "podName": pod }, "durationSeconds": seconds, "profiler": { "type": profiler } })
}

/// The spec of a session of the container `main` of a pod, prepared or not.
pub fn of_main(pod: &str, seconds: u32, profiler: &str) -> Value {
    let target = json!({ "podName": pod, "containerNames": ["main"] });
    with(spec(pod, seconds, profiler), json!({ "target": target }))
}

/// The spec of a session of a copy of a pod.
pub fn of_copy(pod: &str, seconds: u32, profiler: &str) -> Value {
    with(spec(pod, seconds, profiler), json!({ "target": { "replicaOf": pod } }))
}

/// An object with these members beside its own or in place of them.
#[must_use]
pub fn with(mut object: Value, members: Value) -> Value {
    if let (Some(object), Value::Object(members)) = (object.as_object_mut(), members) {
        object.extend(members);
    }
    object
}

/// What a manifest says of an object of ours, whose metadata has more than a name.
///
/// # Errors
/// When the types cannot hold it.
pub fn session(metadata: &Value, spec: &Value) -> Result<ProfilingSession> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession", "metadata": metadata, "spec": spec
    }))?)
}

impl TestNamespace {
    /// Creates a session of that spec.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn create_session(&self, name: &str, spec: Value) -> Result<ProfilingSession> {
        let session = session(&json!({ "name": name }), &spec)?;
        let sessions = self.api::<ProfilingSession>();
        Ok(sessions.create(&PostParams::default(), &session).await?)
    }

    /// Creates a session of a pod that was prepared ([`spec`]).
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn profile(&self, name: &str, pod: &str, seconds: u32, profiler: &str) -> Result<()> {
        self.create_session(name, spec(pod, seconds, profiler)).await.map(drop)
    }

    /// Creates a session of the container `main` of a pod, prepared or not ([`of_main`]).
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn profile_main(&self, name: &str, pod: &str, seconds: u32, profiler: &str) -> Result<()> {
        self.create_session(name, of_main(pod, seconds, profiler))
            .await
            .map(drop)
    }

    /// Creates a schedule of that spec.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn create_schedule(&self, name: &str, spec: Value) -> Result<ProfilingSchedule> {
        let schedule = serde_json::from_value(json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSchedule", "metadata": { "name": name },
            "spec": spec
        }))?;
        Ok(self.api().create(&PostParams::default(), &schedule).await?)
    }

    /// Deletes a session as a user does.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn delete_session(&self, name: &str) -> Result<()> {
        let sessions = self.api::<ProfilingSession>();
        sessions.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits for a session that succeeds, holds its status and that of its only capture against
    /// each other, and returns the capture.
    ///
    /// # Errors
    /// When it does not succeed.
    pub async fn succeeded(&self, name: &str) -> Result<Capture> {
        let session = self.finished(name).await?;
        let capture = self.only_capture(name).await?;
        let succeeded = condition_of(&session, "Succeeded").context("no condition")?;
        ensure!(
            succeeded.status == "True",
            "{name}: {succeeded:?}\n{:#?}",
            capture.status
        );
        for type_ in MILESTONES {
            let condition = capture_condition(&capture, type_).with_context(|| format!("no condition {type_}"))?;
            ensure!(condition.status == "True", "{name}: {condition:?}");
        }
        let status = session.status.context("no status")?;
        let counts = status.counts;
        ensure!(counts.succeeded == 1 && counts.failed == 0, "{name}: {counts:?}");
        ensure!(status.requested_by.is_some(), "nobody asked for session {name}");
        ensure!(status.id.as_ref().is_some_and(|id| id.len() == 8), "{:?}", status.id);
        Ok(capture)
    }

    /// Waits until the condition `TargetsFound` of a session has that reason, and returns it.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn targets_found(&self, name: &str, reason: &str) -> Result<Condition> {
        eventually(&format!("TargetsFound of {name} to be {reason}"), || async {
            let session = self.api::<ProfilingSession>().get(name).await?;
            let found = condition_of(&session, "TargetsFound").filter(|found| found.reason == reason);
            Ok(found.cloned())
        })
        .await
    }

    /// Waits until a session has ended whose condition `TargetsFound` has that reason then, and
    /// says this.
    ///
    /// # Errors
    /// When it ends otherwise, or not in time.
    pub async fn ends_without_targets(&self, name: &str, reason: &str, says: &str) -> Result<Condition> {
        let ended = self.finished(name).await?;
        let found = condition_of(&ended, "TargetsFound").context("no condition")?;
        ensure!(
            found.reason == reason && found.message.contains(says),
            "{name}: {found:?}"
        );
        Ok(found.clone())
    }

    /// Waits until the session ended, and returns it.
    ///
    /// # Errors
    /// When it does not end in time; the message holds its status.
    pub async fn finished(&self, name: &str) -> Result<ProfilingSession> {
        let outcome = eventually(&format!("session {name} to end"), || async {
            let session = self.api::<ProfilingSession>().get(name).await?;
            let decided = condition_of(&session, "Succeeded").is_some_and(|one| one.status != "Unknown");
            Ok(decided.then_some(session))
        })
        .await;
        match outcome {
            Ok(session) => Ok(session),
            Err(error) => {
                let session = self.api::<ProfilingSession>().get(name).await?;
                let captures = self.captures(name).await?;
                bail!(
                    "{error:#}\nsession: {}\ncaptures: {}",
                    serde_json::to_string_pretty(&session.status)?,
                    serde_json::to_string_pretty(&captures.iter().map(|one| &one.status).collect::<Vec<_>>())?
                )
            }
        }
    }

    /// Ends a session's window now; its result is kept or discarded (`Keep`, `Discard`).
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn stop(&self, session: &str, how: &str) -> Result<()> {
        let stop = Patch::Merge(json!({ "spec": { "stop": how } }));
        let sessions = self.api::<ProfilingSession>();
        sessions.patch(session, &PatchParams::default(), &stop).await?;
        Ok(())
    }

    /// Captures of a session, by name.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn captures(&self, session: &str) -> Result<Vec<Capture>> {
        let parameters = ListParams::default().labels(&format!("{}={session}", flopwatch_api::SESSION_LABEL));
        Ok(self.api::<Capture>().list(&parameters).await?.items)
    }

    /// Waits until the only capture of a session collects, which its condition `Attached` tells.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn attached(&self, session: &str) -> Result<()> {
        eventually(&format!("the capture of {session} to collect"), || async {
            let capture = self.only_capture(session).await?;
            let attached = capture_condition(&capture, "Attached");
            Ok(attached.is_some_and(|one| one.status == "True").then_some(()))
        })
        .await
    }

    /// The only capture of a session.
    ///
    /// # Errors
    /// When there is none or more than one.
    pub async fn only_capture(&self, session: &str) -> Result<Capture> {
        let mut captures = self.captures(session).await?;
        if captures.len() != 1 {
            bail!("session {session} has {} captures", captures.len());
        }
        captures.pop().context("no capture")
    }
}

/// The condition of that type.
pub fn condition_of<'a>(session: &'a ProfilingSession, type_: &str) -> Option<&'a Condition> {
    of_type(&session.status.as_ref()?.conditions, type_)
}

/// The condition of that type on a capture.
pub fn capture_condition<'a>(capture: &'a Capture, type_: &str) -> Option<&'a Condition> {
    of_type(&capture.status.as_ref()?.conditions, type_)
}

fn of_type<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|one| one.type_ == type_)
}
