//! The rules of `nsys analyze` about synchronisation, with their conditions.

use flopwatch_measures::host_call::{HostCall, without_version};
use flopwatch_measures::interval::Interval;
use flopwatch_model::{Category, ColumnId, Row, RowId, Timeline};
use flopwatch_report::page::TimelineLocation;
use schemars::JsonSchema;
use serde::Serialize;

use super::HostSyncParams;
use super::kinds::{Transfer, Transfers};

/// A rule and what it found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SyncRule {
    /// Its name in `nsys analyze`.
    pub rule: String,
    /// Condition of the rule.
    pub about: String,
    /// What it found: calls, copies or memsets.
    pub count: u64,
    /// Sum of their lengths in ns: of calls on the host, of copies and memsets on the GPU.
    pub total_ns: u64,
    /// The longest of them.
    pub rows: Vec<SyncRuleRow>,
    /// How many were left out behind these.
    pub left_out: u64,
}

/// What a rule found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SyncRuleRow {
    /// Length in ns: of a call on the host, of a copy or memset on the GPU.
    pub duration_ns: u64,
    /// Start of the occurrence, in ns.
    pub start_ns: u64,
    /// Name of the call.
    pub api_name: String,
    /// Process id.
    pub process: u32,
    /// Thread id, of a call.
    pub thread: Option<u64>,
    /// Kind of memory that is read.
    pub source_kind: Option<String>,
    /// Kind of memory that is written.
    pub destination_kind: Option<String>,
    /// Bytes of a copy or memset.
    pub bytes: Option<u64>,
    /// Ordinal of the device.
    pub device: Option<u32>,
    /// CUDA context.
    pub context: Option<u64>,
    /// CUDA stream.
    pub stream: Option<u64>,
    /// Row of the timeline.
    pub row: RowId,
}

impl SyncRuleRow {
    /// Location of the occurrence in the timeline of the first input.
    pub fn location(&self) -> TimelineLocation {
        TimelineLocation::lasting(self.start_ns, self.duration_ns, Some(self.row))
    }
}

/// Whether a rule takes a call by its name without version.
type Picks = fn(&str) -> bool;

/// Every rule.
pub(super) fn all(timeline: &Timeline, transfers: &Transfers<'_>, params: HostSyncParams) -> Vec<SyncRule> {
    let small = u64::from(params.small_copy_bytes);
    let is_copy = |transfer: &Transfer<'_>| transfer.category != Category::CudaMemset;
    let calls: Picks = |name| name.starts_with("cudaDeviceSynchronize") || name.starts_with("cudaStreamSynchronize");
    let pageable: Picks = |name| name.starts_with("cudaMemcpy") && name.contains("Async");
    let copies: Picks = |name| name.starts_with("cudaMemcpy") && !name.contains("Async");
    let memsets: Picks = |name| name.starts_with("cudaMemset") && !name.contains("Async");
    let waits = |transfer: &Transfer<'_>| {
        let is_small = transfer.category == Category::CudaMemcpyH2d
            && transfer.number(ColumnId::Bytes).is_none_or(|bytes| bytes <= small);
        is_copy(transfer) && !is_small && transfer.category != Category::CudaMemcpyD2d
    };
    let limit = usize::try_from(params.limit).unwrap_or(usize::MAX);
    let of_transfers = |picks: Picks, holds: &dyn Fn(&Transfer<'_>) -> bool| {
        let rows = picked(timeline, picks).into_iter().flat_map(|call| {
            let launched = transfers.of_call(call.at).filter(|transfer| holds(transfer));
            launched.map(move |transfer| SyncPoint::Transfer(call, transfer))
        });
        rows.collect::<Vec<SyncPoint<'_>>>()
    };
    let synchronised = picked(timeline, calls).into_iter().map(SyncPoint::Call).collect();
    let rule = |name: &str, about: String, found| SyncRule::of(timeline, name, about, found, limit);
    vec![
        rule(
            "cuda_api_sync",
            "calls of cudaDeviceSynchronize and cudaStreamSynchronize".to_owned(),
            synchronised,
        ),
        rule(
            "cuda_memcpy_async",
            "cudaMemcpy*Async of pageable memory, which waits".to_owned(),
            of_transfers(pageable, &|transfer| is_copy(transfer) && transfer.is_pageable()),
        ),
        rule(
            "cuda_memcpy_sync",
            format!(
                "cudaMemcpy* that is not asynchronous, without copies within a device and those to the device of {small} bytes or fewer"
            ),
            of_transfers(copies, &waits),
        ),
        rule(
            "cuda_memset_sync",
            "cudaMemset* that is not asynchronous, of pinned or managed memory".to_owned(),
            of_transfers(memsets, &|transfer| !is_copy(transfer) && transfer.is_of_host()),
        ),
    ]
}

fn picked(timeline: &Timeline, picks: Picks) -> Vec<HostCall> {
    let Some(calls) = timeline.capture.events.get(&Category::CudaApi) else {
        return Vec::new();
    };
    let of_name = |name: usize| calls.names.get(name).is_some_and(|name| picks(without_version(name)));
    HostCall::list(timeline, Category::CudaApi, of_name)
}

enum SyncPoint<'a> {
    Call(HostCall),
    Transfer(HostCall, Transfer<'a>),
}

impl SyncPoint<'_> {
    fn time(&self) -> Interval {
        match self {
            Self::Call(call) => call.time,
            Self::Transfer(_, transfer) => Interval::of(transfer.events, transfer.at),
        }
    }

    fn row(&self, timeline: &Timeline) -> SyncRuleRow {
        let time = self.time();
        let (call, transfer) = match self {
            Self::Call(call) => (call, None),
            Self::Transfer(call, transfer) => (call, Some(transfer)),
        };
        let row = transfer.and_then(|transfer| transfer.events.row.get(transfer.at).copied());
        let row = row.unwrap_or(call.row);
        let of_row: Option<&Row> = timeline.row(row);
        let kind = |id| Some(transfer?.kind(id)?.name().to_owned());
        SyncRuleRow {
            duration_ns: time.len(),
            start_ns: time.start,
            api_name: call.name(timeline).to_owned(),
            process: of_row.map_or(0, |row| row.process),
            thread: of_row.and_then(|row| row.thread),
            source_kind: kind(ColumnId::SrcMemoryKind),
            destination_kind: kind(ColumnId::DstMemoryKind),
            bytes: transfer.and_then(|transfer| transfer.number(ColumnId::Bytes)),
            device: of_row.and_then(|row| row.device),
            context: of_row.and_then(|row| row.context),
            stream: of_row.and_then(|row| row.stream),
            row,
        }
    }
}

impl SyncRule {
    fn of(timeline: &Timeline, rule: &str, about: String, mut found: Vec<SyncPoint<'_>>, limit: usize) -> Self {
        found.sort_by_key(|found| (std::cmp::Reverse(found.time().len()), found.time().start));
        Self {
            rule: rule.to_owned(),
            about,
            count: u64::try_from(found.len()).unwrap_or(u64::MAX),
            total_ns: found.iter().map(|found| found.time().len()).sum(),
            rows: found.iter().take(limit).map(|found| found.row(timeline)).collect(),
            left_out: u64::try_from(found.len().saturating_sub(limit)).unwrap_or(u64::MAX),
        }
    }
}
