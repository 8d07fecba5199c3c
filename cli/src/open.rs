//! Shows a session's timeline: fetches it into a temporary folder and serves it with the viewer on
//! loopback, until Ctrl-C. Results of analyses, of which the viewer's first page is made, come from
//! the gateway, with the user's token.

mod analyses;

use std::io::SeekFrom;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::X_CONTENT_TYPE_OPTIONS;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use flopwatch_api::artifact::{Artifact, Output, PRELUDE, TIMELINE, TIMELINE_TYPE, artifacts_path};
use flopwatch_api::capture::Capture;
use flopwatch_http::problem::{self, Details};
use flopwatch_http::{OwnFolder, Purpose, ServeError, Server, ServerLimits, Service, answer, is_for_this_machine};
use kube::ResourceExt;
use prometheus::IntCounter;
use serde_json::json;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio_util::io::ReaderStream;
use tokio_util::sync::CancellationToken;

use self::analyses::Analyses;
use crate::arguments::OpenArguments;
use crate::cluster::Cluster;
use crate::error::Error;
use crate::fetch::{Choice, Wanted, fetch_shown, one, plan, session_with_captures};
use crate::follow::interrupted;
use crate::gateway::Gateway;
use crate::print::{bytes, say};

/// Why a timeline cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The temporary folder cannot be made.
    #[error("{path}: {source}")]
    Folder {
        /// The folder in which it was to be made.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The timeline cannot be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Nothing can count what it refuses.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
}

/// Runs `open`: fetches the timeline and serves it until Ctrl-C.
pub async fn run(cluster: &Cluster, arguments: &OpenArguments) -> Result<(), Error> {
    let (session, captures) = session_with_captures(cluster, &arguments.session.0).await?;
    if captures.len() > 1 {
        one(&session, &captures, arguments.capture.as_deref())?;
    }
    let path = std::env::temp_dir();
    let folder = match OwnFolder::make(&path, Purpose::Open) {
        Ok(folder) => folder,
        Err(source) => return Err(OpenError::Folder { path, source }.into()),
    };
    let fetched = folder.path().join("fetched");
    let artifacts = shown(&captures, arguments.capture.as_deref());
    let choice = Choice {
        capture: arguments.capture.as_deref(),
        artifacts: &artifacts,
        output: Some(&fetched),
    };
    // The folder is there before the file, so that the file goes into it.
    let wanted = plan(&session, &captures, &choice, |_| true)?;
    let gateway = Gateway::find(cluster, &arguments.gateway).await?;
    for wanted in &wanted {
        tokio::select! {
            result = fetch_shown(&gateway, wanted, true) => drop(result?),
            () = interrupted() => return Err(Error::Cancelled),
        }
    }
    let Some(timeline) = wanted.iter().find(|wanted| wanted.name == TIMELINE) else {
        return Ok(());
    };
    let analyses = Analyses::of(gateway, timeline);
    let server = serve(&cluster.namespace, &wanted, Some(analyses), arguments.port)?;
    say(&server.words(timeline))?;
    let stop = CancellationToken::new();
    let running = tokio::spawn(server.server.run(stop.clone()));
    interrupted().await;
    stop.cancel();
    if let Ok(ended) = running.await {
        ended.map_err(OpenError::from)?;
    }
    Ok(())
}

/// The artifacts that the viewer shows: the timeline, and what was before it where the capture has
/// that.
fn shown(captures: &[Capture], name: Option<&str>) -> Vec<String> {
    let chosen = captures
        .iter()
        .find(|capture| name.is_none_or(|name| capture.name_any() == name));
    let published = chosen.and_then(|capture| Some(&capture.status.as_ref()?.artifacts));
    let has_prelude = published.is_some_and(|artifacts| artifacts.iter().any(|artifact| artifact.name == PRELUDE));
    let names = std::iter::once(TIMELINE).chain(has_prelude.then_some(PRELUDE));
    names.map(str::to_owned).collect()
}

/// A timeline that is served.
struct Served {
    server: Server,
    path: String,
}

impl Served {
    fn words(&self, wanted: &Wanted) -> String {
        let (address, path) = (self.server.local_addr(), &self.path);
        let file = path.trim_start_matches('/');
        let viewer = if flopwatch_viewer::is_built() {
            format!("Open in a browser:\n  http://{address}/?file={file}\n")
        } else {
            "This program was built without the viewer: run `cargo xtask web`, then build the program again.\n"
                .to_owned()
        };
        format!(
            "{viewer}Serving until Ctrl-C:\n  http://{address}{path} ({})\n",
            bytes(wanted.bytes)
        )
    }
}

