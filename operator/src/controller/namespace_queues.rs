//! Locks of namespaces: one pass of a namespace at a time counts its captures and creates its own,
//! so that two sessions do not both take the last place below a limit. Passes of other namespaces
//! are not held up.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;

/// Most passes of one namespace that hold its lock or wait for it. Each occupies one of the
/// controller's passes: a namespace whose calls hang must not take them all.
const MAX_QUEUED_PASSES: usize = 2;

/// Time after which a pass that found the queue full is tried again.
pub const RETRY_INTERVAL: Duration = Duration::from_millis(300);

/// The queues of namespaces. There is one for each namespace that a pass holds or waits for, so at
/// most as many as there are passes.
#[derive(Debug, Default)]
pub struct NamespaceQueues {
    queues: Mutex<BTreeMap<String, NamespaceQueue>>,
}

#[derive(Debug, Default)]
struct NamespaceQueue {
    lock: Arc<tokio::sync::Mutex<()>>,
    /// Number of passes that hold the lock or wait for it.
    queued: usize,
}

/// The lock of a namespace, which is released when it is dropped.
#[derive(Debug)]
pub struct NamespaceLock<'a> {
    // Dropped first: the queue may be removed only when nobody holds its lock.
    _held: OwnedMutexGuard<()>,
    _slot: QueueSlot<'a>,
}

/// The entry of one pass in a namespace's queue. Dropping it leaves the queue, also where the pass
/// is cancelled while it waits.
#[derive(Debug)]
struct QueueSlot<'a> {
    namespace_queues: &'a NamespaceQueues,
    namespace: String,
}

impl NamespaceQueues {
    /// Waits for the namespace's lock. None where two passes hold it or wait for it already: the
    /// caller tries again after [`RETRY_INTERVAL`].
    pub async fn lock(&self, namespace: &str) -> Option<NamespaceLock<'_>> {
        let (slot, lock) = self.enqueue(namespace)?;
        Some(NamespaceLock {
            _held: lock.lock_owned().await,
            _slot: slot,
        })
    }

    fn enqueue(&self, namespace: &str) -> Option<(QueueSlot<'_>, Arc<tokio::sync::Mutex<()>>)> {
        let mut queues = self.queues();
        let queue = queues.entry(namespace.to_owned()).or_default();
        if queue.queued >= MAX_QUEUED_PASSES {
            return None;
        }
        queue.queued += 1;
        let lock = Arc::clone(&queue.lock);
        drop(queues);
        let slot = QueueSlot {
            namespace_queues: self,
            namespace: namespace.to_owned(),
        };
        Some((slot, lock))
    }

    fn queues(&self) -> MutexGuard<'_, BTreeMap<String, NamespaceQueue>> {
        // The map stays consistent whatever happens between two of its own calls.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        let mut queues = self.namespace_queues.queues();
        if let Some(queue) = queues.get_mut(&self.namespace) {
            queue.queued = queue.queued.saturating_sub(1);
            if queue.queued == 0 {
                queues.remove(&self.namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use futures::poll;

    use super::*;

    #[tokio::test]
    async fn a_namespace_has_one_turn_a_short_line_and_no_part_in_others() {
        let namespace_queues = NamespaceQueues::default();
        let first = namespace_queues.lock("team").await.unwrap();
        let mut second = Box::pin(namespace_queues.lock("team"));
        assert!(poll!(&mut second).is_pending(), "the turn is taken");
        assert!(namespace_queues.lock("team").await.is_none(), "the line is full");
        let other = namespace_queues.lock("other").await;
        assert!(other.is_some());
        drop(first);
        let Poll::Ready(Some(second)) = poll!(&mut second) else {
            panic!("the turn went to nobody");
        };
        drop((second, other));
        assert!(namespace_queues.queues().is_empty(), "nobody stands in line");
    }

    #[tokio::test]
    async fn a_pass_that_is_cut_off_while_it_waits_leaves_the_line() {
        let namespace_queues = NamespaceQueues::default();
        let first = namespace_queues.lock("team").await.unwrap();
        let mut waits = Box::pin(namespace_queues.lock("team"));
        assert!(poll!(&mut waits).is_pending());
        drop(waits);
        assert!(
            poll!(Box::pin(namespace_queues.lock("team"))).is_pending(),
            "its place is free again"
        );
        drop(first);
        assert!(namespace_queues.queues().is_empty());
    }
}
