//! Which calls wait, and why.

use flopwatch_measures::host_call::{HostCall, without_version};
use flopwatch_model::{Category, ColumnId, Events, MemoryKind, Timeline, index};
use schemars::JsonSchema;
use serde::Serialize;
use strum::{IntoStaticStr, VariantArray};

/// Why the host waits in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum SyncKind {
    /// For all work of a device or context: `cudaDeviceSynchronize`, `cuCtxSynchronize`.
    Device,
    /// For a stream: `cudaStreamSynchronize`.
    Stream,
    /// For an event: `cudaEventSynchronize`.
    Event,
    /// For a copy that is not asynchronous, but for copies within a device, which do not wait.
    Copy,
    /// For a copy that is asynchronous by name, but reads or writes pageable memory of the host.
    PageableCopy,
    /// For a memset of pinned or managed memory that is not asynchronous.
    Memset,
}

impl SyncKind {
    /// Every kind.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Name in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What a call may be by its name alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Wait(SyncKind),
    Copy { asynchronous: bool },
    Memset,
}

/// What a call of that name may be; asynchronous memsets never wait.
fn shape(name: &str) -> Option<Shape> {
    let bare = without_version(name);
    let function = ["cuda", "cu", "hip"]
        .iter()
        .find_map(|prefix| bare.strip_prefix(prefix))?;
    let asynchronous = function.contains("Async") || function.contains("Batch");
    match function {
        "DeviceSynchronize" | "CtxSynchronize" | "ThreadSynchronize" => Some(Shape::Wait(SyncKind::Device)),
        "StreamSynchronize" => Some(Shape::Wait(SyncKind::Stream)),
        "EventSynchronize" => Some(Shape::Wait(SyncKind::Event)),
        _ if function.starts_with("Memcpy") => Some(Shape::Copy { asynchronous }),
        _ if function.starts_with("Memset") && !asynchronous => Some(Shape::Memset),
        _ => None,
    }
}

/// The copies and memsets of a timeline, by the call that launched them.
pub(super) struct Transfers<'a> {
    timeline: &'a Timeline,
    /// Call, category and place; sorted. One call may have several: a copy between devices may go
    /// through the host in two.
    list: Vec<(u32, Category, u32)>,
}

/// A copy or memset.
#[derive(Clone, Copy)]
pub(super) struct Transfer<'a> {
    pub(super) category: Category,
    pub(super) events: &'a Events,
    pub(super) at: usize,
}

impl Transfer<'_> {
    pub(super) fn number(&self, id: ColumnId) -> Option<u64> {
        self.events.number(id, self.at)
    }

    pub(super) fn kind(&self, id: ColumnId) -> Option<MemoryKind> {
        MemoryKind::from_number(self.number(id)?)
    }

    /// Whether it reads or writes memory of the host that is not page-locked.
    pub(super) fn is_pageable(&self) -> bool {
        let is = |id| self.kind(id) == Some(MemoryKind::Pageable);
        is(ColumnId::SrcMemoryKind) || is(ColumnId::DstMemoryKind)
    }

    /// Whether it sets memory that the host can reach, for which a memset waits.
    pub(super) fn is_of_host(&self) -> bool {
        let kind = self.kind(ColumnId::DstMemoryKind);
        matches!(kind, Some(MemoryKind::Pinned | MemoryKind::Managed))
    }
}

const TRANSFERS: [Category; 6] = [
    Category::CudaMemcpyH2d,
    Category::CudaMemcpyD2h,
    Category::CudaMemcpyD2d,
    Category::CudaMemcpyP2p,
    Category::CudaMemcpyOther,
    Category::CudaMemset,
];

impl<'a> Transfers<'a> {
    pub(super) fn of(timeline: &'a Timeline) -> Self {
        let mut list = Vec::new();
        for category in TRANSFERS {
            let launches = timeline.capture.events.get(&category);
            let launches = launches.and_then(|events| Some((events, events.column(ColumnId::Launch)?)));
            let Some((events, launches)) = launches else {
                continue;
            };
            for at in 0..u32::try_from(events.len()).unwrap_or(u32::MAX) {
                let launch = launches.get(index(at)).and_then(|launch| u32::try_from(launch).ok());
                if let Some(launch) = launch.filter(|launch| *launch != ColumnId::NO_LAUNCH) {
                    list.push((launch, category, at));
                }
            }
        }
        list.sort_unstable();
        Self { timeline, list }
    }

    /// What the call at `call` launched.
    pub(super) fn of_call(&self, call: u32) -> impl Iterator<Item = Transfer<'a>> {
        let from = self.list.partition_point(|(of, ..)| *of < call);
        let of_call = self.list.iter().skip(from).take_while(move |(of, ..)| *of == call);
        of_call.filter_map(|(_, category, at)| {
            let events = self.timeline.capture.events.get(category)?;
            Some(Transfer {
                category: *category,
                events,
                at: index(*at),
            })
        })
    }

    /// Whether there are copies or memsets, and none says which kind of memory it is of.
    pub(super) fn lack_kinds(&self) -> bool {
        let lists = TRANSFERS
            .iter()
            .filter_map(|category| self.timeline.capture.events.get(category));
        let lists: Vec<&Events> = lists.filter(|events| !events.is_empty()).collect();
        let says = |events: &&Events| {
            let ids = [ColumnId::SrcMemoryKind, ColumnId::DstMemoryKind];
            ids.iter().any(|id| events.column(*id).is_some())
        };
        !lists.is_empty() && !lists.iter().any(says)
    }
}

/// Every call in which the host waits, by start.
pub(super) fn waits(timeline: &Timeline, transfers: &Transfers<'_>) -> Vec<(SyncKind, HostCall)> {
    let Some(calls) = timeline.capture.events.get(&Category::CudaApi) else {
        return Vec::new();
    };
    let shapes: Vec<Option<Shape>> = calls.names.iter().map(|name| shape(name)).collect();
    let of_name = |name: usize| shapes.get(name).copied().flatten();
    let candidates = HostCall::list(timeline, Category::CudaApi, |name| of_name(name).is_some());
    let kind = |call: &HostCall| {
        let mut launched = transfers.of_call(call.at);
        match of_name(calls.name.get(index(call.at))?.index())? {
            Shape::Wait(kind) => Some(kind),
            Shape::Copy { asynchronous: true } => launched
                .any(|copy| copy.is_pageable())
                .then_some(SyncKind::PageableCopy),
            Shape::Copy { asynchronous: false } => {
                let within = launched
                    .next()
                    .is_some_and(|copy| copy.category == Category::CudaMemcpyD2d);
                (!within).then_some(SyncKind::Copy)
            }
            Shape::Memset => launched.any(|memset| memset.is_of_host()).then_some(SyncKind::Memset),
        }
    };
    candidates
        .into_iter()
        .filter_map(|call| Some((kind(&call)?, call)))
        .collect()
}
