//! Serves files of this machine on loopback, with the same service that a node's agent uses.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flopwatch_api::artifact::{
    BINARY_TYPE, MOST_REPORTS, Output, REPORT, TIMELINE, TIMELINE_TYPE, artifacts_path, report_name,
};
use flopwatch_api::capture::SessionReference;
use flopwatch_artifacts::{
    Access, ArtifactMetrics, ArtifactService, CaptureId, ConversionLimits, Publication, SourceFile, Store, StoreError,
    StoreOptions,
};
use flopwatch_attach::nsys::HostTools;
use flopwatch_attach::sandbox::product::{self, ProductError};
use flopwatch_http::{ServeError, Server, ServerLimits};
use flopwatch_pipeline::artifact_file::{artifact_of, file_of, served};
use flopwatch_pipeline::derived::DerivedArtifacts;
use flopwatch_pipeline::sentence::names;
use flopwatch_pipeline::steps::{Limits, Steps};
use flopwatch_pipeline::tools;
use jiff::Timestamp;
use prometheus::Registry;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::upload::{UploadLimits, Uploads};

/// Namespace under which local files are served.
const NAMESPACE: &str = "local";

/// Why files cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// File or folder that cannot be read.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A folder holds nothing to serve.
    #[error("{0} holds none of {served}", served = served_names())]
    Nothing(PathBuf),
    /// A file of the folder is not what it looks like.
    #[error(transparent)]
    Product(#[from] ProductError),
    /// The store refused the files.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The service cannot listen.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Metrics could not be registered.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
}

/// A service over copies of the files in a temporary folder, which goes with it.
#[derive(Debug)]
pub struct Service {
    server: Server,
    path: String,
    names: Vec<String>,
    _folder: TempDir,
}

impl Service {
    /// Serves a result's folder or one file of it under `name` on a loopback address; without one, the viewer alone. Other captures that are dropped
    /// onto the viewer are converted, raw captures of Nsight Systems with `tools`.
    pub async fn new(
        source: Option<&Path>,
        name: &str,
        address: SocketAddr,
        tools: Result<HostTools, tools::Error>,
    ) -> Result<Self, Error> {
        let files = source.map(files).transpose()?.unwrap_or_default();
        let io = |source| Error::Io {
            path: std::env::temp_dir(),
            source,
        };
        let folder = tempfile::Builder::new()
            .prefix(".flopwatch-serve-")
            .tempdir()
            .map_err(io)?;
        let metrics = ArtifactMetrics::register(&Registry::new())?;
        // The results are the user's own; no more than what they take is kept free for others.
        let options = StoreOptions {
            free_bytes_floor: 0,
            ..StoreOptions::default()
        };
        let own = std::env::current_exe().map_err(io)?;
        let steps = Steps::new(own, None, Limits::default());
        let forms = DerivedArtifacts::open(steps.clone(), steps, folder.path().join("conversions"))
            .await
            .map_err(io)?;
        let store = Store::open(folder.path(), options, metrics.clone()).await?;
        let publication = Publication {
            capture: CaptureId {
                namespace: NAMESPACE.to_owned(),
                name: name.to_owned(),
                uid: name.to_owned(),
            },
            session: SessionReference {
                name: name.to_owned(),
                id: "00000000".to_owned(),
            },
            created: Timestamp::now(),
            captured: Vec::new(),
        };
        let manifest = store.publish(publication, &files).await?;
        let incoming = folder.path().join("dropped");
        tokio::fs::create_dir(&incoming).await.map_err(io)?;
        let store = Arc::new(store);
        let uploads = Uploads::new(Arc::clone(&store), incoming, NAMESPACE, tools, UploadLimits::default());
        let (access, limits) = (Access::LoopbackOnly, ConversionLimits::default());
        let service = ArtifactService::converting(store, access, metrics, Arc::new(forms), limits, None);
        let server = Server::bind_plain_loopback(&service, address, ServerLimits::default())?;
        let server = server.merge(flopwatch_viewer::router()).merge(uploads.router());
        let names = manifest.artifacts.into_iter().map(|artifact| artifact.name).collect();
        Ok(Self {
            server,
            path: artifacts_path(NAMESPACE, name),
            names,
            _folder: folder,
        })
    }

    /// Where the list of the files is.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.server.local_addr(), self.path)
    }

    /// Where the viewer shows the timeline, or waits for files when none is served; nothing when this program was built without the viewer.
    pub fn viewer_url(&self) -> Option<String> {
        let timeline = self.names.iter().find(|name| *name == TIMELINE);
        let file = timeline.map(|name| format!("?file={}/{name}", self.path.trim_start_matches('/')));
        let page = format!("http://{}/{}", self.server.local_addr(), file.unwrap_or_default());
        flopwatch_viewer::is_built().then_some(page)
    }

    /// Where each file is.
    pub fn file_urls(&self) -> Vec<String> {
        let url = self.url();
        self.names.iter().map(|name| format!("{url}/{name}")).collect()
    }

    /// Serves until it is told to stop.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        Ok(self.server.run(stop).await?)
    }
}

fn served_names() -> String {
    names(served().map(|(name, ..)| name))
}

fn files(source: &Path) -> Result<Vec<SourceFile>, Error> {
    let io = |error| Error::Io {
        path: source.to_owned(),
        source: error,
    };
    let metadata = std::fs::metadata(source).map_err(io)?;
    if !metadata.is_dir() {
        if !metadata.is_file() {
            return Err(Error::Nothing(source.to_owned()));
        }
        // A timeline under a name of the user's own is served under its usual one.
        let named = source.file_name().and_then(|name| artifact_of(name.to_str()?));
        let artifact = named.unwrap_or_else(|| match source.extension().and_then(|extension| extension.to_str()) {
            Some("json") => ("summary.json", Output::Summary, "application/json"),
            Some("nsys-rep") => (REPORT, Output::Raw, BINARY_TYPE),
            _ => (TIMELINE, Output::Timeline, TIMELINE_TYPE),
        });
        return Ok(vec![file_of(artifact, File::open(source).map_err(io)?)]);
    }
    // Whoever made the folder need not be whoever serves it: a file that was not named is no way to another.
    let mut files = Vec::new();
    let further: Vec<String> = (2..=MOST_REPORTS).map(report_name).collect();
    let further = further.iter().map(|name| (name.as_str(), Output::Raw, BINARY_TYPE));
    for artifact in served().chain(further) {
        match product::open(source, Path::new(artifact.0), None) {
            Ok(content) => files.push(file_of(artifact, content)),
            Err(ProductError::NotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if files.is_empty() {
        Err(Error::Nothing(source.to_owned()))
    } else {
        Ok(files)
    }
}
