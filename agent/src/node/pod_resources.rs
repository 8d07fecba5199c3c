//! Which devices the kubelet gave a container: its pod-resources service, gRPC over a socket of the
//! node.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use flopwatch_model::wire::{Damage, Message, Value};
use flopwatch_nvml::ContainerIdentity;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::grpc::{CallError, Channel, PREFIX_BYTES};

/// gRPC method of the kubelet that lists each container's devices.
const LIST_METHOD: &str = "/v1.PodResourcesLister/List";
/// Longest answer, in bytes: as long as the kubelet's clients take.
const MAX_ANSWER_BYTES: u64 = 16 << 20;
/// How long a call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// Beginning of the names of resources that are GPUs, or parts of one.
const GPU_RESOURCE_PREFIX: &str = "nvidia.com/";
/// Devices of one container that are read.
const MAX_DEVICES: usize = 256;

/// Why the kubelet did not say.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Nothing listens at the socket, or it may not be used.
    #[error("{path} cannot be connected to")]
    Connect {
        /// Path of the kubelet's socket.
        path: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The call failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The kubelet gave no answer in time.
    #[error("the kubelet gave no answer within {CALL_TIMEOUT:?}")]
    Late,
    /// The answer is none of this service.
    #[error("the kubelet's answer is damaged at byte {at}")]
    Damaged {
        /// Place of the byte in the answer, from 0.
        at: usize,
    },
}

impl From<Damage> for Error {
    fn from(Damage(at): Damage) -> Self {
        Self::Damaged { at }
    }
}

/// The kubelet's service.
#[derive(Debug, Clone)]
pub(crate) struct PodResources {
    socket: PathBuf,
}

impl PodResources {
    /// The service at a socket, which need not be there yet.
    pub(crate) const fn new(socket: PathBuf) -> Self {
        Self { socket }
    }

    /// The ids of the GPUs that the kubelet gave a container, as their device plugin names them.
    pub(crate) async fn devices(&self, container: &ContainerIdentity) -> Result<Vec<String>, Error> {
        let answer = timeout(CALL_TIMEOUT, self.list()).await;
        let answer = answer.map_err(|_elapsed| Error::Late)??;
        Ok(devices(&answer, container)?)
    }

    async fn list(&self) -> Result<Vec<u8>, Error> {
        let stream = UnixStream::connect(&self.socket).await;
        let stream = stream.map_err(|source| Error::Connect {
            path: self.socket.clone(),
            source,
        })?;
        let mut answer = Vec::new();
        let keep = |part: &[u8]| {
            answer.extend_from_slice(part);
            Ok(())
        };
        Channel::open(stream)
            .await?
            .call(LIST_METHOD, &[], MAX_ANSWER_BYTES, keep)
            .await?;
        // One message, not compressed: a flag and its length go before it.
        let message = answer
            .split_first_chunk::<PREFIX_BYTES>()
            .filter(|([flag, length @ ..], message)| {
                *flag == 0 && usize::try_from(u32::from_be_bytes(*length)) == Ok(message.len())
            });
        message
            .map(|(_, message)| message.to_vec())
            .ok_or(Error::Damaged { at: 0 })
    }
}

/// The ids of a container's GPUs in an answer.
fn devices(answer: &[u8], container: &ContainerIdentity) -> Result<Vec<String>, Damage> {
    let mut found = Vec::new();
    for pod in members(message(answer), 1) {
        let pod = pod?;
        if text(pod, 1)? != container.pod || text(pod, 2)? != container.namespace {
            continue;
        }
        for of_container in members(pod, 3) {
            let of_container = of_container?;
            if text(of_container, 1)? != container.container {
                continue;
            }
            for device in members(of_container, 2) {
                let device = device?;
                if text(device, 1)?.starts_with(GPU_RESOURCE_PREFIX) {
                    for id in members(device, 2) {
                        found.push(String::from_utf8_lossy(id?.bytes).into_owned());
                    }
                }
            }
        }
    }
    found.truncate(MAX_DEVICES);
    Ok(found)
}

const fn message(bytes: &[u8]) -> Message<'_> {
    Message { bytes, offset: 0 }
}