/// Serves the fetched files of a capture on loopback, where a node's agent serves its own; requests
/// of other hosts' pages are refused there.
fn serve(namespace: &str, wanted: &[Wanted], analyses: Option<Analyses>, port: u16) -> Result<Served, OpenError> {
    let capture = wanted.first().map_or("", |wanted| wanted.capture.as_str());
    let list = artifacts_path(namespace, capture);
    let contents = wanted.iter().map(|wanted| Content {
        at: wanted.to.clone(),
        artifact: Artifact {
            name: wanted.name.clone(),
            type_: Output::Timeline,
            bytes: i64::try_from(wanted.bytes).unwrap_or(i64::MAX),
            sha256: wanted.sha256.clone(),
            media_type: TIMELINE_TYPE.to_owned(),
            sensitive: false,
        },
    });
    let files = Fetched {
        contents: contents.map(Arc::new).collect(),
        refused: IntCounter::new("refused_connections", "Connections beyond the limit")?,
        list: list.clone(),
        analyses: analyses.map(Arc::new),
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let server = Server::bind_plain_loopback(&files, address, ServerLimits::default())?;
    Ok(Served {
        server: server.merge(flopwatch_viewer::router()),
        path: format!("{list}/{TIMELINE}"),
    })
}

/// Fetched files of a capture as a service.
struct Fetched {
    /// Path of their list; each is under it.
    list: String,
    refused: IntCounter,
    contents: Vec<Arc<Content>>,
    /// Where results of analyses of it come from.
    analyses: Option<Arc<Analyses>>,
}

/// Where a file is, and what it was published as.
struct Content {
    at: PathBuf,
    artifact: Artifact,
}

impl Service for Fetched {
    fn router(&self) -> Router {
        let artifacts: Vec<_> = self.contents.iter().map(|content| content.artifact.clone()).collect();
        let list = json!({ "artifacts": artifacts });
        let listed = move |headers: HeaderMap| {
            let refused = foreign(&headers);
            let list = list.clone();
            async move { refused.unwrap_or_else(|| Json(list).into_response()) }
        };
        let files = self.contents.iter().map(|content| {
            let path = format!("{}/{}", self.list, content.artifact.name);
            Router::new()
                .route(&path, get(self::content))
                .with_state(Arc::clone(content))
        });
        let files = files.fold(Router::new().route(&self.list, get(listed)), Router::merge);
        match (&self.analyses, self.list.strip_suffix("/artifacts")) {
            (Some(source), Some(capture)) => files.merge(analyses::router(capture, Arc::clone(source))),
            _ => files,
        }
    }

    fn is_open(&self) -> bool {
        true
    }

    fn refused_connections(&self) -> IntCounter {
        self.refused.clone()
    }
}

fn refuse(status: StatusCode, reason: &'static str, detail: &str) -> Response {
    problem::respond(status, &Details::new(status, reason, detail.to_owned()))
}

/// The answer to a request of another host's page.
fn foreign(headers: &HeaderMap) -> Option<Response> {
    let words = "This service answers requests for localhost alone.";
    (!is_for_this_machine(headers)).then(|| refuse(StatusCode::MISDIRECTED_REQUEST, "ForeignHost", words))
}

async fn content(State(content): State<Arc<Content>>, headers: HeaderMap) -> Response {
    if let Some(refused) = foreign(&headers) {
        return refused;
    }
    let head = match answer(&headers, &content.artifact, &content.artifact.name) {
        Ok(head) => head,
        Err(unsatisfiable) => {
            let words = "The range holds no byte of the file.";
            let mut response = refuse(StatusCode::RANGE_NOT_SATISFIABLE, "Range", words);
            problem::say_size(&mut response, unsatisfiable);
            return response;
        }
    };
    let mut response = Response::new(Body::empty());
    if let Some(range) = head.range {
        let opened = async {
            let mut file = File::open(&content.at).await?;
            file.seek(SeekFrom::Start(range.start)).await?;
            Ok::<_, std::io::Error>(file.take(range.end.saturating_sub(range.start)))
        };
        match opened.await {
            Ok(part) => *response.body_mut() = Body::from_stream(ReaderStream::new(part)),
            Err(error) => {
                let words = format!("The fetched file cannot be read: {error}.");
                return refuse(StatusCode::INTERNAL_SERVER_ERROR, "File", &words);
            }
        }
    }
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    response
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod crate_tests {
    use http::{Request, StatusCode};
    use http_body_util::{BodyExt as _, Empty};
    use hyper_util::rt::TokioIo;

    use super::*;

    #[tokio::test]
    async fn a_fetched_timeline_is_served_where_the_viewer_looks_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("timeline.h5");
        std::fs::write(&file, b"content").unwrap();
        let wanted = |name: &str| Wanted {
            session: "0badcafe".into(),
            capture: "first-1".into(),
            name: name.into(),
            bytes: 7,
            sha256: String::new(),
            sensitive: false,
            to: file.clone(),
        };
        let (wanted, prelude) = (wanted(TIMELINE), wanted(PRELUDE));
        let served = serve("team", &[wanted.clone(), prelude], None, 0).unwrap();
        let (address, path) = (served.server.local_addr(), served.path.clone());
        let words = served.words(&wanted);
        assert!(words.contains(&format!("http://{address}{path}")), "{words}");
        let stop = CancellationToken::new();
        let running = tokio::spawn(served.server.run(stop.clone()));

        let get = async |host: &str, path: &str| {
            let stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
                .await
                .unwrap();
            tokio::spawn(connection);
            let mut request = Request::get(path).header("host", host);
            if path.contains(".h5") {
                request = request.header("range", "bytes=3-");
            }
            let answer = sender
                .send_request(request.body(Empty::<bytes::Bytes>::new()).unwrap())
                .await
                .unwrap();
            let status = answer.status();
            (status, answer.into_body().collect().await.unwrap().to_bytes())
        };
        let own = address.to_string();
        let (status, body) = get(&own, &path).await;
        assert_eq!(
            (status, body.as_ref()),
            (StatusCode::PARTIAL_CONTENT, b"tent".as_slice())
        );
        let list = path.strip_suffix("/timeline.h5").unwrap();
        let (status, listed) = get(&own, list).await;
        let listed: serde_json::Value = serde_json::from_slice(&listed).unwrap();
        assert_eq!(
            (status, &listed["artifacts"][1]["name"]),
            (StatusCode::OK, &json!(PRELUDE))
        );
        assert_eq!(
            get(&own, &format!("{list}/{PRELUDE}")).await.0,
            StatusCode::PARTIAL_CONTENT
        );
        assert!(get("evil.example", list).await.0.is_client_error());
        assert_eq!(get(&own, "/").await.0, StatusCode::OK, "the viewer's page");
        assert!(
            get("evil.example", &path).await.0.is_client_error(),
            "another host's name"
        );
        stop.cancel();
        running.await.unwrap().unwrap();
    }
}
