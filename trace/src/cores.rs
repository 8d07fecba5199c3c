//! Work on a list of items, on every core.

use std::sync::{Mutex, PoisonError};

/// Does `job` with each item and its place, on every core; `state` is made once per core and given
/// back, `own` once per core and not. Gives what was made of each item in their order, or the first
/// error.
pub(crate) fn for_each<S: Send, I: Send, O, R: Send, E: Send>(
    items: Vec<I>,
    state: impl Fn(usize) -> S + Sync,
    own: impl Fn() -> O + Sync,
    job: impl Fn(&mut S, &mut O, usize, I) -> Result<R, E> + Sync,
) -> Result<(Vec<S>, Vec<R>), E> {
    let cores = rayon::current_num_threads().min(items.len()).max(1);
    let waiting = Mutex::new(items.into_iter().enumerate());
    let done = Mutex::new((Vec::new(), Vec::new()));
    let work = |core: usize| {
        let mut own = own();
        let mut state = state(core);
        let mut made = Vec::new();
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((at, item)) = next else { break };
            let result = job(&mut state, &mut own, at, item);
            let failed = result.is_err();
            made.push((at, result));
            if failed {
                // Nobody needs what comes behind.
                waiting
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .by_ref()
                    .for_each(drop);
                break;
            }
        }
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        done.0.push((core, state));
        done.1.append(&mut made);
    };
    if cores == 1 {
        work(0);
    } else {
        let work = &work;
        rayon::scope(|scope| {
            for core in 0..cores {
                scope.spawn(move |_| work(core));
            }
        });
    }
    let (mut states, mut made) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    states.sort_unstable_by_key(|(core, _)| *core);
    made.sort_unstable_by_key(|(at, _)| *at);
    let made: Result<Vec<R>, E> = made.into_iter().map(|(_, result)| result).collect();
    Ok((states.into_iter().map(|(_, state)| state).collect(), made?))
}
