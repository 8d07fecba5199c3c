//! An analysis that the gateway is asked for: the path of its result, and the result, which may have to be made first.

use flopwatch_api::session::ProfilingSession;
use form_urlencoded::Serializer;
use http::HeaderMap;
use http_body_util::{BodyExt as _, Limited};
use kube::ResourceExt as _;

use crate::ask;
use crate::cluster::Cluster;
use crate::error::Error;
use crate::gateway::Gateway;

/// Largest result that is read.
const LARGEST: usize = 64 << 20;

/// A capture as the gateway knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// `status.id` of its session.
    pub session: String,
    /// Its name, needed where the session has several.
    pub capture: Option<String>,
}

impl Place {
    /// A capture of the session of that name.
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

/// Path of the result of the analysis `name` of a capture, and of further ones, with these parameters.
pub fn path<'a>(
    of: &Place,
    name: &str,
    further: &[Place],
    parameters: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let mut query = Serializer::new(String::new());
    for Place { session, capture } in further {
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

/// The gateway's result at `path`, which may have to be made first.
pub async fn result(gateway: &Gateway, path: &str) -> Result<Vec<u8>, Error> {
    let answer = gateway.get_when_made(path, &HeaderMap::new()).await?;
    let body = Limited::new(answer.into_body(), LARGEST).collect().await;
    let body = body.map_err(|error| Error::Render(format!("the gateway's result broke off: {error}")))?;
    Ok(body.to_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(session: &str, capture: Option<&str>) -> Place {
        Place {
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