/// The messages and texts of one number.
fn members(of: Message<'_>, number: u64) -> impl Iterator<Item = Result<Message<'_>, Damage>> {
    of.fields().filter_map(move |field| match field {
        Ok((found, Value::Bytes(member))) if found == number => Some(Ok(member)),
        Ok(_) => None,
        Err(damage) => Some(Err(damage)),
    })
}

/// The first text of one number; empty where there is none.
fn text(of: Message<'_>, number: u64) -> Result<String, Damage> {
    let first = members(of, number).next().transpose()?;
    Ok(first
        .map(|text| String::from_utf8_lossy(text.bytes).into_owned())
        .unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::{HeaderMap, Response};

    /// A field that is a text or a message.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2];
        let mut length = content.len();
        while length >= 0x80 {
            field.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
            length >>= 7;
        }
        field.push(u8::try_from(length).unwrap());
        field.extend(content);
        field
    }

    fn pod(name: &str, resource: &str, ids: &[&str]) -> Vec<u8> {
        let ids = ids.iter().flat_map(|id| field(2, id.as_bytes()));
        let devices: Vec<u8> = field(1, resource.as_bytes()).into_iter().chain(ids).collect();
        let container = [field(1, b"main"), field(2, &devices)].concat();
        field(
            1,
            &[field(1, name.as_bytes()), field(2, b"team"), field(3, &container)].concat(),
        )
    }

    fn of(pod: &str, container: &str) -> ContainerIdentity {
        ContainerIdentity {
            namespace: "team".to_owned(),
            pod: pod.to_owned(),
            container: container.to_owned(),
        }
    }

    fn node() -> Vec<u8> {
        [
            pod("trainer", "nvidia.com/gpu", &["GPU-1::3", "GPU-2"]),
            pod("slice", "nvidia.com/mig-1g.10gb", &["MIG-7"]),
            pod("network", "example.com/nic", &["nic0"]),
        ]
        .concat()
    }

    #[test]
    fn a_container_has_the_gpus_that_the_answer_says_and_no_others() {
        let devices = |pod, container| devices(&node(), &of(pod, container)).unwrap();
        assert_eq!(devices("trainer", "main"), ["GPU-1::3", "GPU-2"]);
        assert_eq!(devices("slice", "main"), ["MIG-7"]);
        assert_eq!(devices("network", "main"), Vec::<String>::new());
        assert_eq!(devices("trainer", "side"), Vec::<String>::new());
        let elsewhere = ContainerIdentity {
            namespace: "other".to_owned(),
            ..of("trainer", "main")
        };
        assert_eq!(super::devices(&node(), &elsewhere), Ok(Vec::new()));
    }

    #[test]
    fn a_damaged_answer_is_told() {
        let whole = node();
        let cut = whole.get(..whole.len() - 3).unwrap();
        assert!(devices(cut, &of("network", "main")).is_err());
    }

    /// A kubelet that answers one call with this.
    fn kubelet(folder: &tempfile::TempDir, answer: Vec<u8>, status: &'static str) -> PodResources {
        let socket = folder.path().join("kubelet.sock");
        let listener = tokio::net::UnixListener::bind(&socket).unwrap();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                assert_eq!(request.uri().path(), LIST_METHOD);
                let head = Response::builder()
                    .header("content-type", "application/grpc")
                    .body(())
                    .unwrap();
                let mut body = respond.send_response(head, false).unwrap();
                body.send_data(Bytes::from(answer.clone()), false).unwrap();
                let mut trailers = HeaderMap::new();
                trailers.insert("grpc-status", status.parse().unwrap());
                body.send_trailers(trailers).unwrap();
            }
        });
        PodResources::new(socket)
    }

    fn framed(message: &[u8]) -> Vec<u8> {
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        [&[0], &length[..], message].concat()
    }

    #[tokio::test]
    async fn the_kubelet_is_asked_over_its_socket() {
        let folder = tempfile::tempdir().unwrap();
        let asked = kubelet(&folder, framed(&node()), "0")
            .devices(&of("slice", "main"))
            .await;
        assert_eq!(asked.unwrap(), ["MIG-7"]);
    }

    #[tokio::test]
    async fn what_is_no_answer_is_an_error_and_never_no_gpus() {
        for (answer, status, says) in [
            (framed(&node()), "13", "refused (13)"),
            (node(), "0", "damaged"),
            (framed(&node())[..9].to_vec(), "0", "damaged"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let error = kubelet(&folder, answer, status)
                .devices(&of("slice", "main"))
                .await
                .unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
        let folder = tempfile::tempdir().unwrap();
        let absent = PodResources::new(folder.path().join("kubelet.sock"));
        assert!(matches!(
            absent.devices(&of("slice", "main")).await,
            Err(Error::Connect { .. })
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn a_kubelet_that_does_not_answer_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("kubelet.sock");
        let _listener = tokio::net::UnixListener::bind(&socket).unwrap();
        let silent = PodResources::new(socket);
        assert!(matches!(silent.devices(&of("slice", "main")).await, Err(Error::Late)));
    }
}
