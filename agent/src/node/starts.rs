//! Hands containers that wait for their first instruction to the captures that start them.
//!
//! The launcher of such a container has a session and is held back; the task of its capture starts
//! the collection and says so. Whoever comes first waits for the other, bounded on both sides.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long a held launcher waits for its capture: the operator makes it when the pod gets its
/// node, seconds before.
const CAPTURE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the start of the collection may take then.
const START_TIMEOUT: Duration = Duration::from_secs(15);

/// What became of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A collection runs.
    Started,
    /// No capture asked for the container in time.
    Untaken,
    /// A capture took it and could not start a collection; its status says why.
    GivenUp,
}

/// A held container.
#[derive(Debug)]
struct Offer {
    id: u64,
    pod_uid: String,
    container_id: String,
    reply: oneshot::Sender<oneshot::Receiver<()>>,
}

/// A held container that a capture took. It is released when this is dropped.
#[derive(Debug)]
pub struct PendingStart {
    /// The container, as the runtime names it.
    pub container_id: String,
    started: oneshot::Sender<()>,
}

impl PendingStart {
    /// Says that the collection runs.
    pub fn started(self) {
        // Nobody listens any more where this took too long: the launcher went on by itself, as its
        // state will show.
        self.started.send(()).ok();
    }
}

/// The held containers of a node.
#[derive(Debug, Default)]
pub struct Starts {
    offers: Mutex<Offers>,
}

#[derive(Debug, Default)]
struct Offers {
    next: u64,
    waiting: Vec<Offer>,
}

impl Starts {
    fn offers(&self) -> MutexGuard<'_, Offers> {
        // The list stays consistent whatever happens between two of its own calls.
        self.offers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Offers a held container to its capture, and waits for the collection.
    pub async fn offer(&self, pod_uid: &str, container_id: &str) -> Answer {
        let (reply, taken) = oneshot::channel();
        let id = {
            let mut offers = self.offers();
            offers.next = offers.next.wrapping_add(1);
            let id = offers.next;
            offers.waiting.push(Offer {
                id,
                pod_uid: pod_uid.to_owned(),
                container_id: container_id.to_owned(),
                reply,
            });
            id
        };
        let Ok(Ok(started)) = timeout(CAPTURE_TIMEOUT, taken).await else {
            self.offers().waiting.retain(|offer| offer.id != id);
            return Answer::Untaken;
        };
        match timeout(START_TIMEOUT, started).await {
            Ok(Ok(())) => Answer::Started,
            _ => Answer::GivenUp,
        }
    }

    /// Takes the container of a pod that `wants` says yes to, given its ID.
    pub fn take(&self, pod_uid: &str, wants: impl Fn(&str) -> bool) -> Option<PendingStart> {
        let mut offers = self.offers();
        let wanted = |offer: &Offer| offer.pod_uid == pod_uid && wants(&offer.container_id);
        let offer = offers
            .waiting
            .iter()
            .position(wanted)
            .map(|at| offers.waiting.swap_remove(at))?;
        let (started, listens) = oneshot::channel();
        offer.reply.send(listens).ok()?;
        Some(PendingStart {
            container_id: offer.container_id,
            started,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn offered(starts: &Arc<Starts>) -> tokio::task::JoinHandle<Answer> {
        let starts = Arc::clone(starts);
        tokio::spawn(async move { starts.offer("pod", "abc").await })
    }

    async fn take(starts: &Starts) -> PendingStart {
        loop {
            if let Some(held) = starts.take("pod", |id| id == "abc") {
                return held;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_held_container_waits_for_its_capture_and_for_the_collection() {
        let starts = Arc::new(Starts::default());
        let waiting = offered(&starts);
        let held = take(&starts).await;
        assert_eq!(held.container_id, "abc");
        assert!(starts.take("pod", |_| true).is_none(), "one capture takes it");
        held.started();
        assert_eq!(waiting.await.unwrap(), Answer::Started);
    }

    #[tokio::test(start_paused = true)]
    async fn a_container_that_no_capture_asks_for_is_released() {
        let starts = Arc::new(Starts::default());
        let waiting = offered(&starts);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(starts.take("other", |_| true).is_none());
        assert!(starts.take("pod", |id| id == "def").is_none());
        assert_eq!(waiting.await.unwrap(), Answer::Untaken);
        assert!(starts.take("pod", |_| true).is_none(), "nothing is left of the offer");
    }

    #[tokio::test(start_paused = true)]
    async fn a_container_whose_capture_fails_or_takes_too_long_is_released() {
        let starts = Arc::new(Starts::default());
        let waiting = offered(&starts);
        drop(take(&starts).await);
        assert_eq!(waiting.await.unwrap(), Answer::GivenUp);

        let waiting = offered(&starts);
        let held = take(&starts).await;
        assert_eq!(waiting.await.unwrap(), Answer::GivenUp);
        held.started();
    }
}
