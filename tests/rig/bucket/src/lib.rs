//! A server of S3 for tests: it checks signatures, keeps objects in a folder, and can be stopped,
//! started again, made to fail and tampered with.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a rig of tests fails by a panic"
)]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::header::{AUTHORIZATION, ETAG};
use http::{HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, HttpResponse};
use s3s_fs::FileSystem;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Access key that the server knows.
pub const ACCESS_KEY: &str = "rig-access-key";
/// The secret of that key.
pub const SECRET_KEY: &str = "rig-secret-key";
/// Access key that may write and do nothing else: `PutObject` and `AbortMultipartUpload`, as a
/// policy of the bucket gives it to nodes.
pub const WRITER_KEY: &str = "rig-writer-key";
/// The secret of that key.
pub const WRITER_SECRET: &str = "rig-writer-secret";
/// Name of the bucket that it has at the start.
pub const BUCKET: &str = "profiles";

/// A server of S3 over a folder.
#[derive(Debug)]
pub struct S3Server {
    address: SocketAddr,
    folder: TempDir,
    counts: Arc<Counts>,
    running: CancellationToken,
}

#[derive(Debug)]
struct Counts {
    /// The folder of buckets.
    root: PathBuf,
    /// Requests that are still answered; negative: all.
    left: AtomicI64,
    /// Requests that bring content.
    writes: AtomicU64,
}

impl S3Server {
    /// Starts it on loopback, with the bucket and nothing in it.
    pub async fn start() -> Self {
        Self::over(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    /// Starts it on the address of `listener`, with the bucket and nothing in it.
    pub fn over(listener: TcpListener) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(BUCKET)).unwrap();
        let root = folder.path().to_owned();
        let mut server = Self {
            address: listener.local_addr().unwrap(),
            folder,
            counts: Arc::new(Counts {
                root,
                left: AtomicI64::new(-1),
                writes: AtomicU64::new(0),
            }),
            running: CancellationToken::new(),
        };
        server.serve(listener);
        server
    }

