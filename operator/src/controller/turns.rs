//! Turns of namespaces: one session of a namespace at a time counts its captures and adds its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;

/// Passes of one namespace that have its turn or wait for it. Each occupies one of the controller's passes: a namespace whose
/// calls hang must not take them all.
const IN_LINE: usize = 2;

/// When a pass that found the line full is tried again.
pub const AGAIN: Duration = Duration::from_millis(300);

/// Who has a turn. It holds a line for each namespace that somebody stands in, so as many as there are passes at most.
#[derive(Debug, Default)]
pub struct Turns {
    lines: Mutex<BTreeMap<String, Line>>,
}

#[derive(Debug, Default)]
struct Line {
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Passes that have the turn or wait for it.
    queued: usize,
}

/// A namespace's turn, until it is dropped.
#[derive(Debug)]
pub struct Turn<'a> {
    // Dropped first: the line may go only when nobody has its turn.
    _held: OwnedMutexGuard<()>,
    _place: Slot<'a>,
}

/// A place in a namespace's line; left when it is dropped, also by a pass that was cut off while it waited.
#[derive(Debug)]
struct Slot<'a> {
    turns: &'a Turns,
    namespace: String,
}

impl Turns {
    /// Waits for the namespace's turn. None when its line is full: come again after [`AGAIN`].
    pub async fn take(&self, namespace: &str) -> Option<Turn<'_>> {
        let (slot, turn) = self.stand_in_line(namespace)?;
        Some(Turn {
            _held: turn.lock_owned().await,
            _place: slot,
        })
    }

    fn stand_in_line(&self, namespace: &str) -> Option<(Slot<'_>, Arc<tokio::sync::Mutex<()>>)> {
        let mut lines = self.lines();
        let line = lines.entry(namespace.to_owned()).or_default();
        if line.queued >= IN_LINE {
            return None;
        }
        line.queued += 1;
        let turn = Arc::clone(&line.turn);
        drop(lines);
        let slot = Slot {
            turns: self,
            namespace: namespace.to_owned(),
        };
        Some((slot, turn))
    }

    fn lines(&self) -> MutexGuard<'_, BTreeMap<String, Line>> {
        // The map stays consistent whatever happens between two of its own calls.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut lines = self.turns.lines();
        if let Some(line) = lines.get_mut(&self.namespace) {
            line.queued = line.queued.saturating_sub(1);
            if line.queued == 0 {
                lines.remove(&self.namespace);
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
    async fn m7_a_namespace_has_one_turn_a_short_line_and_no_part_in_others() {
        let turns = Turns::default();
        let first = turns.take("team").await.unwrap();
        let mut second = Box::pin(turns.take("team"));
        assert!(poll!(&mut second).is_pending(), "the turn is taken");
        assert!(turns.take("team").await.is_none(), "the line is full");
        let other = turns.take("other").await;
        assert!(other.is_some());
        drop(first);
        let Poll::Ready(Some(second)) = poll!(&mut second) else {
            panic!("the turn went to nobody");
        };
        drop((second, other));
        assert!(turns.lines().is_empty(), "nobody stands in line");
    }

    #[tokio::test]
    async fn m7_a_pass_that_is_cut_off_while_it_waits_leaves_the_line() {
        let turns = Turns::default();
        let first = turns.take("team").await.unwrap();
        let mut waits = Box::pin(turns.take("team"));
        assert!(poll!(&mut waits).is_pending());
        drop(waits);
        assert!(
            poll!(Box::pin(turns.take("team"))).is_pending(),
            "its place is free again"
        );
        drop(first);
        assert!(turns.lines().is_empty());
    }
}
