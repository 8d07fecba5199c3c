//! Whose turn it is with the cluster: tests of one group have it beside each other, groups one
//! after the other, but for two whose tests harm nobody: these have one turn.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, anyhow};
use tokio::sync::{Notify, OnceCell};

/// A group of tests that may run beside each other, in the order in which groups that wait have
/// their turns. What a group changes nobody else sees: the release is installed anew when a turn
/// begins.
///
/// Turns that leave the machine idle for half of their time come first: a round has its unit tests
/// run beside them. Behind them come the turns that need the machine for themselves.
///
/// The harness begins all tests at once; those that wait for their turn do nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// The tests end the release's parts.
    Faults,
    /// The test stops the API server, which all others ask.
    ApiServer,
    /// The test strikes the release's parts.
    Soak,
    /// One gives the release an object store, and one takes a node away.
    StoreAndNode,
    /// The switch holds for the whole cluster.
    Switch,
    /// The test takes the release away.
    Uninstall,
    /// The test replaces the release by another version.
    Upgrade,
    /// Their pods turn against the node, its agent and others, and harm nobody beside them.
    Hostile,
    /// The tests change nothing that another one needs. They have the turn of the hostile ones: the
    /// first of them begin once no hostile one waits, while the last of those run.
    Shared,
    /// The tests hold times to a bound, which tests beside them would take.
    Timed,
    /// A fleet keeps the API server busy, and the test ends the API server. It has the release with
    /// values of its own; behind all others, nobody waits until they are taken back.
    Scale,
}

impl Group {
    /// The group whose turn it has.
    const fn turn(self) -> Self {
        match self {
            Self::Shared => Self::Hostile,
            own => own,
        }
    }
}

/// Tests of a turn that run beside each other at most: what is answered in time beside five others
/// is not beside nine.
const MAX_RUNNING: usize = 6;

/// Where a test stands among those of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Before the others, since it takes long: none is left over when all others have ended.
    First,
    /// As it came.
    AsItCame,
}

/// A test that waits. The order is that in which they are let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ticket {
    group: Group,
    place: Place,
    number: u64,
}

/// What a turn began with: nothing yet, done, or why it failed.
type Beginning = OnceCell<Result<(), String>>;

/// The cluster's.
static TURNS: LazyLock<Arc<Turns>> = LazyLock::new(Arc::default);

/// Who has the cluster, and who waits for it.
#[derive(Debug, Default)]
struct Turns {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The group whose turn it is, or was last.
    turn: Option<Group>,
    /// How many of its tests run.
    running: usize,
    waiting: BTreeSet<Ticket>,
    /// How many tests have come.
    came: u64,
    begun: Arc<Beginning>,
}

impl Turns {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn enter(self: &Arc<Self>, group: Group, place: Place) -> Turn {
        let waits = Waits::new(self, group, place);
        loop {
            // Before the look, so that nothing is missed between the two.
            let changed = self.changed.notified();
            let begun = self.state().admit(waits.ticket);
            if let Some(begun) = begun {
                return Turn {
                    turns: Arc::clone(self),
                    begun,
                };
            }
            changed.await;
        }
    }
}

impl State {
    /// Lets a test in that waits, if it is the next and there is room for it.
    fn admit(&mut self, ticket: Ticket) -> Option<Arc<Beginning>> {
        let turn = ticket.group.turn();
        let has_room = if self.running > 0 {
            self.turn == Some(turn) && self.running < MAX_RUNNING
        } else {
            self.waiting.first().is_some_and(|first| first.group.turn() == turn)
        };
        let next = self.waiting.iter().find(|waiting| waiting.group.turn() == turn);
        if !has_room || next != Some(&ticket) {
            return None;
        }
        if self.turn != Some(turn) {
            self.turn = Some(turn);
            self.begun = Arc::default();
        }
        self.running += 1;
        Some(Arc::clone(&self.begun))
    }
}

/// A test that waits; it ends to wait when this is dropped.
struct Waits<'a> {
    turns: &'a Turns,
    ticket: Ticket,
}

impl<'a> Waits<'a> {
    fn new(turns: &'a Turns, group: Group, place: Place) -> Self {
        let mut state = turns.state();
        let number = state.came;
        state.came += 1;
        let ticket = Ticket { group, place, number };
        state.waiting.insert(ticket);
        drop(state);
        Self { turns, ticket }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.turns.state().waiting.remove(&self.ticket);
        // The next may have room too.
        self.turns.changed.notify_waiters();
    }
}

/// A test's part of its group's turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    begun: Arc<Beginning>,
}

impl Turn {
    /// Waits for the group's turn, and for the test's place in it.
    pub(crate) async fn of(group: Group, place: Place) -> Self {
        TURNS.enter(group, place).await
    }

