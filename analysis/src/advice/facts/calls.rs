//! The calls of the CUDA API.

use flopwatch_measures::api_call::ApiCall;
use flopwatch_measures::host_call::without_version;
use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_model::{Category, ColumnId, Events, Timeline, index};

/// A call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    /// Its place among the events of [`Category::CudaApi`].
    pub(crate) at: usize,
    /// Its name, without the version that Nsight Systems puts behind it.
    pub(crate) name: &'a str,
    /// What it is for.
    pub(crate) kind: ApiCall,
    /// When it ran.
    pub(crate) time: Interval,
    /// Its row: a thread.
    pub(crate) row: u32,
}

/// Every call, by start.
#[derive(Debug)]
pub(crate) struct Calls<'a> {
    events: Option<&'a Events>,
    /// Each name without its version, and what it is for.
    names: Vec<(&'a str, ApiCall)>,
}

impl<'a> Calls<'a> {
    /// Of `timeline`.
    pub(crate) fn of(timeline: &'a Timeline) -> Self {
        let events = timeline.capture.events.get(&Category::CudaApi);
        let names = events.into_iter().flat_map(|events| &events.names);
        Self {
            events,
            names: names.map(|name| (without_version(name), ApiCall::of(name))).collect(),
        }
    }

    /// Those whose name `picks` picks; it is asked once per name.
    pub(crate) fn named(&self, picks: impl Fn(&str, ApiCall) -> bool) -> impl Iterator<Item = Call<'a>> {
        let events = self.events;
        let picked: Vec<bool> = self.names.iter().map(|(name, kind)| picks(name, *kind)).collect();
        let places = events.into_iter().flat_map(|events| events.name.iter().enumerate());
        let places = places.filter(move |(_, name)| picked.get(index(**name)).copied().unwrap_or(false));
        places.filter_map(move |(at, _)| self.get(at))
    }

    /// Those for that purpose.
    pub(crate) fn of_kind(&self, wanted: ApiCall) -> impl Iterator<Item = Call<'a>> {
        self.named(move |_, kind| kind == wanted)
    }

    /// When any of `calls` ran.
    pub(crate) fn times(calls: impl IntoIterator<Item = Call<'a>>) -> Intervals {
        calls.into_iter().map(|call| call.time).collect()
    }

    /// The call at `at`.
    pub(crate) fn get(&self, at: usize) -> Option<Call<'a>> {
        let events = self.events?;
        let (name, kind) = *self.names.get(index(*events.name.get(at)?))?;
        Some(Call {
            at,
            name,
            kind,
            time: Interval::of(events, at),
            row: *events.row.get(at)?,
        })
    }

    /// What calls returned, where the source says it.
    pub(crate) fn returned(&self, at: usize) -> Option<u64> {
        self.events?.column(ColumnId::ReturnValue)?.get(at)
    }
}
