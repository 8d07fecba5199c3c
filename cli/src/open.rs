//! Shows a session's timeline: fetches it into a temporary folder and serves it with the viewer on loopback, until Ctrl-C.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flopwatch_api::artifact::Output;
use flopwatch_api::capture::SessionReference;
use flopwatch_artifacts::{
    Access, ArtifactMetrics, ArtifactService, CaptureId, Publication, ServeError, Server, ServerLimits, SourceFile,
    Store, StoreError, StoreOptions, artifacts_path,
};
use jiff::Timestamp;
use kube::ResourceExt;
use prometheus::Registry;
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
    /// The file cannot be put where it is served from.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It cannot be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Metrics of the service could not be registered.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
}

/// The subcommand.
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
    let session = SessionReference {
        name: session.name_any(),
        id: session.status.and_then(|status| status.id).unwrap_or_default(),
    };
    for wanted in &wanted {
        tokio::select! {
            result = fetch(&gateway, wanted, true) => drop(result?),
            () = interrupted() => return Err(Error::Cancelled),
        }
        let server = serve(folder.path(), &cluster.namespace, &session, wanted, arguments.port).await?;
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

/// Serves a fetched file on loopback, as a node's agent serves its own; requests of other hosts' pages are refused there.
async fn serve(
    folder: &Path,
    namespace: &str,
    session: &SessionReference,
    wanted: &Wanted,
    port: u16,
) -> Result<Served, OpenError> {
    let metrics = ArtifactMetrics::register(&Registry::new())?;
    // The file is the user's own; no more than what it takes is kept free for others.
    let options = StoreOptions {
        free_bytes_floor: 0,
        ..StoreOptions::default()
    };
    let store = Store::open(&folder.join("store"), options, metrics.clone()).await?;
    let publication = Publication {
        capture: CaptureId {
            namespace: namespace.to_owned(),
            name: wanted.capture.clone(),
            uid: wanted.capture.clone(),
        },
        session: session.clone(),
        created: Timestamp::now(),
    };
    let file = SourceFile {
        name: TIMELINE.to_owned(),
        output: Output::Timeline,
        media_type: "application/x-hdf5".to_owned(),
        content: Arc::new(std::fs::File::open(&wanted.to).map_err(|source| OpenError::Folder {
            path: wanted.to.clone(),
            source,
        })?),
    };
    store.publish(publication, &[file]).await?;
    let service = ArtifactService::new(Arc::new(store), Access::LoopbackOnly, metrics);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let server = Server::bind_plain_loopback(&service, address, ServerLimits::default())?;
    Ok(Served {
        server: server.merge(flopwatch_viewer::router()),
        path: format!("{}/{TIMELINE}", artifacts_path(namespace, &wanted.capture)),
    })
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
        let session = SessionReference {
            name: "first".into(),
            id: "0badcafe".into(),
        };
        let served = serve(folder.path(), "team", &session, &wanted, 0).await.unwrap();
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
