//! Names of kernels in the tables of `nsys stats`: in the form that the user asked for, and with
//! the NVTX range around the kernel's launch before the name where the user asked for that too.

use std::collections::{BTreeMap, HashMap};

use flopwatch_measures::{call_ranges, kernel_name};
use flopwatch_model::{Category, ColumnId, EventId, Events, NameDetail, NameId, Row, Timeline, count, index};
use flopwatch_report::NotCaptured;

use super::parameters::{NsysKernelName, NsysKernelParams};

/// Categories that these names are made of where a range may stand before a name, and CUDA graphs,
/// whose kernels a capture may lack.
pub(super) const KERNELS_AND_RANGES: &[Category] = &[
    Category::CudaKernel,
    Category::CudaGraph,
    Category::CudaApi,
    Category::NvtxRange,
];

/// The kernels of a timeline with their names.
pub(super) struct Kernels<'a> {
    pub(super) events: &'a Events,
    /// The distinct names. A kernel's name is told by its number, an index into this list.
    names: Vec<String>,
    /// The number for each name of `events`.
    numbers_by_event_name: Vec<u32>,
    /// The number for each kernel, where ranges stand before names; else it follows from the name
    /// of the event.
    numbers_by_kernel: Option<Vec<u32>>,
    /// What the capture lacks for the names.
    pub(super) not_captured: Vec<NotCaptured>,
}

impl<'a> Kernels<'a> {
    /// The kernels of `timeline`, with the names that `params` ask for; `None` where the timeline
    /// has no kernels.
    pub(super) fn of(timeline: &'a Timeline, params: &NsysKernelParams) -> Option<Self> {
        let mut kernels = Self::named(timeline, params.name)?;
        if params.nvtx_name {
            kernels.add_ranges_to_names(timeline);
        }
        Some(kernels)
    }

    /// The kernels of `timeline`, with no ranges before their names; `None` where the timeline has
    /// no kernels.
    pub(super) fn named(timeline: &'a Timeline, name: NsysKernelName) -> Option<Self> {
        let events = timeline.capture.events.get(&Category::CudaKernel)?;
        let symbols = events.name_details.get(&NameDetail::Mangled);
        let mut number_by_name: BTreeMap<&str, u32> = BTreeMap::new();
        let (mut names, mut numbers_by_event_name, mut without_symbol) = (Vec::new(), Vec::new(), 0_usize);
        for (position, demangled) in events.names.iter().enumerate() {
            let symbol = || {
                let symbol = symbols.and_then(|symbols| symbols.get(position));
                symbol.filter(|text| !text.is_empty())
            };
            let text = match name {
                NsysKernelName::Demangled => demangled,
                NsysKernelName::Base => kernel_name::short_of(events, position),
                NsysKernelName::Mangled => symbol().unwrap_or(demangled),
            };
            without_symbol += usize::from(name == NsysKernelName::Mangled && symbol().is_none());
            let next = u32::try_from(names.len()).unwrap_or(u32::MAX);
            numbers_by_event_name.push(*number_by_name.entry(text).or_insert_with(|| {
                names.push(text.to_owned());
                next
            }));
        }
        let mut not_captured = Vec::new();
        if without_symbol > 0 {
            let reason = format!(
                "the source does not say them for {without_symbol} of {} kernels by name, which keep their whole names",
                events.names.len()
            );
            not_captured.push(NotCaptured::new("symbols of kernels", reason));
        }
        Some(Self {
            events,
            names,
            numbers_by_event_name,
            numbers_by_kernel: None,
            not_captured,
        })
    }

    /// The distinct names. A number is an index into them.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of a kernel's name; `None` where there is no such kernel.
    pub(super) fn number(&self, kernel: usize) -> Option<u32> {
        let number = if let Some(numbers) = &self.numbers_by_kernel {
            numbers.get(kernel)
        } else {
            let name = self.events.name.get(kernel);
            name.and_then(|name| self.numbers_by_event_name.get(name.index()))
        };
        number.copied()
    }

    /// A kernel's name.
    pub(super) fn name(&self, kernel: usize) -> &str {
        self.number(kernel).map_or("", |number| self.name_of_number(number))
    }

    /// The name with this number; empty where there is none.
    pub(super) fn name_of_number(&self, number: u32) -> &str {
        self.names.get(index(number)).map_or("", String::as_str)
    }

