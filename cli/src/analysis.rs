//! Requests for the results of analyses at the gateway: the URL path of a result, and the result
//! itself, which may have to be made first.

use flopwatch_api::session::ProfilingSession;
use form_urlencoded::Serializer;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt as _, Limited};
use kube::ResourceExt as _;

use crate::ask;
use crate::cluster::Cluster;
use crate::error::Error;
use crate::gateway::Gateway;

/// Largest result of an analysis that is read.
const MAX_RESULT_BYTES: usize = 64 << 20;

/// The names of a capture in the gateway's URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureAddress {
    /// `status.id` of the capture's session.
    pub session: String,
    /// Name of the capture, which is needed where the session has several.
    pub capture: Option<String>,
}

impl CaptureAddress {
    /// Looks up the session of that name in the cluster, for one of its captures. The error is
    /// `Usage` where the session has no id yet.
    pub async fn find(cluster: &Cluster, session: &str, capture: Option<String>) -> Result<Self, Error> {
        let session = ask::session(cluster, session).await?;
        Ok(Self {
            session: id(&session)?,
            capture,
        })
    }
}

/// The identifier by which the gateway knows a session.
fn id(session: &ProfilingSession) -> Result<String, Error> {
    let status = session.status.as_ref();
    let id = status.and_then(|status| status.id.clone()).unwrap_or_default();
    let plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plain.then_some(id).ok_or_else(|| {
        let name = session.name_any();
        Error::Usage(format!("session {name} has not begun: kubectl flopwatch watch {name}"))
    })
}

/// URL path and query of the result of the analysis `name`, of the capture `of` and of `further`
/// ones, with these parameters.
pub fn path<'a>(
    of: &CaptureAddress,
    name: &str,
    further: &[CaptureAddress],
    parameters: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let mut query = Serializer::new(String::new());
    for CaptureAddress { session, capture } in further {
        let capture = capture
            .as_ref()
            .map_or_else(String::new, |capture| format!("/{capture}"));
        query.append_pair("with", &format!("{session}{capture}"));
    }
    if let Some(capture) = &of.capture {
        query.append_pair("capture", capture);
    }
    query.extend_pairs(parameters);
    let query = query.finish();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("/api/profiling/session/{}/analyses/{name}{mark}{query}", of.session)
}

/// Requests the result at `path` from the gateway, waits while it is being made, and reads at most
/// 64 MiB of it.
pub async fn result(gateway: &Gateway, path: &str) -> Result<Vec<u8>, Error> {
    Ok(typed_result(gateway, path).await?.1)
}

/// The same, behind the type of its content.
pub async fn typed_result(gateway: &Gateway, path: &str) -> Result<(Option<HeaderValue>, Vec<u8>), Error> {
    let answer = gateway.get_when_ready(path, &HeaderMap::new()).await?;
    let content_type = answer.headers().get(CONTENT_TYPE).cloned();
    let body = Limited::new(answer.into_body(), MAX_RESULT_BYTES).collect().await;
    let body = body.map_err(|error| Error::Render(format!("the gateway's result broke off: {error}")))?;
    Ok((content_type, body.to_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(session: &str, capture: Option<&str>) -> CaptureAddress {
        CaptureAddress {
            session: session.to_owned(),
            capture: capture.map(str::to_owned),
        }
    }

    #[test]
    fn captures_and_parameters_stand_in_the_query() {
        let first = place("0badcafe", Some("first-1"));
        let further = [place("00000bad", Some("second-1")), place("00000bad", None)];
        let parameters = [("name", "a&b c")];
        assert_eq!(
            path(&first, "compare", &further, parameters),
            "/api/profiling/session/0badcafe/analyses/compare?with=00000bad%2Fsecond-1&with=00000bad&capture=first-1&name=a%26b+c"
        );
        let none: [(&str, &str); 0] = [];
        let alone = path(&place("0badcafe", None), "idle", &[], none);
        assert_eq!(alone, "/api/profiling/session/0badcafe/analyses/idle");
    }
}
