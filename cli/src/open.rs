//! Shows a session's timeline: fetches it into a temporary folder and serves it with the viewer on loopback, until Ctrl-C.

use std::io::SeekFrom;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::X_CONTENT_TYPE_OPTIONS;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::get;
use flopwatch_api::artifact::{Artifact, Output, artifacts_path};
use flopwatch_http::problem::{self, Details};
use flopwatch_http::{ServeError, Server, ServerLimits, Service, answer, is_for_this_machine};
use kube::ResourceExt;
use prometheus::IntCounter;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio_util::io::ReaderStream;
use tokio_util::sync::CancellationToken;

use crate::arguments::OpenArguments;
use crate::cluster::Cluster;
use crate::error::Error;
use crate::fetch::{Choice, FetchError, Wanted, fetch, plan, session_with_captures};
use crate::follow::interrupted;
use crate::gateway::Gateway;
use crate::print::{bytes, say};

/// The artifact that the viewer shows.
const TIMELINE: &str = "timeline.h5";

/// Why a timeline cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The temporary folder cannot be made.
    #[error("{path}: {source}")]
    Folder {
        /// The folder in which it was to be made.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// It cannot be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Nothing can count what it refuses.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
}

/// Runs `open`: fetches the timeline and serves it until Ctrl-C.
pub async fn run(cluster: &Cluster, arguments: &OpenArguments) -> Result<(), Error> {
    let (session, captures) = session_with_captures(cluster, &arguments.session.0).await?;
    if arguments.capture.is_none() && captures.len() > 1 {
        let names: Vec<String> = captures.iter().map(ResourceExt::name_any).collect();
        return Err(Error::Fetch(FetchError::SeveralCaptures {
            session: session.name_any(),
            existing: names.join(", "),
        }));
    }
    let folder = tempfile::Builder::new()
        .prefix("flopwatch-open-")
        .tempdir()
        .map_err(|source| OpenError::Folder {
            path: std::env::temp_dir(),
            source,
        })?;
    let fetched = folder.path().join("fetched");
    let timeline = [TIMELINE.to_owned()];
    let choice = Choice {
        capture: arguments.capture.as_deref(),
        artifacts: &timeline,
        output: Some(&fetched),
    };
    // The folder is there before the file, so that the file goes into it.
    let wanted = plan(&session, &captures, &choice, |_| true)?;
    let gateway = Gateway::find(cluster, &arguments.gateway).await?;
    for wanted in &wanted {
        tokio::select! {
            result = fetch(&gateway, wanted, true) => drop(result?),
            () = interrupted() => return Err(Error::Cancelled),
        }
        let server = serve(&cluster.namespace, wanted, arguments.port)?;
        say(&server.words(wanted))?;
        let stop = CancellationToken::new();
        let running = tokio::spawn(server.server.run(stop.clone()));
        interrupted().await;
        stop.cancel();
        if let Ok(ended) = running.await {
            ended.map_err(OpenError::from)?;
        }
    }
    Ok(())
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
            "This program was built without the viewer (cargo xtask web builds it).\n".to_owned()
        };
        format!(
            "{viewer}Serving until Ctrl-C:\n  http://{address}{path} ({})\n",
            bytes(wanted.bytes)
        )
    }
}

/// Serves a fetched file on loopback, where a node's agent serves its own; requests of other hosts' pages are refused there.
fn serve(namespace: &str, wanted: &Wanted, port: u16) -> Result<Served, OpenError> {
    let path = format!("{}/{TIMELINE}", artifacts_path(namespace, &wanted.capture));
    let file = Fetched {
        path: path.clone(),
        refused: IntCounter::new("refused_connections", "Connections beyond the limit")?,
        content: Arc::new(Content {
            at: wanted.to.clone(),
            artifact: Artifact {
                name: TIMELINE.to_owned(),
                type_: Output::Timeline,
                bytes: i64::try_from(wanted.bytes).unwrap_or(i64::MAX),
                sha256: wanted.sha256.clone(),
                media_type: "application/x-hdf5".to_owned(),
                sensitive: false,
            },
        }),
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let server = Server::bind_plain_loopback(&file, address, ServerLimits::default())?;
    Ok(Served {
        server: server.merge(flopwatch_viewer::router()),
        path,
    })
}

/// A fetched file as a service.
struct Fetched {
    path: String,
    refused: IntCounter,
    content: Arc<Content>,
}

/// Where the file is, and what it was published as.
struct Content {
    at: PathBuf,
    artifact: Artifact,
}

impl Service for Fetched {
    fn router(&self) -> Router {
        Router::new()
            .route(&self.path, get(content))
            .with_state(Arc::clone(&self.content))
    }

    fn is_open(&self) -> bool {
        true
    }

    fn refused_connections(&self) -> IntCounter {
        self.refused.clone()
    }
}

async fn content(State(content): State<Arc<Content>>, headers: HeaderMap) -> Response {
    let refuse =
        |status, reason, detail: &str| problem::respond(status, &Details::new(status, reason, detail.to_owned()));
    if !is_for_this_machine(&headers) {
        let words = "This service answers requests for localhost alone.";
        return refuse(StatusCode::MISDIRECTED_REQUEST, "ForeignHost", words);
    }
    let head = match answer(&headers, &content.artifact, TIMELINE) {
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
        let wanted = Wanted {
            session: "0badcafe".into(),
            capture: "first-1".into(),
            name: TIMELINE.into(),
            bytes: 7,
            sha256: String::new(),
            sensitive: false,
            to: file,
        };
        let served = serve("team", &wanted, 0).unwrap();
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
            let request = Request::get(path).header("host", host).header("range", "bytes=3-");
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
        assert_eq!(get(&own, "/").await.0, StatusCode::OK, "the viewer's page");
        assert!(
            get("evil.example", &path).await.0.is_client_error(),
            "another host's name"
        );
        stop.cancel();
        running.await.unwrap().unwrap();
    }
}
