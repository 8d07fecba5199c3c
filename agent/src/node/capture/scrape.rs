//! Reads a counter that a program publishes for Prometheus.
//!
//! **The door.** The user of a session names the port and the path; the agent is in the node's
//! network. So only a port counts at which a process of the container itself listens, the
//! connection is made from within the pod's network, and of the answer, 4 MiB at most, nothing is
//! told but the counter's value. A reading takes a second at most; after one that took long, the
//! next one waits fifty times as long.

mod exposition;

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use flopwatch_api::overhead::PrometheusSignal;
use flopwatch_attach::listeners::of_process;
use flopwatch_attach::network::{NetworkError, connect};
use flopwatch_attach::process::Procfs;
use flopwatch_nvml::utc_ns;
use flopwatch_overhead::Sample;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty, LengthLimitError, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use exposition::{ExpositionError, value};
use flopwatch_pipeline::failure::chain;

/// Time between the beginnings of two readings.
const READ_INTERVAL: Duration = Duration::from_millis(250);
/// Times that a reading took which pass before the next one: answering takes the program's own
/// time.
const REST_FACTOR: u32 = 50;
/// Longest reading.
const READ_TIMEOUT: Duration = Duration::from_secs(1);
/// Most bytes of an answer.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// Most readings that are kept: ten minutes of them.
const MAX_READINGS: usize = 2_400;

