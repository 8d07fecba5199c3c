//! Which sessions and captures a caller may read.

use std::sync::Arc;

use flopwatch_api::capture::Capture;
use flopwatch_api::session::ProfilingSession;
use flopwatch_http::{Credentials, Grant, Reviewer, Verb};
use kube::ResourceExt as _;

use crate::gateway::problem::Problem;
use crate::gateway::sessions::Sessions;
use crate::gateway::token::Token;

/// Finds sessions and captures for callers who may read them; clones share it.
#[derive(Clone)]
pub(crate) struct SessionAccess {
    pub(crate) sessions: Sessions,
    pub(crate) reviewer: Arc<Reviewer>,
}

impl SessionAccess {
    /// Lets through who may, and says who they are; whoever may not hears the same whatever there
    /// is.
    pub(crate) async fn allow(
        &self,
        token: &Token,
        verb: Verb,
        namespace: &str,
        session: Option<&str>,
        raw: bool,
    ) -> Result<Arc<str>, Problem> {
        let grant = Grant {
            verb,
            namespace,
            session,
            raw,
        };
        Ok(self.reviewer.review(&Credentials::new(&token.0), &grant).await?)
    }

    /// The session of that id, if the caller may get it. That there is none is told to those who
    /// may get every session.
    pub(crate) async fn session(&self, token: &Token, id: &str) -> Result<Arc<ProfilingSession>, Problem> {
        Ok(self.session_as(token, id).await?.1)
    }

    /// The caller's name and the session of that id, under the terms of [`SessionAccess::session`].
    pub(crate) async fn session_as(
        &self,
        token: &Token,
        id: &str,
    ) -> Result<(Arc<str>, Arc<ProfilingSession>), Problem> {
        let found = self.sessions.by_id(id);
        let (namespace, name) = found.as_ref().map_or((String::new(), None), |session| {
            (session.namespace().unwrap_or_default(), Some(session.name_any()))
        });
        let user = self.allow(token, Verb::Get, &namespace, name.as_deref(), false).await?;
        let session = found.ok_or_else(|| Problem::NotFound("session of that id".to_owned()))?;
        Ok((user, session))
    }

    /// The session and the one capture that the request is about.
    pub(crate) async fn capture(
        &self,
        token: &Token,
        id: &str,
        wanted: Option<&str>,
    ) -> Result<(Arc<ProfilingSession>, Arc<Capture>), Problem> {
        let session = self.session(token, id).await?;
        let captures = self.sessions.captures_of(&session);
        if let Some(wanted) = wanted {
            let found = captures.into_iter().find(|capture| capture.name_any() == wanted);
            let capture = found.ok_or_else(|| Problem::NotFound("capture of that name in this session".to_owned()))?;
            return Ok((session, capture));
        }
        match captures.as_slice() {
            [] => Err(Problem::NotReady("The session has no capture yet.".to_owned())),
            [capture] => Ok((session, Arc::clone(capture))),
            _ => Err(Problem::SeveralCaptures(
                captures.iter().map(|capture| capture.name_any()).collect(),
            )),
        }
    }
}