    /// The row of a kernel: its stream.
    pub(super) fn row(&self, timeline: &'a Timeline, kernel: usize) -> Option<&'a Row> {
        timeline.row(*self.events.row.get(kernel)?)
    }

    /// For each kernel the call that launched it, as an index of the events of
    /// [`Category::CudaApi`]; [`ColumnId::NO_LAUNCH`] where the call was not recorded.
    pub(super) fn launches(&self) -> Vec<u32> {
        let column = self.events.column(ColumnId::Launch);
        let launch = |kernel| column.and_then(|column| u32::try_from(column.get(kernel)?).ok());
        (0..self.events.len())
            .map(|kernel| launch(kernel).unwrap_or(ColumnId::NO_LAUNCH))
            .collect()
    }

    /// A function from a kernel to its grid and its block, each as x, y and z; 0 where the capture
    /// does not say.
    pub(super) fn shape(&self) -> impl Fn(usize) -> [[u32; 3]; 2] + use<'a> {
        let columns = [
            [ColumnId::GridX, ColumnId::GridY, ColumnId::GridZ],
            [ColumnId::BlockX, ColumnId::BlockY, ColumnId::BlockZ],
        ];
        let columns = columns.map(|ids| ids.map(|id| self.events.column(id)));
        move |kernel| {
            columns.map(|axes| {
                axes.map(|values| {
                    let value = values.and_then(|values| values.get(kernel)).unwrap_or(0);
                    u32::try_from(value).unwrap_or(u32::MAX)
                })
            })
        }
    }

    /// Puts the text of the innermost NVTX range around a kernel's launch before the kernel's name.
    /// Kernels whose launch is not recorded, or is in no range, keep their names.
    fn add_ranges_to_names(&mut self, timeline: &Timeline) {
        let needed: [(&[Category], &str); 2] = [
            (&[Category::NvtxRange], "ranges before names"),
            (&[Category::CudaApi], "launches of kernels"),
        ];
        let missing = NotCaptured::of_parts(&timeline.capture, &needed);
        self.not_captured.extend(missing);
        let Some(ranges) = timeline.capture.events.get(&Category::NvtxRange) else {
            return;
        };
        let launches = self.launches();
        // Pairs of a launch and a kernel, in the order of the launches.
        let mut launched_kernels: Vec<(u32, u32)> = launches.into_iter().zip(0..).collect();
        launched_kernels.retain(|(launch, _)| *launch != ColumnId::NO_LAUNCH);
        launched_kernels.sort_unstable();
        let mut numbers_by_kernel: Vec<u32> = (0..self.events.len())
            .filter_map(|kernel| self.number(kernel))
            .collect();
        let mut number_by_pair: HashMap<(NameId, u32), u32> = HashMap::new();
        let mut number_by_text: HashMap<String, u32> = HashMap::new();
        let mut kernels_by_launch = launched_kernels.chunk_by(|a, b| a.0 == b.0);
        let first_kernels = launched_kernels
            .chunk_by(|a, b| a.0 == b.0)
            .filter_map(|kernels| kernels.first());
        let calls = first_kernels.map(|(launch, _)| EventId::new(*launch));
        call_ranges::visit(timeline, calls, |_, enclosing_ranges| {
            let kernels = kernels_by_launch.next().unwrap_or_default();
            let Some(range) = enclosing_ranges.last().map(|range| range.index()) else {
                return;
            };
            let Some(range_name) = ranges.name.get(range).copied() else {
                return;
            };
            for (_, kernel) in kernels {
                let Some(number) = numbers_by_kernel.get_mut(index(*kernel)) else {
                    continue;
                };
                let old_number = *number;
                *number = *number_by_pair.entry((range_name, old_number)).or_insert_with(|| {
                    let name = self.names.get(index(old_number)).map_or("", String::as_str);
                    let text = format!("{}/{name}", text_without_domain(ranges, range));
                    let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
                    *number_by_text.entry(text).or_insert_with_key(|text| {
                        self.names.push(text.clone());
                        next
                    })
                });
            }
        });
        self.numbers_by_kernel = Some(numbers_by_kernel);
    }

    /// Number of kernels, and number of kernels without a recorded launch.
    pub(super) fn coverage(&self, launches: &[u32]) -> [u64; 2] {
        let without_launch = launches.iter().filter(|launch| **launch == ColumnId::NO_LAUNCH);
        [self.events.count(), count(without_launch.count())]
    }
}

/// The text of a range without its NVTX domain, which `nsys stats` leaves out where a range stands
/// before a kernel's name.
fn text_without_domain(ranges: &Events, range: usize) -> &str {
    let name = ranges.name_of(range);
    let text = |domain: &str| name.strip_prefix(domain)?.strip_prefix(':');
    ranges
        .name_detail(NameDetail::Domain, range)
        .and_then(text)
        .unwrap_or(name)
}
