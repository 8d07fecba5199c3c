//! The calls of the CUDA API.

use flopwatch_measures::api_call::ApiCall;
use flopwatch_measures::host_call::without_version;
use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_model::{Category, ColumnId, Events, RowId, Timeline};

/// A call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    /// Index of the call among the events of [`Category::CudaApi`].
    pub(crate) at: usize,
    /// Name of the call, without the version that Nsight Systems puts behind it.
    pub(crate) name: &'a str,
    /// Purpose of the call.
    pub(crate) kind: ApiCall,
    /// When it ran.
    pub(crate) time: Interval,
    /// Row of the call in the timeline: a thread.
    pub(crate) row: RowId,
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

    /// Calls whose name `picks` picks; it is asked once per name.
    pub(crate) fn named(&self, picks: impl Fn(&str, ApiCall) -> bool) -> impl Iterator<Item = Call<'a>> {
        let events = self.events;
        let picked: Vec<bool> = self.names.iter().map(|(name, kind)| picks(name, *kind)).collect();
        let occurrences = events.into_iter().flat_map(|events| events.name.iter().enumerate());
        let occurrences = occurrences.filter(move |(_, name)| picked.get(name.index()).copied().unwrap_or(false));
        occurrences.filter_map(move |(at, _)| self.get(at))
    }

    /// Calls whose purpose is `wanted`.
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
        let (name, kind) = *self.names.get(events.name.get(at)?.index())?;
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