    /// Does what a turn begins with, unless a test of it did. Where that failed, it fails for each
    /// test of the turn in the same words: none of them does it again.
    pub(crate) async fn begin(&self, work: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
        let work = async || work().await.map_err(|error| format!("{error:#}"));
        let begun = self.begun.get_or_init(work).await;
        begun
            .clone()
            .map_err(|error| anyhow!("the group's turn could not begin: {error}"))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.state().running -= 1;
        self.turns.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const NOT_YET_TIMEOUT: Duration = Duration::from_millis(100);

    /// A turn that is asked for now.
    fn ask(turns: &Arc<Turns>, group: Group) -> tokio::task::JoinHandle<Turn> {
        ask_for(turns, group, Place::AsItCame)
    }

    fn ask_for(turns: &Arc<Turns>, group: Group, place: Place) -> tokio::task::JoinHandle<Turn> {
        let turns = Arc::clone(turns);
        tokio::spawn(async move { turns.enter(group, place).await })
    }

    async fn has_begun_before(turn: &Turn) -> bool {
        let mut before = true;
        let work = async || {
            before = false;
            Ok(())
        };
        turn.begin(work).await.unwrap();
        before
    }

    #[tokio::test(start_paused = true)]
    async fn tests_of_a_group_have_the_cluster_beside_each_other_and_another_group_waits_for_the_last() {
        let turns = Arc::default();
        let (first, second) = (
            ask(&turns, Group::Faults).await.unwrap(),
            ask(&turns, Group::Faults).await.unwrap(),
        );
        let mut other = ask(&turns, Group::Shared);
        assert!(timeout(NOT_YET_TIMEOUT, &mut other).await.is_err());
        drop(first);
        assert!(timeout(NOT_YET_TIMEOUT, &mut other).await.is_err());
        // Who comes later is of the turn too.
        let third = ask(&turns, Group::Faults).await.unwrap();
        drop((second, third));
        other.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn shared_tests_begin_behind_the_hostile_ones_that_wait_and_beside_those_that_run() {
        let turns = Arc::default();
        let mut running = Vec::new();
        for _ in 0..MAX_RUNNING {
            running.push(ask(&turns, Group::Hostile).await.unwrap());
        }
        assert!(!has_begun_before(&running[0]).await);
        let mut shared = ask_for(&turns, Group::Shared, Place::First);
        tokio::task::yield_now().await;
        let mut hostile = ask(&turns, Group::Hostile);
        assert!(timeout(NOT_YET_TIMEOUT, &mut hostile).await.is_err());
        running.pop();
        let last = hostile.await.unwrap();
        assert!(timeout(NOT_YET_TIMEOUT, &mut shared).await.is_err());
        drop(last);
        let shared = shared.await.unwrap();
        assert!(has_begun_before(&shared).await, "the hostile ones' release");
        // Whoever harms others waits for both.
        let mut soak = ask(&turns, Group::Soak);
        running.clear();
        assert!(timeout(NOT_YET_TIMEOUT, &mut soak).await.is_err());
        drop(shared);
        soak.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_test_of_a_group_that_has_its_bound_of_tests_waits_until_one_of_them_ends() {
        let turns = Arc::default();
        let mut running = Vec::new();
        for _ in 0..MAX_RUNNING {
            running.push(ask(&turns, Group::Timed).await.unwrap());
        }
        let mut next = ask(&turns, Group::Timed);
        assert!(timeout(NOT_YET_TIMEOUT, &mut next).await.is_err());
        running.pop();
        next.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_long_is_next_and_the_others_have_the_order_in_which_they_came() {
        let turns = Arc::default();
        let mut running = Vec::new();
        for _ in 0..MAX_RUNNING {
            running.push(ask(&turns, Group::Timed).await.unwrap());
        }
        let mut waiting = Vec::new();
        for place in [Place::AsItCame, Place::AsItCame, Place::First] {
            waiting.push(ask_for(&turns, Group::Timed, place));
            tokio::task::yield_now().await;
        }
        for let_in in [[false, false, true], [true, false, true], [true, true, true]] {
            running.pop();
            tokio::time::sleep(NOT_YET_TIMEOUT).await;
            let found: Vec<bool> = waiting.iter().map(tokio::task::JoinHandle::is_finished).collect();
            assert_eq!(found, let_in);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_the_groups_that_wait_the_first_in_their_order_is_next() {
        let turns = Arc::default();
        let running = ask(&turns, Group::Faults).await.unwrap();
        let mut last = ask(&turns, Group::Upgrade);
        assert!(timeout(NOT_YET_TIMEOUT, &mut last).await.is_err());
        let (one, other) = (ask(&turns, Group::Uninstall), ask(&turns, Group::Uninstall));
        tokio::task::yield_now().await;
        drop(running);
        let both = (one.await.unwrap(), other.await.unwrap());
        assert!(timeout(NOT_YET_TIMEOUT, &mut last).await.is_err());
        drop(both);
        last.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn each_turn_begins_once_and_a_group_that_nobody_followed_goes_on_with_its_own() {
        let turns = Arc::default();
        let first = ask(&turns, Group::StoreAndNode).await.unwrap();
        assert!(!has_begun_before(&first).await);
        drop(first);
        let second = ask(&turns, Group::StoreAndNode).await.unwrap();
        assert!(has_begun_before(&second).await);
        drop(second);
        let other = ask(&turns, Group::Switch).await.unwrap();
        assert!(!has_begun_before(&other).await);
        drop(other);
        let again = ask(&turns, Group::StoreAndNode).await.unwrap();
        assert!(!has_begun_before(&again).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_could_not_begin_is_tried_once_and_every_test_of_it_fails_in_the_same_words() {
        let turns = Arc::default();
        let (first, second) = (
            ask(&turns, Group::Faults).await.unwrap(),
            ask(&turns, Group::Faults).await.unwrap(),
        );
        let failed = first.begin(async || Err(anyhow!("no chart"))).await.unwrap_err();
        let again = second.begin(async || Ok(())).await.unwrap_err();
        assert_eq!(failed.to_string(), "the group's turn could not begin: no chart");
        assert_eq!(again.to_string(), failed.to_string());
        drop((first, second));
        let other = ask(&turns, Group::Switch).await.unwrap();
        assert!(!has_begun_before(&other).await);
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_waiting_holds_nobody_up() {
        let turns = Arc::default();
        let running = ask(&turns, Group::Faults).await.unwrap();
        let mut gone = ask(&turns, Group::Scale);
        assert!(timeout(NOT_YET_TIMEOUT, &mut gone).await.is_err());
        gone.abort();
        let next = ask(&turns, Group::Soak);
        tokio::task::yield_now().await;
        drop(running);
        timeout(NOT_YET_TIMEOUT, next).await.unwrap().unwrap();
    }
}
