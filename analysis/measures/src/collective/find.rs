//! The collectives of a timeline.

use std::collections::{BTreeMap, HashMap};

use flopwatch_model::{Category, Column, ColumnId, Events, Needs, RowId, Timeline, Track, index};

use super::{CollectiveOperation, element_bytes};
use crate::holder::{HolderQuery, innermost, row_on};
use crate::interval::Interval;
use crate::kernel_class::WorkClass;

/// The columns that collectives are found by, and others beside them, for analyses that look at
/// both.
#[macro_export]
macro_rules! collective_columns_and {
    ($($other:expr),* $(,)?) => {
        &[
            ::flopwatch_model::ColumnId::Launch,
            ::flopwatch_model::ColumnId::RangeStyle,
            ::flopwatch_model::ColumnId::ExternalId,
            ::flopwatch_model::ColumnId::InElements,
            ::flopwatch_model::ColumnId::OutElements,
            ::flopwatch_model::ColumnId::GroupSize,
            ::flopwatch_model::ColumnId::Collective,
            ::flopwatch_model::ColumnId::ElementType,
            ::flopwatch_model::ColumnId::ProcessGroup,
            ::flopwatch_model::ColumnId::GroupRanks,
            $($other,)*
        ]
    };
}

/// A kernel of a collective, as one rank ran it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collective {
    /// When it ran, the wait for other ranks included.
    pub time: Interval,
    /// Index of the event among the kernels.
    pub at: u32,
    /// Row of the timeline: a stream of a process.
    pub row: RowId,
    /// What the ranks do.
    pub operation: CollectiveOperation,
    /// The message's bytes; see [`CollectiveOperation::message_bytes`]. `None` where the source
    /// does not say it.
    pub message_bytes: Option<u64>,
    /// Ranks that take part; `None` where the source does not say it.
    pub ranks: Option<u32>,
    /// Group of the collective: an index into [`Collectives::groups`].
    pub group: usize,
}

/// Ranks that communicate with each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// Name of the process group; empty where the source does not say it.
    pub name: String,
    /// Its ranks as JSON; empty where the source does not say it.
    pub ranks: String,
}

/// The collectives of a timeline.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collectives {
    /// Each of them, by start.
    pub all: Vec<Collective>,
    /// Groups that they refer to. The first stands for all of which the source says nothing.
    pub groups: Vec<Group>,
}

