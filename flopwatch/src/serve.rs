//! `flopwatch serve` and `open`, and the end of `flopwatch record`: captures of this machine and
//! the viewer, on a loopback address, with the service for artifacts that a node's agent uses.

mod input;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flopwatch_artifacts::{
    Access, ArtifactMetrics, ArtifactService, ConversionLimits, Store, StoreError, StoreOptions,
};
use flopwatch_attach::sandbox::product::ProductError;
use flopwatch_http::{OwnFolder, Purpose, ServeError, Server, ServerLimits};
use flopwatch_pipeline::artifact_file::served;
use flopwatch_pipeline::derived::DerivedArtifacts;
use flopwatch_pipeline::failure::chain;
use flopwatch_pipeline::sentence::one_of;
use flopwatch_pipeline::steps::{ChildRunner, Limits};
use prometheus::Registry;
use tokio_util::sync::CancellationToken;

use self::input::{Artifacts, Input, MAX_CAPTURES, MAX_ENTRIES};
use crate::arguments::SourceArguments;
use crate::captures::{self, Captures, HeldCapture, Origin};
use crate::conversion;
use crate::progress::Progress;
use crate::upload::{UploadLimits, Uploads};

/// Why captures cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder cannot be read or made.
    #[error("{path}: {source}")]
    Io {
        /// File or folder that the error is about.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A folder holds nothing that can be served.
    #[error(
        "{0}: holds no capture: no file in it begins as one that is read, and none is called {served}",
        served = served_names()
    )]
    Nothing(PathBuf),
    /// No file of a folder could be read.
    #[error("none of the captures could be read")]
    NoneRead,
    /// A path is neither a file nor a folder.
    #[error("{0}: is neither a file nor a folder")]
    Kind(PathBuf),
    /// More captures were named than one service holds.
    #[error("{0} captures are more than the {MAX_CAPTURES} that are served at once: name fewer of them")]
    TooMany(usize),
    /// A folder has too many entries to look for captures among them.
    #[error("{0}: has more than {MAX_ENTRIES} entries: name the captures in it")]
    TooManyEntries(PathBuf),
    /// A file of the folder is a link, a pipe or another thing that is not opened.
    #[error(transparent)]
    Product(#[from] ProductError),
    /// A capture cannot be read or converted.
    #[error(transparent)]
    Conversion(#[from] conversion::Error),
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

impl Error {
    fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}

/// A service over copies of the captures, in a temporary folder that is removed with the service,
/// or by the next one where this program is killed.
#[derive(Debug)]
pub struct Service {
    server: Server,
    /// What the command line named, in its order.
    captures: Vec<HeldCapture>,
    _folder: OwnFolder,
}

impl Service {
    /// Serves what is at `paths` on a loopback address, each capture once it was read as `reading`
    /// says; without paths, the viewer alone. What cannot be read is refused before the service
    /// listens. Files that are dropped onto the viewer are read in the same way. `stop` ends the
    /// reading early.
    pub async fn new(
        paths: &[PathBuf],
        address: SocketAddr,
        reading: &SourceArguments,
        stop: &CancellationToken,
    ) -> Result<Self, Error> {
        let inputs = Input::all_of(paths)?;
        let temporary = std::env::temp_dir();
        let folder = OwnFolder::make(&temporary, Purpose::Serve).map_err(Error::io(&temporary))?;
        let metrics = ArtifactMetrics::register(&Registry::new())?;
        // The user may fill the disk with results of their own: no free bytes are kept for others.
        let options = StoreOptions {
            free_bytes_floor: 0,
            ..StoreOptions::default()
        };
        let program = std::env::current_exe().map_err(Error::io(Path::new("/proc/self/exe")))?;
        let children = ChildRunner::new(program, None, Limits::default());
        let derived = DerivedArtifacts::open(children.clone(), children, folder.path().join("conversions"))
            .await
            .map_err(Error::io(folder.path()))?;
        let store = Arc::new(Store::open(folder.path(), options, metrics.clone()).await?);
        let captures = Arc::new(Captures::new(Arc::clone(&store)));
        let mut progress = Progress::new(reading.quiet);
        // The steps of each capture are not told beside which capture it is.
        let reading = SourceArguments {
            quiet: true,
            ..reading.clone()
        };
        let held = publish(inputs, &captures, &reading, folder.path(), &mut progress, stop).await?;
        drop(progress);
        let uploads_folder = folder.path().join("dropped");
        tokio::fs::create_dir(&uploads_folder)
            .await
            .map_err(Error::io(&uploads_folder))?;
        let uploads = Uploads::new(Arc::clone(&captures), uploads_folder, reading, UploadLimits::default());
        let (access, limits) = (Access::LoopbackOnly, ConversionLimits::default());
        let service = ArtifactService::converting(store, access, metrics, Arc::new(derived), limits, None);
        let server = Server::bind_plain_loopback(&service, address, ServerLimits::default())?;
        let server = server
            .merge(flopwatch_viewer::router())
            .merge(captures.router())
            .merge(uploads.router());
        Ok(Self {
            server,
            captures: held,
            _folder: folder,
        })
    }

    /// URL of the list of the captures.
    pub fn list_url(&self) -> String {
        self.url_of(captures::PATH)
    }

    /// URL at which the viewer shows the one capture, lists several, or waits for files where there
    /// is none; `None` where this program was built without the viewer.
    pub fn viewer_url(&self) -> Option<String> {
        let page = match self.captures.as_slice() {
            [only] => format!("/?file={}", only.path.trim_start_matches('/')),
            _ => "/".to_owned(),
        };
        flopwatch_viewer::is_built().then(|| self.url_of(&page))
    }

    /// URLs of the captures' lists of artifacts, each with those of its artifacts behind it.
    pub fn file_urls(&self) -> Vec<String> {
        let urls = self.captures.iter().flat_map(|capture| {
            let list = self.url_of(&capture.list_path);
            let files = capture.artifacts.iter().map(|name| format!("{list}/{name}"));
            let files: Vec<String> = files.collect();
            std::iter::once(list).chain(files)
        });
        urls.collect()
    }

    fn url_of(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.local_addr())
    }

    /// Serves until `stop` is cancelled.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        Ok(self.server.run(stop).await?)
    }
}

