//! A profiler service that records nothing: it begins, ends and answers as that of JAX does.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use flopwatch_agent::profilers::jax::service::Service;
use flopwatch_attach::process::Procfs;
use flopwatch_model::wire;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, Request, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

/// What it answers with.
pub(crate) const PROFILE: &str = "a profile";
/// Bytes before a message of gRPC.
const PREFIX: usize = 5;

/// The service.
#[derive(Debug, Clone, Default)]
pub(crate) struct Double {
    /// How long it takes to put a profile together.
    collects: Duration,
    /// Folder below the one that it is told where it leaves a folder for each session; none where
    /// it answers with the profile.
    leaves_in: Option<&'static str>,
    told: Arc<Mutex<Told>>,
}

/// What it was told, and what it made of it.
#[derive(Debug, Default)]
struct Told {
    /// Names of sessions that are to end. A session of the name takes it out when it sees it, and
    /// no other one does.
    ends: HashSet<String>,
    /// How long each session recorded.
    recorded: Vec<Duration>,
}

impl Double {
    /// One that takes so long to put a profile together.
    pub(crate) fn collecting_for(collects: Duration) -> Self {
        Self {
            collects,
            ..Self::default()
        }
    }

    /// One that leaves its profiles in a folder below the one that it is told, and answers with
    /// none.
    pub(crate) fn leaving_in(folder: &'static str) -> Self {
        Self {
            leaves_in: Some(folder),
            ..Self::default()
        }
    }

    /// Serves from now on; the service as a probe finds it.
    pub(crate) fn serve(&self) -> Service {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let service = self.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(service.listen(listener));
        });
        let own = i32::try_from(std::process::id()).unwrap();
        Service {
            process: Procfs::default().identify(own).unwrap(),
            port: address.port(),
            address,
        }
    }

    /// How long each session recorded so far.
    pub(crate) fn recorded(&self) -> Vec<Duration> {
        self.told().recorded.clone()
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap()
    }

    async fn listen(self, listener: std::net::TcpListener) {
        let listener = TcpListener::from_std(listener).unwrap();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(self.clone().serve_one(stream));
        }
    }

    /// Serves a client until it goes away.
    async fn serve_one(self, stream: TcpStream) {
        let mut connection = h2::server::handshake(stream).await.unwrap();
        while let Some(Ok((request, answer))) = connection.accept().await {
            tokio::spawn(self.clone().answer(request, answer));
        }
    }

    async fn answer(self, request: Request<RecvStream>, mut answer: SendResponse<Bytes>) {
        let terminates = request.uri().path().ends_with("/Terminate");
        let mut body = request.into_body();
        let mut asked = Vec::new();
        while let Some(part) = body.data().await {
            asked.extend(part.unwrap());
        }
        let message = if terminates {
            self.told().ends.insert(text(&asked, 1));
            wire::write::Message::new()
        } else {
            self.profile(&asked).await
        };
        let mut framed = vec![0_u8];
        framed.extend(u32::try_from(message.encoded().len()).unwrap().to_be_bytes());
        framed.extend(message.encoded());
        let head = Response::builder().header("content-type", "application/grpc");
        // A client may have gone away meanwhile.
        let tell = || -> Result<(), h2::Error> {
            let mut stream = answer.send_response(head.body(()).unwrap(), false)?;
            stream.send_data(framed.into(), false)?;
            let mut end = HeaderMap::new();
            end.insert("grpc-status", HeaderValue::from_static("0"));
            stream.send_trailers(end)
        };
        tell().ok();
    }

    /// Takes the time of a session, as `ProfilerServiceImpl::Profile` does.
    async fn profile(&self, asked: &[u8]) -> wire::write::Message {
        let (length, session) = (Duration::from_millis(number(asked, 1)), text(asked, 6));
        let begun = Instant::now();
        while begun.elapsed() < length {
            sleep(Duration::from_millis(1)).await;
            if self.told().ends.remove(&session) {
                break;
            }
        }
        self.told().recorded.push(begun.elapsed());
        sleep(self.collects).await;
        let Some(below) = self.leaves_in else {
            return wire::write::Message::new().text(8, PROFILE);
        };
        let folder = Path::new(&text(asked, 5)).join(below).join(&session);
        std::fs::create_dir_all(&folder).unwrap();
        let file: PathBuf = folder.join(format!("{}.xplane.pb", text(asked, 7)));
        std::fs::write(file, PROFILE).unwrap();
        wire::write::Message::new().number(7, 0)
    }
}

/// A field of a call's message.
fn field(asked: &[u8], wanted: u64) -> Option<wire::Value<'_>> {
    let message = wire::Message {
        bytes: &asked[PREFIX..],
        offset: 0,
    };
    let mut fields = message.fields().map(Result::unwrap);
    fields.find_map(|(number, value)| (number == wanted).then_some(value))
}

fn text(asked: &[u8], wanted: u64) -> String {
    let bytes = field(asked, wanted).and_then(wire::Value::bytes).unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn number(asked: &[u8], wanted: u64) -> u64 {
    field(asked, wanted).and_then(wire::Value::number).unwrap()
}