/// Why a counter was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScrapeError {
    /// No process of the container listens at the port.
    #[error("no process of the container listens at port {0}")]
    NobodyListens(i32),
    /// The connection within the pod's network failed.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// What listens there speaks no HTTP, or ended the connection.
    #[error("the connection to port {port} failed")]
    Http {
        /// Port of the container that was connected to.
        port: i32,
        /// What was wrong.
        source: hyper::Error,
    },
    /// The path is none.
    #[error("{path:?} is no path")]
    Path {
        /// As the session has it.
        path: String,
        /// What is wrong with it.
        source: http::Error,
    },
    /// Another status than 200.
    #[error("{path} answered with {status}")]
    Status {
        /// What was asked for.
        path: String,
        /// What came.
        status: StatusCode,
    },
    /// The answer is too long, or was cut off.
    #[error("the answer cannot be read: {0}")]
    Body(String),
    /// No complete answer came in time.
    #[error("there was no answer within {READ_TIMEOUT:?}")]
    Late,
    /// The answer has no such counter.
    #[error(transparent)]
    Exposition(#[from] ExpositionError),
    /// The look at the container ended early.
    #[error("the container's processes cannot be looked at")]
    Look(#[source] std::io::Error),
}

/// A counter that is read again and again until this is dropped.
#[derive(Debug)]
pub(crate) struct Scraper {
    read: Arc<Mutex<ScrapedSamples>>,
    task: AbortHandle,
}

/// What was read.
#[derive(Debug, Default)]
struct ScrapedSamples {
    samples: Vec<Sample>,
    /// Why the last reading failed.
    failure: Option<String>,
}

impl Scraper {
    /// Begins to read a counter of a container.
    pub(crate) fn start(procfs: Procfs, container_id: String, signal: PrometheusSignal) -> Self {
        let read = Arc::new(Mutex::new(ScrapedSamples::default()));
        let kept = Arc::clone(&read);
        let task = tokio::spawn(async move {
            let mut client = Client {
                procfs,
                container_id,
                signal,
                connection: None,
            };
            loop {
                let begin = Instant::now();
                let answered = timeout(READ_TIMEOUT, client.read())
                    .await
                    .unwrap_or(Err(ScrapeError::Late));
                let took = begin.elapsed();
                held(&kept).add(answered);
                sleep(READ_INTERVAL.max(took * REST_FACTOR).saturating_sub(took)).await;
            }
        });
        Self {
            read,
            task: task.abort_handle(),
        }
    }

    /// Readings since a time, oldest first.
    pub(crate) fn since(&self, since_ns: u64) -> Vec<Sample> {
        let read = held(&self.read);
        let from = read.samples.partition_point(|sample| sample.at_ns < since_ns);
        read.samples.get(from..).unwrap_or_default().to_vec()
    }

    /// Why the last reading failed; none where it did not.
    pub(crate) fn failure(&self) -> Option<String> {
        held(&self.read).failure.clone()
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn held(read: &Mutex<ScrapedSamples>) -> MutexGuard<'_, ScrapedSamples> {
    read.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ScrapedSamples {
    fn add(&mut self, answered: Result<Sample, ScrapeError>) {
        match answered {
            Ok(sample) if self.samples.len() < MAX_READINGS => {
                self.samples.push(sample);
                self.failure = None;
            }
            Ok(_) => {}
            Err(error) => self.failure = Some(chain(&error)),
        }
    }
}

/// Reads with one connection after the other.
struct Client {
    procfs: Procfs,
    container_id: String,
    signal: PrometheusSignal,
    connection: Option<SendRequest<Empty<Bytes>>>,
}

impl Client {
    async fn read(&mut self) -> Result<Sample, ScrapeError> {
        let port = self.signal.port;
        let mut connection = match self.connection.take() {
            Some(connection) if connection.is_ready() => connection,
            _ => self.connect().await?,
        };
        let path = self.signal.path.clone();
        let request = Request::get(&path)
            .header(http::header::HOST, format!("localhost:{port}"))
            .header(http::header::ACCEPT, "text/plain;version=0.0.4")
            .body(Empty::new())
            .map_err(|source| ScrapeError::Path {
                path: path.clone(),
                source,
            })?;
        let begin = utc_ns();
        let answer = connection.send_request(request).await;
        let answer = answer.map_err(|source| ScrapeError::Http { port, source })?;
        // The counter is told as of some time between these two.
        let at_ns = begin.midpoint(utc_ns());
        if answer.status() != StatusCode::OK {
            let status = answer.status();
            return Err(ScrapeError::Status { path, status });
        }
        let body = Limited::new(answer.into_body(), MAX_ANSWER_BYTES)
            .collect()
            .await
            .map_err(|error| {
                let long = error.downcast_ref::<LengthLimitError>().is_some();
                ScrapeError::Body(if long {
                    format!("it has more than {MAX_ANSWER_BYTES} bytes")
                } else {
                    error.to_string()
                })
            })?;
        let count = value(&body.to_bytes(), &self.signal)?;
        self.connection = Some(connection);
        Ok(Sample {
            at_ns,
            count,
            busy_ns: None,
            last_ns: None,
        })
    }

    /// Connects from within the pod's network to the container's own process.
    async fn connect(&self) -> Result<SendRequest<Empty<Bytes>>, ScrapeError> {
        let (procfs, id, port) = (self.procfs.clone(), self.container_id.clone(), self.signal.port);
        let found = tokio::task::spawn_blocking(move || {
            let processes = procfs
                .of_container(&id)
                .map_err(|error| ScrapeError::Look(std::io::Error::other(error)))?;
            let sockets = processes.into_iter().flat_map(|process| of_process(&procfs, process));
            let mut own = sockets.filter(|listener| i32::from(listener.address.port()) == port);
            let listener = own.next().ok_or(ScrapeError::NobodyListens(port))?;
            Ok::<_, ScrapeError>(connect(&procfs, listener.process, listener.near(), READ_TIMEOUT)?)
        });
        let inspect = |error| ScrapeError::Look(std::io::Error::other(error));
        let stream = found.await.map_err(inspect)??;
        stream.set_nonblocking(true).map_err(ScrapeError::Look)?;
        let stream = tokio::net::TcpStream::from_std(stream).map_err(ScrapeError::Look)?;
        let shaken = handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(|source| ScrapeError::Http { port, source })?;
        tokio::spawn(ended(connection));
        Ok(sender)
    }
}

/// Drives a connection to its end, of which the readings hear by themselves.
async fn ended(connection: impl Future<Output = Result<(), hyper::Error>>) {
    if let Err(error) = connection.await {
        tracing::debug!(%error, "the connection to a counter ended");
    }
}

#[cfg(test)]
mod tests;
