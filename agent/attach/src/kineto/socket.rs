//! The socket: bound in another network namespace, and told by the kernel who sends.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, SockaddrLike, UnixAddr, UnixCredentials, bind,
    recvmsg, sendto, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};

use super::message::MAX_DATAGRAM_BYTES;
use crate::process::{ProcessError, ProcessId, Procfs};

/// The name that clients send to. The zero at its end belongs to it.
const NAME: &[u8] = b"dynolog\0";

/// Bytes of the address of a sender without a name, at most: its family.
const NAMELESS: libc::socklen_t = 2;

/// Why there is no endpoint.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The process whose network namespace it is to be in has ended.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Something else has the name there, which only a dynolog daemon takes.
    #[error("the name dynolog is taken in the pod's network namespace")]
    Taken,
    /// The kernel refused.
    #[error("cannot {action}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// Error of the kernel.
        source: io::Error,
    },
}

pub(super) fn io(action: &'static str) -> impl FnOnce(io::Error) -> EndpointError {
    move |source| EndpointError::Io { action, source }
}

/// What came in.
pub(super) struct Datagram {
    /// Its bytes; None where it is longer than any of a client, or carries more than it may.
    pub(super) bytes: Option<Vec<u8>>,
    /// PID of its sender as this process sees it, by the kernel's word; None where it has none
    /// here.
    pub(super) sender: Option<i32>,
    /// Where an answer goes; None where the sender has no name.
    pub(super) from: Option<UnixAddr>,
    /// How long it had waited to be read, by the kernel's time of its arrival.
    pub(super) waited: Duration,
}

/// A socket that has the name in a network namespace.
pub(super) struct Socket(OwnedFd);

impl Socket {
    /// Binds it in the network namespace of `process`.
    pub(super) fn bind(procfs: &Procfs, process: ProcessId) -> Result<Self, EndpointError> {
        let target = procfs.pidfd(process)?;
        // A thread cannot be trusted to come back from where it went, so it ends there. The socket
        // stays in its namespace.
        let bound = std::thread::Builder::new()
            .name("flopwatch-bind".into())
            .spawn(move || {
                move_into_thread_name_spaces(target.as_fd(), ThreadNameSpaceType::NETWORK)
                    .map_err(|error| io("enter the pod's network namespace")(error.into()))?;
                open()
            })
            .map_err(io("start a thread for the socket"))?
            .join();
        bound.unwrap_or_else(|_panic| Err(io("bind the socket")(io::ErrorKind::Other.into())))
    }

    /// The next datagram, waited for.
    pub(super) fn receive(&self, within: Duration) -> io::Result<Option<Datagram>> {
        let mut ready = [PollFd::new(&self.0, PollFlags::IN)];
        let within = Timespec::try_from(within).map_err(|_out_of_range| io::ErrorKind::InvalidInput)?;
        match poll(&mut ready, Some(&within)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            other => other?,
        };
        let mut bytes = vec![0; MAX_DATAGRAM_BYTES];
        // Room for the credentials and the time of arrival alone: descriptors that a sender passes
        // are closed by the kernel.
        let mut control = cmsg_space!(UnixCredentials, TimeSpec);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
        let received = match recvmsg::<UnixAddr>(self.0.as_raw_fd(), &mut parts, Some(&mut control), flags) {
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            other => other?,
        };
        let cut = received.flags.intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC);
        let (mut sender, mut arrived) = (None, None);
        for message in received.cmsgs()? {
            match message {
                ControlMessageOwned::ScmCredentials(of) => sender = Some(of.pid()),
                ControlMessageOwned::ScmTimestampns(at) => arrived = Some(UNIX_EPOCH + Duration::from(at)),
                _ => {}
            }
        }
        // A clock that was set back meanwhile says nothing.
        let waited = arrived.and_then(|at| SystemTime::now().duration_since(at).ok());
        // By its length alone: nix panics at the name of a sender that has none.
        let from = received.address.filter(|from| from.len() > NAMELESS);
        let length = received.bytes;
        bytes.truncate(length);
        Ok(Some(Datagram {
            bytes: (!cut).then_some(bytes),
            sender: sender.filter(|pid| *pid > 0),
            from,
            waited: waited.unwrap_or_default(),
        }))
    }

    /// Sends an answer, unless its reader is not there to take it.
    pub(super) fn answer(&self, to: &UnixAddr, bytes: &[u8]) -> io::Result<()> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        sendto(self.0.as_raw_fd(), bytes, to, flags)?;
        Ok(())
    }
}

fn open() -> Result<Socket, EndpointError> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Unix, SockType::Datagram, flags, None)
        .map_err(|error| io("make the socket")(error.into()))?;
    // Before it has its name: no datagram comes without the kernel's word on its sender.
    setsockopt(&fd, sockopt::PassCred, &true).map_err(|error| io("ask for senders' credentials")(error.into()))?;
    setsockopt(&fd, sockopt::ReceiveTimestampns, &true)
        .map_err(|error| io("ask for times of arrival")(error.into()))?;
    let name = UnixAddr::new_abstract(NAME).map_err(|error| io("name the socket")(error.into()))?;
    match bind(fd.as_raw_fd(), &name) {
        Ok(()) => Ok(Socket(fd)),
        Err(Errno::EADDRINUSE) => Err(EndpointError::Taken),
        Err(error) => Err(io("bind the socket")(error.into())),
    }
}
