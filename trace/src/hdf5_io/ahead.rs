//! Work that other cores do ahead of the thread that needs its results, in order and with a bound
//! on what waits.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Results that wait, or are being made.
const MAX_PENDING_RESULTS: usize = 64;

/// Tasks and what was made of them.
pub(super) struct ReadAhead<'t, T, R, F> {
    tasks: &'t [T],
    work: F,
    state: Mutex<State<R>>,
    changed: Condvar,
}

struct State<R> {
    /// The first task that nobody has taken.
    next: usize,
    /// How many results were asked for.
    asked: usize,
    done: BTreeMap<usize, R>,
    /// Whether nobody will ask any more.
    over: bool,
}

impl<T: Sync, R: Send, F> ReadAhead<'_, T, R, F> {
    /// Runs `consume`, whose argument gives the results of `tasks`, one after the other, while
    /// other cores work ahead of it; `hand` is made once per core.
    pub(super) fn run<H, O: Send>(
        tasks: &[T],
        hand: impl Fn() -> H + Sync,
        work: F,
        consume: impl FnOnce(&mut dyn FnMut() -> Option<R>) -> O + Send,
    ) -> O
    where
        F: Fn(&mut H, &T) -> R + Sync,
    {
        let ahead = ReadAhead {
            tasks,
            work,
            state: Mutex::new(State {
                next: 0,
                asked: 0,
                done: BTreeMap::new(),
                over: false,
            }),
            changed: Condvar::new(),
        };
        let (ahead, hand) = (&ahead, &hand);
        rayon::scope(|scope| {
            for _ in 1..rayon::current_num_threads() {
                scope.spawn(move |_| ahead.help(&mut hand()));
            }
            let _over = StopOnDrop(ahead);
            let mut own = hand();
            consume(&mut || ahead.next(&mut own))
        })
    }
}

impl<T: Sync, R: Send, F> ReadAhead<'_, T, R, F> {
    fn state(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, state: MutexGuard<'g, State<R>>) -> MutexGuard<'g, State<R>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Works until all tasks are taken, or nobody asks any more.
    fn help<H>(&self, hand: &mut H)
    where
        F: Fn(&mut H, &T) -> R,
    {
        let mut state = self.state();
        while !state.over {
            let Some(task) = self.tasks.get(state.next) else { break };
            if state.next >= state.asked.saturating_add(MAX_PENDING_RESULTS) {
                state = self.wait(state);
                continue;
            }
            state = self.make(state, task, hand);
        }
    }

    /// Makes the result of the next task, which is `task`.
    fn make<'g, H>(&'g self, mut state: MutexGuard<'g, State<R>>, task: &T, hand: &mut H) -> MutexGuard<'g, State<R>>
    where
        F: Fn(&mut H, &T) -> R,
    {
        let at = state.next;
        state.next += 1;
        drop(state);
        let made = (self.work)(hand, task);
        let mut state = self.state();
        state.done.insert(at, made);
        self.changed.notify_all();
        state
    }

    /// The next result: what is not made yet is made here, and while another core makes it, so is
    /// what comes behind. `None` behind the last one.
    fn next<H>(&self, hand: &mut H) -> Option<R>
    where
        F: Fn(&mut H, &T) -> R,
    {
        let mut state = self.state();
        let asked = state.asked;
        loop {
            if let Some(made) = state.done.remove(&asked) {
                state.asked += 1;
                self.changed.notify_all();
                return Some(made);
            }
            let task = self.tasks.get(state.next);
            state = match task {
                _ if asked >= self.tasks.len() => return None,
                Some(task) if state.next < asked.saturating_add(MAX_PENDING_RESULTS) => self.make(state, task, hand),
                _ => self.wait(state),
            };
        }
    }
}

/// Lets the helpers go, also where the results were not all asked for.
struct StopOnDrop<'o, 't, T: Sync, R: Send, F>(&'o ReadAhead<'t, T, R, F>);

impl<T: Sync, R: Send, F> Drop for StopOnDrop<'_, '_, T, R, F> {
    fn drop(&mut self) {
        self.0.state().over = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squares(tasks: &[u64], asked: usize) -> Vec<Option<u64>> {
        let work = |(): &mut (), task: &u64| task * task;
        ReadAhead::run(tasks, || (), work, |next| (0..asked).map(|_| next()).collect())
    }

    #[test]
    fn results_come_in_order_on_any_number_of_cores() {
        let tasks: Vec<u64> = (0..10 * u64::try_from(MAX_PENDING_RESULTS).unwrap()).collect();
        for cores in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(cores).build().unwrap();
            let made = pool.install(|| squares(&tasks, tasks.len() + 1));
            assert!(
                made.iter().flatten().copied().eq(tasks.iter().map(|task| task * task)),
                "{cores}"
            );
            assert_eq!(made.last(), Some(&None), "nothing comes behind the last one");
        }
    }

    #[test]
    fn whoever_stops_asking_is_not_kept_waiting() {
        let tasks: Vec<u64> = (0..10 * u64::try_from(MAX_PENDING_RESULTS).unwrap()).collect();
        assert_eq!(squares(&tasks, 2), [Some(0), Some(1)]);
        assert_eq!(squares(&tasks, 0), []);
        assert_eq!(squares(&[], 1), [None]);
    }
}
