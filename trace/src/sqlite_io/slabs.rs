//! Slabs of a table read by several cores, each through a connection of its own.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::table::Table;
use crate::hdf5_io::TableError;

/// Slabs one behind the other, with their items.
type Run<I> = Vec<(Range<usize>, I)>;

impl Table {
    /// Does `job` with each slab and its item, from slab `first` on, on every core where the rows'
    /// numbers tell where a slab begins; `state` is made once per core. Gives what it made of each
    /// slab in their order, or the first error.
    pub(crate) fn for_each_slab<S: Send, I: Send, R: Send, E: Send + From<TableError>>(
        &self,
        first: usize,
        items: Vec<I>,
        state: impl Fn(usize) -> S + Sync,
        job: impl Fn(&mut S, &Self, Range<usize>, I) -> Result<R, E> + Sync,
    ) -> Result<(Vec<S>, Vec<R>), E> {
        let cores = rayon::current_num_threads().min(items.len());
        let numbered = if cores > 1 { self.first_number()? } else { None };
        let mut slabs = self.slabs().skip(first).zip(items);
        let Some(first_number) = numbered else {
            let mut state = state(0);
            let made = slabs.map(|(rows, item)| job(&mut state, self, rows, item));
            let made = made.collect::<Result<Vec<R>, E>>()?;
            return Ok((vec![state], made));
        };
        // Rows are read one behind the other, so that each core gets a run of slabs.
        let length = slabs.size_hint().0.div_ceil(cores).max(1);
        let runs = std::iter::from_fn(|| {
            let run: Run<I> = slabs.by_ref().take(length).collect();
            (!run.is_empty()).then_some(run)
        });
        let runs: Vec<(usize, Run<I>)> = runs.enumerate().collect();
        let known = self.known();
        let has_failed = AtomicBool::new(false);
        let of_run = |(core, run): (usize, Run<I>)| {
            let mut state = state(core);
            let made = || {
                let mut made = Vec::with_capacity(run.len());
                let Some((start, _)) = run.first() else { return Ok(made) };
                let table = Self::reopen(&known, first_number, start)?;
                for (rows, item) in run {
                    // Nobody needs what comes beside an error.
                    if has_failed.load(Ordering::Relaxed) {
                        break;
                    }
                    made.push(job(&mut state, &table, rows, item)?);
                }
                Ok(made)
            };
            let made: Result<Vec<R>, E> = made();
            has_failed.fetch_or(made.is_err(), Ordering::Relaxed);
            made.map(|made| (state, made))
        };
        let done: Vec<Result<(S, Vec<R>), E>> = runs.into_par_iter().map(of_run).collect();
        let done = done.into_iter().collect::<Result<Vec<_>, E>>()?;
        let (states, made): (Vec<S>, Vec<Vec<R>>) = done.into_iter().unzip();
        Ok((states, made.into_iter().flatten().collect()))
    }
}