/// What a column of texts says, as places in it.
struct CollectiveColumns<'a> {
    operations: Option<(&'a Column, Vec<CollectiveOperation>)>,
    element_bytes: Option<(&'a Column, Vec<Option<u64>>)>,
    events: &'a Events,
}

impl<'a> CollectiveColumns<'a> {
    fn of(events: &'a Events) -> Self {
        let texts = |id: ColumnId| events.columns.iter().find(|column| column.id == id);
        let operations = texts(ColumnId::Collective).map(|column| {
            let operations = column.texts.iter().map(|text| CollectiveOperation::of(text));
            (column, operations.collect())
        });
        let element_bytes = texts(ColumnId::ElementType).map(|column| {
            let sizes = column.texts.iter().map(|text| element_bytes(text));
            (column, sizes.collect())
        });
        Self {
            operations,
            element_bytes,
            events,
        }
    }

    fn operation(&self, at: usize) -> Option<CollectiveOperation> {
        let (column, operations) = self.operations.as_ref()?;
        operations.get(text_number(column, at)?).copied()
    }

    fn number(&self, id: ColumnId, at: usize) -> Option<u64> {
        self.events.column(id)?.get(at).filter(|number| *number > 0)
    }

    fn bytes(&self, id: ColumnId, at: usize) -> Option<u64> {
        let (column, sizes) = self.element_bytes.as_ref()?;
        let size = sizes.get(text_number(column, at)?).copied().flatten()?;
        self.number(id, at)?.checked_mul(size)
    }

    fn group(&self, at: usize) -> Option<Group> {
        let name = self.events.text(ColumnId::ProcessGroup, at);
        let ranks = self.events.text(ColumnId::GroupRanks, at);
        (name.is_some() || ranks.is_some()).then(|| Group {
            name: name.unwrap_or_default().to_owned(),
            ranks: ranks.unwrap_or_default().to_owned(),
        })
    }
}

/// Where an event's text is in its column; `None` where it says nothing.
fn text_number(column: &Column, at: usize) -> Option<usize> {
    let number = usize::try_from(column.values.get(at)?).ok()?;
    (number > 0).then_some(number)
}

impl Collectives {
    /// What an analysis reads to find them all.
    pub const NEEDS: Needs = Needs::of(&[
        Category::CudaKernel,
        Category::CudaGraph,
        Category::CudaApi,
        Category::NvtxRange,
        Category::CpuOp,
        Category::Annotation,
    ])
    .columns(collective_columns_and![])
    .names()
    .rows();

    /// Those of `timeline`: its kernels that communicate. What a kernel does not say of itself is
    /// taken from the operator with its `External id` (PyTorch's `record_param_comms`), then from
    /// its name, and of NCCL's kernel for sends and receives from the range `nccl:...` around its
    /// launch.
    pub fn of(timeline: &Timeline) -> Self {
        let Some(kernels) = timeline.capture.events.get(&Category::CudaKernel) else {
            return Self::default();
        };
        let by_name: Vec<Option<CollectiveOperation>> = kernels
            .names
            .iter()
            .map(|name| {
                let communicates = WorkClass::of(Category::CudaKernel, name) == Some(WorkClass::Communication);
                communicates.then(|| CollectiveOperation::of(name))
            })
            .collect();
        let found: Vec<(u32, CollectiveOperation)> = (0_u32..)
            .zip(&kernels.name)
            .filter_map(|(at, name)| Some((at, by_name.get(name.index()).copied().flatten()?)))
            .collect();
        let operators = timeline.capture.events.get(&Category::CpuOp).map(CollectiveColumns::of);
        let by_id = operators.as_ref().map(operators_by_id).unwrap_or_default();
        let in_ranges = ranges_around(timeline, kernels, &found);
        let columns = CollectiveColumns::of(kernels);
        let ids = kernels.column(ColumnId::ExternalId);
        let mut groups: BTreeMap<Group, usize> = BTreeMap::new();
        groups.insert(Group::default(), 0);
        let mut all = Vec::with_capacity(found.len());
        for ((at, by_name), in_range) in found.into_iter().zip(in_ranges) {
            let position = index(at);
            let Some(row) = kernels.row.get(position).copied() else {
                continue;
            };
            let id = ids.and_then(|ids| ids.get(position)).filter(|id| *id > 0);
            let operator = id.and_then(|id| by_id.get(&id).copied()).zip(operators.as_ref());
            let of_operator = |read: &dyn Fn(&CollectiveColumns<'_>, usize) -> Option<u64>| {
                operator.and_then(|(at, operators)| read(operators, index(at)))
            };
            let number = |read: &dyn Fn(&CollectiveColumns<'_>, usize) -> Option<u64>| {
                read(&columns, position).or_else(|| of_operator(read))
            };
            let operation = columns
                .operation(position)
                .or_else(|| operator.and_then(|(at, operators)| operators.operation(index(at))))
                .or_else(|| in_range.filter(|_| is_vague(by_name)))
                .unwrap_or(by_name);
            let group = columns
                .group(position)
                .or_else(|| operator.and_then(|(at, operators)| operators.group(index(at))));
            let next = groups.len();
            let ranks = number(&|columns, at| columns.number(ColumnId::GroupSize, at));
            all.push(Collective {
                time: Interval::of(kernels, position),
                at,
                row,
                operation,
                message_bytes: operation.message_bytes(
                    number(&|columns, at| columns.bytes(ColumnId::InElements, at)),
                    number(&|columns, at| columns.bytes(ColumnId::OutElements, at)),
                ),
                ranks: ranks.and_then(|ranks| u32::try_from(ranks).ok()),
                group: group.map_or(0, |group| *groups.entry(group).or_insert(next)),
            });
        }
        let mut ordered: Vec<(Group, usize)> = groups.into_iter().collect();
        ordered.sort_unstable_by_key(|(_, at)| *at);
        Self {
            all,
            groups: ordered.into_iter().map(|(group, _)| group).collect(),
        }
    }
}

/// The operators that describe a collective, by their `External id`.
fn operators_by_id(operators: &CollectiveColumns<'_>) -> HashMap<u64, u32> {
    let Some((ids, (column, _))) = operators
        .events
        .column(ColumnId::ExternalId)
        .zip(operators.operations.as_ref())
    else {
        return HashMap::new();
    };
    let all = 0..u32::try_from(operators.events.len()).unwrap_or(u32::MAX);
    let described = all.filter(|at| text_number(column, index(*at)).is_some());
    described
        .filter_map(|at| Some((ids.get(index(at)).filter(|id| *id > 0)?, at)))
        .collect()
}

/// What the range `nccl:...` around each kernel's launch says that it is.
fn ranges_around(
    timeline: &Timeline,
    kernels: &Events,
    found: &[(u32, CollectiveOperation)],
) -> Vec<Option<CollectiveOperation>> {
    let mut operations = vec![None; found.len()];
    let Some((calls, launches)) = timeline
        .capture
        .events
        .get(&Category::CudaApi)
        .zip(kernels.column(ColumnId::Launch))
    else {
        return operations;
    };
    let launch = |at: u32| {
        let launch = u32::try_from(launches.get(index(at))?).ok()?;
        (launch != ColumnId::NO_LAUNCH).then(|| index(launch))
    };
    for (category, track) in [
        (Category::NvtxRange, Track::Nvtx),
        (Category::Annotation, Track::Annotation),
    ] {
        let Some(ranges) = timeline.capture.events.get(&category) else {
            continue;
        };
        let of_name: Vec<Option<CollectiveOperation>> = ranges.names.iter().map(|name| named(name)).collect();
        let says = |at: usize| of_name.get(ranges.name.get(at)?.index()).copied().flatten();
        let rows = row_on(timeline, track);
        let mut asked: Vec<(usize, HolderQuery)> = (0..)
            .zip(found)
            .filter_map(|(position, (at, _))| {
                let call = launch(*at)?;
                let row = rows.get(calls.row.get(call)?.index()).copied().flatten()?;
                let time = Interval::of(calls, call);
                Some((position, HolderQuery { time, row }))
            })
            .collect();
        asked.sort_by_key(|(_, query)| query.time.start);
        let queries: Vec<HolderQuery> = asked.iter().map(|(_, query)| *query).collect();
        let around = innermost(ranges, |at| says(at).is_some(), &queries);
        for ((position, _), range) in asked.into_iter().zip(around.iter()) {
            let said = range.and_then(|range| says(range.index()));
            if let Some((slot, operation)) = operations.get_mut(position).zip(said) {
                *slot = Some(operation);
            }
        }
    }
    operations
}

/// Whether a kernel of that name may be part of several collectives: NCCL makes all-to-all of sends
/// and receives.
const fn is_vague(by_name: CollectiveOperation) -> bool {
    matches!(by_name, CollectiveOperation::SendReceive | CollectiveOperation::Other)
}

/// The collective that a range's name tells: PyTorch's `nccl:all_reduce`, NCCL's `ncclAllReduce`
/// (behind its domain `NCCL`).
fn named(name: &str) -> Option<CollectiveOperation> {
    let bare = name.strip_prefix("NCCL:").unwrap_or(name).trim_start();
    let operation = CollectiveOperation::of(bare.strip_prefix("nccl")?);
    (operation != CollectiveOperation::Other).then_some(operation)
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;

    use super::*;

    #[test]
    fn a_kernel_tells_its_collective_itself() {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 20);
        let gather = trace.kernel(stream, "ncclDevKernel_Generic(x)", 10, 30);
        trace.text(gather, ColumnId::Collective, "_allgather_base");
        trace.text(gather, ColumnId::ElementType, "BFloat16");
        trace.text(gather, ColumnId::ProcessGroup, "tp");
        trace.number(gather, ColumnId::InElements, 8);
        trace.number(gather, ColumnId::OutElements, 32);
        trace.number(gather, ColumnId::GroupSize, 4);
        trace.kernel(stream, "gemm", 30, 40);
        let found = Collectives::of(&trace.build());
        let [gather] = found.all[..] else {
            panic!("{found:?}");
        };
        assert_eq!(gather.operation, CollectiveOperation::AllGather);
        assert_eq!((gather.message_bytes, gather.ranks), (Some(64), Some(4)));
        assert_eq!(found.groups[gather.group].name, "tp");
    }

    #[test]
    fn what_a_kernel_does_not_say_is_said_by_its_operator_or_the_range_around_its_launch() {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 20);
        let (calls, ranges) = (trace.thread(1, 5, Track::CudaApi), trace.thread(1, 5, Track::Nvtx));
        let operators = trace.thread(1, 5, Track::CpuOp);
        trace.event(Category::NvtxRange, ranges, "nccl:all_to_all, op_id = 7", 0, 10);
        let call = trace.call(calls, "cudaLaunchKernelExC", 2, 4);
        let in_range = trace.kernel(stream, "ncclDevKernel_SendRecv(x)", 10, 30);
        trace.launched_by(in_range, call);
        let operator = trace.event(Category::CpuOp, operators, "record_param_comms", 20, 22);
        trace.number(operator, ColumnId::ExternalId, 77);
        trace.number(operator, ColumnId::InElements, 6);
        trace.text(operator, ColumnId::Collective, "allreduce");
        trace.text(operator, ColumnId::ElementType, "Float");
        let of_operator = trace.kernel(stream, "ncclDevKernel_Generic(x)", 40, 60);
        trace.number(of_operator, ColumnId::ExternalId, 77);
        let found = Collectives::of(&trace.build());
        let columns: Vec<_> = found.all.iter().map(|one| (one.operation, one.message_bytes)).collect();
        assert_eq!(
            columns,
            [
                (CollectiveOperation::AllToAll, None),
                (CollectiveOperation::AllReduce, Some(24))
            ]
        );
    }
}