/// Reads the inputs in their order and publishes each, with their folders in `folder`.
async fn publish(
    inputs: Vec<Input>,
    captures: &Captures,
    reading: &SourceArguments,
    folder: &Path,
    progress: &mut Progress,
    stop: &CancellationToken,
) -> Result<Vec<HeldCapture>, Error> {
    let count = inputs.len();
    let mut held = Vec::with_capacity(count);
    for (number, input) in (1_usize..).zip(inputs) {
        let name = input.file_name();
        let place = if count > 1 {
            format!(" ({number} of {count})")
        } else {
            String::new()
        };
        progress.stage(&format!("reading {name}{place}"));
        let may_be_left_out = input.may_be_left_out();
        let work = tempfile::tempdir_in(folder).map_err(Error::io(folder))?;
        match input.read(reading, work.path(), stop).await {
            Ok(Artifacts { files, events, warning }) => {
                if let Some(warning) = warning {
                    progress.tell(&warning);
                }
                held.push(captures.publish(Origin::CommandLine, name, events, &files).await?);
            }
            Err(error) if may_be_left_out && !stop.is_cancelled() => {
                progress.tell(&format!("{name} is left out: {}", chain(&error)));
            }
            Err(error) => return Err(error),
        }
    }
    if held.is_empty() && count > 0 {
        return Err(Error::NoneRead);
    }
    Ok(held)
}

fn served_names() -> String {
    one_of(served().map(|(name, ..)| name))
}
