//! A sandbox that is made ready before there is a child to run in it: it has its cgroup by then,
//! and has left the machine's namespaces.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{SyncSender, sync_channel};

use flopwatch_attach::reexec::{Output, Reexec, ReexecError};
use flopwatch_attach::sandbox::{self, Sandboxed};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{JoinHandle, spawn_blocking};

/// A child to run.
#[derive(Debug)]
pub(crate) struct Order {
    /// What it is, with the user and the cgroup of its sandbox.
    pub(crate) sandboxed: Sandboxed,
    /// The reading end of a pipe: the child is ended when the writing end is gone.
    pub(crate) cancel: OwnedFd,
    /// Its turn, which is over when it is gone.
    pub(crate) turn: OwnedSemaphorePermit,
}

/// How a child ended; none where there was none.
pub(crate) type Ran = Result<Option<Output>, ReexecError>;

/// A sandbox without a child. Where it is dropped what is ready of it goes.
#[derive(Debug)]
pub(crate) struct Ahead {
    orders: SyncSender<Order>,
    ran: JoinHandle<Ran>,
}

impl Ahead {
    /// Makes one ready that has the user and the cgroup of `frame`. Its thread stays until the
    /// child has ended: the kernel ends what is ready with the thread that started it.
    pub(crate) fn begin(reexec: Reexec, frame: Sandboxed) -> Self {
        let (orders, ordered) = sync_channel::<Order>(1);
        let ran = spawn_blocking(move || {
            let mut turn = None;
            let ran = sandbox::run_ahead(&reexec, &frame, || {
                let order = ordered.recv().ok()?;
                turn = Some(order.turn);
                Some((order.sandboxed, order.cancel))
            });
            // The child is gone only here, whoever waited for it.
            drop(turn);
            ran
        });
        Self { orders, ran }
    }

    /// Runs a child in it.
    pub(crate) fn order(self, order: Order) -> JoinHandle<Ran> {
        // A sandbox that could not be made ready takes none, and its thread says why.
        self.orders.send(order).ok();
        self.ran
    }
}
