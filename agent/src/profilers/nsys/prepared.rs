//! How the start of a prepared container went, and whether the session in it is of use.

use flopwatch_api::preparation::NSYS_SESSION;
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::graft::{GraftError, LauncherState, Target, speaks};
use flopwatch_attach::nsys::SessionState;
use flopwatch_launcher::state::Reason;
use flopwatch_pipeline::failure::Failure;
use tracing::debug;

use crate::nsys_versions::NsysVersions;
use crate::profilers::facts::Preparation;

/// Letters of a version that are looked at.
const MAX_VERSION_CHARS: usize = 64;
/// Letters of the reason why a launcher got no session.
const MAX_FAILURE_CHARS: usize = 300;

/// Name of a capture that was never asked for.
const ABANDONED_NAME: &str = "abandoned";

/// How a container was prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// How it stands to preparation.
    pub how: Preparation,
    /// What belongs to it: the launcher's own words, or versions.
    pub detail: String,
    /// Version of the tools; empty where none were asked.
    pub tools: String,
}

impl From<Preparation> for Prepared {
    fn from(how: Preparation) -> Self {
        Self {
            how,
            detail: String::new(),
            tools: String::new(),
        }
    }
}

/// How a prepared container's start went, and whether its session answers.
pub fn inspect(grafted: &Target, nsys_versions: &NsysVersions) -> Result<Prepared, Failure> {
    let attach_failed = |error: GraftError| Failure::because(CaptureReason::AttachFailed)(error);
    let Some(state) = grafted.read_state().map_err(attach_failed)? else {
        return Ok(Preparation::Waiting.into());
    };
    if !speaks(state.protocol) {
        return Ok(Preparation::OtherVersion.into());
    }
    let LauncherState { grafted: true, .. } = state else {
        let detail = if state.detail.is_empty() {
            grafted
                .failure()
                .map(|text| printable(&text, MAX_FAILURE_CHARS))
                .unwrap_or_default()
        } else {
            state.detail
        };
        return Ok(Prepared {
            detail,
            ..Preparation::Plain(Reason::from_name(&state.reason)).into()
        });
    };
    let session = grafted.session_state(NSYS_SESSION).map_err(attach_failed)?;
    debug!(?session, "asked the session");
    match session {
        SessionState::Idle => live(grafted, nsys_versions),
        SessionState::Collecting => {
            // This agent carries one capture per container, so a collection that runs is one that
            // nobody waits for.
            grafted
                .discard_collection(NSYS_SESSION, ABANDONED_NAME)
                .map_err(attach_failed)?;
            live(grafted, nsys_versions)
        }
        SessionState::Ending => {
            grafted.end_hanging_session().map_err(attach_failed)?;
            Ok(Preparation::SessionLost.into())
        }
        SessionState::Gone | SessionState::Other(_) => Ok(Preparation::SessionLost.into()),
    }
}

/// The beginning of what comes out of a container.
fn printable(text: &str, most: usize) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(most).collect()
}

/// A session that answers, if what it collects can be read here.
pub fn live(grafted: &Target, nsys_versions: &NsysVersions) -> Result<Prepared, Failure> {
    let text = grafted
        .tools_version()
        .map_err(Failure::because(CaptureReason::AttachFailed))?
        .unwrap_or_default();
    let tools = printable(&text, MAX_VERSION_CHARS);
    if nsys_versions.is_empty() || nsys_versions.get(&tools).is_some() {
        return Ok(Prepared {
            tools,
            ..Preparation::Live.into()
        });
    }
    let named = if tools.is_empty() { "of unknown version" } else { &tools };
    Ok(Prepared {
        detail: format!("{named}, and this node's agent carries {}", nsys_versions.versions()),
        how: Preparation::OtherTools,
        tools,
    })
}
