//! Profiler services of programs: where they listen, proven by a call that records nothing.

use std::time::Duration;

use flopwatch_attach::listeners::{Listener, of_process};
use flopwatch_attach::network::connect;
use flopwatch_attach::process::{ProcessId, Procfs};
use flopwatch_pipeline::failure::chain;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};
use tracing::debug;

use super::message;
use crate::grpc::{CallError, Channel};

/// Ends a session by its name. Of a name that no session has, it does nothing: only a profiler
/// service has the method.
pub(super) const TERMINATE: &str = "/tensorflow.ProfilerService/Terminate";
/// Longest look at one socket.
pub(super) const SOCKET_TIMEOUT: Duration = Duration::from_secs(2);
/// The session that a look ends, which never is.
const NO_SESSION: &str = "flopwatch-probe";
/// Sockets that are looked at: the others of a program that has more are not tried.
const MAX_SOCKETS: usize = 32;
/// Bytes of an answer to a look.
const MAX_ANSWER_BYTES: u64 = 1024;

/// A profiler service of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// The process that listens.
    pub process: ProcessId,
    /// Port of the service.
    pub port: u16,
    /// Address to connect to from within the pod's network.
    pub address: std::net::SocketAddr,
}

/// A runtime for the calls of one thread.
pub(super) fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// The services of processes that have JAX's library mapped, by their ports. Blocks for some
/// seconds at most: all sockets are looked at side by side.
pub fn find(procfs: &Procfs, processes: &[ProcessId]) -> Vec<Service> {
    let mut sockets: Vec<Listener> = processes
        .iter()
        .flat_map(|process| of_process(procfs, *process))
        .collect();
    sockets.sort_unstable_by_key(|listener| (listener.address.port(), listener.process));
    // Children of a program share its sockets.
    sockets.dedup_by_key(|listener| listener.address);
    sockets.truncate(MAX_SOCKETS);
    std::thread::scope(|scope| {
        let looks: Vec<_> = sockets
            .iter()
            .filter_map(|listener| {
                let inspect = std::thread::Builder::new().name("flopwatch-look".into());
                let inspect = inspect.spawn_scoped(scope, || prove(procfs, *listener));
                Some((listener, inspect.ok()?))
            })
            .collect();
        let found = looks
            .into_iter()
            .filter_map(|(listener, inspect)| match inspect.join() {
                Ok(Ok(())) => Some(Service {
                    process: listener.process,
                    port: listener.address.port(),
                    address: listener.near(),
                }),
                Ok(Err(why)) => {
                    debug!(address = %listener.address, why, "what listens there is no profiler service");
                    None
                }
                Err(_panicked) => None,
            });
        found.collect()
    })
}

/// Fails where no profiler service answers.
fn prove(procfs: &Procfs, listener: Listener) -> Result<(), String> {
    let stream = connect(procfs, listener.process, listener.near(), SOCKET_TIMEOUT).map_err(|error| chain(&error))?;
    let answered = runtime().map_err(CallError::Sink).and_then(|runtime| {
        runtime.block_on(async {
            let call = async {
                let channel = Channel::of_tcp(stream).await?;
                let nobody = message::terminate(NO_SESSION).into_bytes();
                channel.call(TERMINATE, &nobody, MAX_ANSWER_BYTES, |_| Ok(())).await
            };
            tokio::time::timeout(SOCKET_TIMEOUT, call)
                .await
                .unwrap_or_else(|_late| {
                    let message = "it does not answer in time".to_owned();
                    Err(CallError::NotGrpc(message))
                })
        })
    });
    answered.map_err(|error| chain(&error))
}