    /// URL of the server.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What the environment of a client holds that may do everything.
    pub fn credentials(name: &str) -> Option<String> {
        match name {
            "AWS_ACCESS_KEY_ID" => Some(ACCESS_KEY.to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some(SECRET_KEY.to_owned()),
            _ => None,
        }
    }

    /// What the environment of a client holds that may only write.
    pub fn writer_credentials(name: &str) -> Option<String> {
        match name {
            "AWS_ACCESS_KEY_ID" => Some(WRITER_KEY.to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some(WRITER_SECRET.to_owned()),
            _ => None,
        }
    }

    /// Closes its port and every connection.
    pub fn stop(&self) {
        self.running.cancel();
    }

    /// Takes connections at the same address, and answers none, until what it gives is dropped.
    pub async fn silence(&self) -> TcpListener {
        self.stop();
        self.listen().await
    }

    /// Serves again at the same address.
    pub async fn start_again(&mut self) {
        let listener = self.listen().await;
        self.serve(listener);
    }

    /// Listens at its address, once whoever did so before has let go of it.
    async fn listen(&self) -> TcpListener {
        let begin = Instant::now();
        loop {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_reuseaddr(true).unwrap();
            match socket.bind(self.address).and_then(|()| socket.listen(64)) {
                Ok(listener) => return listener,
                Err(error) => assert!(begin.elapsed() < Duration::from_secs(10), "{error}"),
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Answers so many requests more, and then 503 to every one.
    pub fn fail_after(&self, requests: i64) {
        self.counts.left.store(requests, Ordering::SeqCst);
    }

    /// Answers every request again.
    pub fn recover(&self) {
        self.counts.left.store(-1, Ordering::SeqCst);
    }

    /// Requests so far that brought content.
    pub fn writes(&self) -> u64 {
        self.counts.writes.load(Ordering::SeqCst)
    }

    /// Removes the bucket with all that is in it.
    pub fn remove_bucket(&self) {
        std::fs::remove_dir_all(self.folder.path().join(BUCKET)).unwrap();
    }

    /// The files of all objects, by key.
    pub fn objects(&self) -> Vec<(String, PathBuf)> {
        let root = self.folder.path().join(BUCKET);
        let mut found = Vec::new();
        collect(&root, &root, &mut found);
        found.sort();
        found
    }

    /// The file of the object whose key ends so.
    pub fn object(&self, end: &str) -> PathBuf {
        let found = self.objects().into_iter().find(|(key, _)| key.ends_with(end));
        found.unwrap().1
    }

    fn serve(&mut self, listener: TcpListener) {
        let mut builder = S3ServiceBuilder::new(FileSystem::new(self.folder.path()).unwrap());
        let mut keys = SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY);
        keys.register(WRITER_KEY.to_owned(), WRITER_SECRET.into());
        builder.set_auth(keys);
        let service = builder.build();
        self.running = CancellationToken::new();
        let (running, counts) = (self.running.clone(), Arc::clone(&self.counts));
        tokio::spawn(async move {
            while let Some(Ok((stream, _))) = running.run_until_cancelled(listener.accept()).await {
                let (service, counts, running) = (service.clone(), Arc::clone(&counts), running.clone());
                tokio::spawn(async move {
                    let answer = service_fn(|request| answer(&service, &counts, request));
                    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
                    // A client that goes away is no failure of the server's.
                    running.run_until_cancelled(connection).await.map(Result::ok);
                });
            }
        });
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.running.cancel();
    }
}

async fn answer(service: &S3Service, counts: &Counts, request: Request<Incoming>) -> Result<HttpResponse, Infallible> {
    if *request.method() == Method::PUT {
        counts.writes.fetch_add(1, Ordering::SeqCst);
    }
    let left = counts
        .left
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| (left > 0).then(|| left - 1));
    if left == Err(0) {
        return Ok(refusal(StatusCode::SERVICE_UNAVAILABLE, "SlowDown"));
    }
    if is_of_the_writer(&request) && !is_write(&request) {
        return Ok(refusal(StatusCode::FORBIDDEN, "AccessDenied"));
    }
    // The server over a folder would make the bucket; others do not.
    let path = request.uri().path().trim_start_matches('/');
    let bucket = path.split('/').next().unwrap_or_default();
    // It keeps what it knows of an object in a file with the whole key in its name, in Base64, and
    // fails after the object has its content where that is longer than a file's name may be.
    let put = (*request.method() == Method::PUT && request.uri().query().is_none()).then(|| counts.root.join(path));
    if !counts.root.join(bucket).is_dir() {
        return Ok(refusal(StatusCode::NOT_FOUND, "NoSuchBucket"));
    }
    let mut response = service.call(request.map(Body::from)).await.unwrap();
    if response.status() == StatusCode::INTERNAL_SERVER_ERROR && put.is_some_and(|object| object.is_file()) {
        response = HttpResponse::new(Body::empty());
        response
            .headers_mut()
            .insert(ETAG, HeaderValue::from_static("\"unknown\""));
    }
    Ok(response)
}

/// Whether a request is signed with the key that may only write.
fn is_of_the_writer(request: &Request<Incoming>) -> bool {
    let signed = request.headers().get(AUTHORIZATION);
    let signed = signed.and_then(|value| value.to_str().ok()).unwrap_or_default();
    signed.contains(&format!("Credential={WRITER_KEY}/"))
}

/// Whether a request is one of `PutObject`, which has those of uploads in parts with it, or
/// `AbortMultipartUpload`.
fn is_write(request: &Request<Incoming>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    let has = |name: &str| query.split('&').any(|pair| pair.split('=').next() == Some(name));
    match *request.method() {
        Method::PUT => true,
        Method::POST => !has("delete"),
        Method::DELETE => has("uploadId"),
        _ => false,
    }
}

fn refusal(status: StatusCode, code: &str) -> HttpResponse {
    let mut response = HttpResponse::new(Body::from(format!("<Error><Code>{code}</Code></Error>")));
    *response.status_mut() = status;
    response
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<(String, PathBuf)>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            collect(root, &path, found);
        } else {
            let key = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            found.push((key, path));
        }
    }
}
