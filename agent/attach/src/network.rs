//! Connections made from within a pod's network namespace.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use nix::sched::{CloneFlags, setns};

use crate::process::{ProcessError, ProcessId, Procfs};

/// Bytes of the stack of a thread that connects.
const STACK_BYTES: usize = 256 << 10;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The process whose network namespace is meant has ended.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The namespace could not be opened or entered.
    #[error("cannot {action} the network namespace of process {pid}")]
    Namespace {
        /// What was tried.
        action: &'static str,
        /// The process whose namespace it is.
        pid: i32,
        /// Error of the kernel.
        source: io::Error,
    },
    /// Nothing accepted the connection in time.
    #[error("cannot connect to {address} in the pod's network")]
    Connect {
        /// Where to.
        address: SocketAddr,
        /// Error of the kernel.
        source: io::Error,
    },
    /// There is no thread for it.
    #[error("no thread could be started, or it ended early")]
    NoThread,
}

/// Connects from within the network namespace of `process`, at most for `limit`.
///
/// The thread that enters the namespace ends with this call. The connection stays in the namespace
/// in which it was made, so whoever has it may be anywhere.
pub fn connect(
    procfs: &Procfs,
    process: ProcessId,
    address: SocketAddr,
    limit: Duration,
) -> Result<TcpStream, NetworkError> {
    let pid = process.pid;
    let failed = move |action| move |source: io::Error| NetworkError::Namespace { action, pid, source };
    let namespace = File::open(procfs.folder(pid).join("ns/net")).map_err(failed("open"))?;
    // Looked at after the namespace was opened: if it is the same process now, it was then.
    if procfs.identify(pid)? != process {
        return Err(ProcessError::Gone { pid }.into());
    }
    let thread = std::thread::Builder::new()
        .name("flopwatch-connect".into())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            setns(&namespace, CloneFlags::CLONE_NEWNET).map_err(|errno| failed("enter")(errno.into()))?;
            TcpStream::connect_timeout(&address, limit).map_err(|source| NetworkError::Connect { address, source })
        })
        .map_err(|_refused| NetworkError::NoThread)?;
    thread.join().unwrap_or(Err(NetworkError::NoThread))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn own() -> ProcessId {
        let pid = i32::try_from(std::process::id()).unwrap();
        Procfs::default().identify(pid).unwrap()
    }

    #[test]
    fn a_process_that_is_another_by_now_is_not_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let other = ProcessId {
            start_time: own().start_time + 1,
            ..own()
        };
        let refused = connect(&Procfs::default(), other, address, Duration::from_secs(2));
        assert!(
            matches!(refused, Err(NetworkError::Process(ProcessError::Gone { .. }))),
            "{refused:?}"
        );
    }

    #[test]
    fn a_port_that_nobody_listens_at_is_named() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: entering a network namespace needs root");
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        connect(&Procfs::default(), own(), address, Duration::from_secs(2)).unwrap();
        drop(listener);
        let refused = connect(&Procfs::default(), own(), address, Duration::from_secs(2)).unwrap_err();
        assert!(refused.to_string().contains(&address.to_string()), "{refused}");
    }
}
