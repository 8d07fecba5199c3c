//! Sessions of the tests.

use anyhow::{Context as _, Result, bail};
use flopwatch_api::capture::Capture;
use flopwatch_api::session::ProfilingSession;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::cluster::{TestNamespace, eventually};

impl TestNamespace {
    /// Creates a session of that spec.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn create_session(&self, name: &str, spec: Value) -> Result<ProfilingSession> {
        let session: ProfilingSession = serde_json::from_value(json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession",
            "metadata": { "name": name }, "spec": spec
        }))?;
        Ok(self
            .api::<ProfilingSession>()
            .create(&PostParams::default(), &session)
            .await?)
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
            Ok(capture_condition(&capture, "Attached")
                .is_some_and(|one| one.status == "True")
                .then_some(()))
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
    session
        .status
        .as_ref()?
        .conditions
        .iter()
        .find(|one| one.type_ == type_)
}

/// The condition of that type on a capture.
pub fn capture_condition<'a>(capture: &'a Capture, type_: &str) -> Option<&'a Condition> {
    capture
        .status
        .as_ref()?
        .conditions
        .iter()
        .find(|one| one.type_ == type_)
}
