//! Kernels by the name that was asked for, with the range of their launch before it or without.

use std::collections::{BTreeMap, HashMap};

use flopwatch_measures::{call_ranges, kernel_name};
use flopwatch_model::{Category, ColumnId, Events, NameDetail, Row, Timeline, count, index};
use flopwatch_report::NotCaptured;

use super::parameters::{NsysKernelName, NsysKernelParams};

/// What the names of kernels are made of where ranges may stand before them; and the graphs that
/// may hide kernels.
pub(super) const KERNELS_AND_RANGES: &[Category] = &[
    Category::CudaKernel,
    Category::CudaGraph,
    Category::CudaApi,
    Category::NvtxRange,
];

/// The kernels of a timeline and what they are called.
pub(super) struct Kernels<'a> {
    pub(super) events: &'a Events,
    /// The names.
    names: Vec<String>,
    /// Which of them a name of the events stands for.
    of_name: Vec<u32>,
    /// Which of them each kernel has, where that is not told by its own name.
    of_kernel: Option<Vec<u32>>,
    /// What the names lack.
    pub(super) not_captured: Vec<NotCaptured>,
}

impl<'a> Kernels<'a> {
    /// The kernels of `timeline`; `None` without any.
    pub(super) fn of(timeline: &'a Timeline, params: &NsysKernelParams) -> Option<Self> {
        let mut kernels = Self::named(timeline, params.name)?;
        if params.nvtx_name {
            kernels.put_ranges_before(timeline);
        }
        Some(kernels)
    }

    /// The kernels without ranges before their names.
    pub(super) fn named(timeline: &'a Timeline, name: NsysKernelName) -> Option<Self> {
        let events = timeline.capture.events.get(&Category::CudaKernel)?;
        let symbols = events.name_details.get(&NameDetail::Mangled);
        let mut known: BTreeMap<&str, u32> = BTreeMap::new();
        let (mut names, mut of_name, mut missing) = (Vec::new(), Vec::new(), 0_usize);
        for (at, whole) in events.names.iter().enumerate() {
            let symbol = || {
                let symbol = symbols.and_then(|symbols| symbols.get(at));
                symbol.filter(|text| !text.is_empty())
            };
            let text = match name {
                NsysKernelName::Demangled => whole,
                NsysKernelName::Base => kernel_name::short_of(events, at),
                NsysKernelName::Mangled => symbol().unwrap_or(whole),
            };
            missing += usize::from(name == NsysKernelName::Mangled && symbol().is_none());
            let next = u32::try_from(names.len()).unwrap_or(u32::MAX);
            of_name.push(*known.entry(text).or_insert_with(|| {
                names.push(text.to_owned());
                next
            }));
        }
        let mut not_captured = Vec::new();
        if missing > 0 {
            let reason = format!(
                "the source does not say them for {missing} of {} kernels by name, which keep their whole names",
                events.names.len()
            );
            not_captured.push(NotCaptured::new("symbols of kernels", reason));
        }
        Some(Self {
            events,
            names,
            of_name,
            of_kernel: None,
            not_captured,
        })
    }

    /// The names, which numbers are places in.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of a kernel's name.
    pub(super) fn number(&self, at: usize) -> u32 {
        let own = || self.events.name.get(at).and_then(|name| self.of_name.get(index(*name)));
        let of_kernel = self.of_kernel.as_ref().map_or_else(own, |numbers| numbers.get(at));
        of_kernel.copied().unwrap_or(0)
    }

    /// A kernel's name.
    pub(super) fn name(&self, at: usize) -> &str {
        self.name_of_number(self.number(at))
    }

    /// The name of that number.
    pub(super) fn name_of_number(&self, number: u32) -> &str {
        self.names.get(index(number)).map_or("", String::as_str)
    }

    /// A kernel's row: a stream.
    pub(super) fn row(&self, timeline: &'a Timeline, at: usize) -> Option<&'a Row> {
        timeline.row(*self.events.row.get(at)?)
    }

    /// The call that launched each kernel, among the events of [`Category::CudaApi`]; [`ColumnId::NO_LAUNCH`] where it was not recorded.
    pub(super) fn launches(&self) -> Vec<u32> {
        let column = self.events.column(ColumnId::Launch);
        let launch = |at| column.and_then(|column| u32::try_from(column.get(at)?).ok());
        (0..self.events.len())
            .map(|at| launch(at).unwrap_or(ColumnId::NO_LAUNCH))
            .collect()
    }

    /// Grid and block of a launch.
    pub(super) fn shape(&self) -> impl Fn(usize) -> [[u32; 3]; 2] + use<'a> {
        let columns = [
            [ColumnId::GridX, ColumnId::GridY, ColumnId::GridZ],
            [ColumnId::BlockX, ColumnId::BlockY, ColumnId::BlockZ],
        ];
        let columns = columns.map(|ids| ids.map(|id| self.events.column(id)));
        move |at| {
            columns.map(|axes| {
                axes.map(|values| {
                    let value = values.and_then(|values| values.get(at)).unwrap_or(0);
                    u32::try_from(value).unwrap_or(u32::MAX)
                })
            })
        }
    }

    fn put_ranges_before(&mut self, timeline: &Timeline) {
        let lacks = [
            (Category::NvtxRange, "ranges before names"),
            (Category::CudaApi, "launches of kernels"),
        ];
        let lacks = lacks.map(|(category, what)| NotCaptured::unless_any(&timeline.capture, &[category], what));
        self.not_captured.extend(lacks.into_iter().flatten());
        let Some(ranges) = timeline.capture.events.get(&Category::NvtxRange) else {
            return;
        };
        let launches = self.launches();
        let mut order: Vec<(u32, u32)> = launches.into_iter().zip(0..).collect();
        order.retain(|(launch, _)| *launch != ColumnId::NO_LAUNCH);
        order.sort_unstable();
        let mut of_kernel: Vec<u32> = (0..self.events.len()).map(|at| self.number(at)).collect();
        let mut known: HashMap<(u32, u32), u32> = HashMap::new();
        let mut by_text: HashMap<String, u32> = HashMap::new();
        let mut of_launches = order.chunk_by(|a, b| a.0 == b.0);
        let calls = order.chunk_by(|a, b| a.0 == b.0).filter_map(|kernels| kernels.first());
        call_ranges::visit(timeline, calls.map(|(launch, _)| *launch), |_, around| {
            let kernels = of_launches.next().unwrap_or_default();
            let Some(range) = around.last().map(|range| index(*range)) else {
                return;
            };
            for (_, kernel) in kernels {
                let Some(number) = of_kernel.get_mut(index(*kernel)) else {
                    continue;
                };
                let pair = (ranges.name.get(range).copied().unwrap_or(0), *number);
                *number = *known.entry(pair).or_insert_with(|| {
                    let name = self.names.get(index(pair.1)).map_or("", String::as_str);
                    let text = format!("{}/{name}", without_domain(ranges, range));
                    let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
                    *by_text.entry(text).or_insert_with_key(|text| {
                        self.names.push(text.clone());
                        next
                    })
                });
            }
        });
        self.of_kernel = Some(of_kernel);
    }

    /// How many kernels there are, and how many of them have no recorded launch.
    pub(super) fn coverage(&self, launches: &[u32]) -> [u64; 2] {
        let without = launches.iter().filter(|launch| **launch == ColumnId::NO_LAUNCH);
        [self.events.count(), count(without.count())]
    }
}

/// The text of a range alone: nsys leaves the domain out where the range stands before a kernel's name.
fn without_domain(ranges: &Events, at: usize) -> &str {
    let name = ranges.name_of(at);
    let bare = |domain: &str| name.strip_prefix(domain)?.strip_prefix(':');
    ranges
        .name_detail(NameDetail::Domain, at)
        .and_then(bare)
        .unwrap_or(name)
}
