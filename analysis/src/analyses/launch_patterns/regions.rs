//! What each operator or range launched, itself and by those inside it.

use std::collections::BTreeMap;

use flopwatch_measures::holder::{HolderQuery, innermost, row_on};
use flopwatch_measures::launch::LaunchJoin;
use flopwatch_model::{Category, ColumnId, EventId, EventLinks, Events, Timeline, Track, index};

/// Names of GPU operations in the order in which the GPU operations began, as a sum of 128 bits.
/// Two sequences of one sum are taken for equal: of a million sequences two different ones have one
/// sum with a probability of 1e-27.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sequence {
    /// How many GPU operations.
    pub(super) gpu_ops: u64,
    sum: u128,
}

impl Sequence {
    fn push(&mut self, name: u32) {
        // FNV-1a of 128 bits by words, with the high half folded into the low one.
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
        self.sum = (self.sum ^ (u128::from(name) + 1).wrapping_mul(SPREAD)).wrapping_mul(PRIME);
        self.sum ^= self.sum >> 67;
        self.gpu_ops += 1;
    }
}

/// The operators or ranges of a category, and what they launched.
#[derive(Debug)]
pub(super) struct Regions {
    category: Category,
    parent: EventLinks,
    sequence: Vec<Sequence>,
    gpu_ns: Vec<u64>,
    of_launch: EventLinks,
}

impl Regions {
    /// Most operators or ranges around a call that it counts for: the innermost of them.
    pub(super) const MAX_LEVELS: usize = 128;

    /// Those of `events` whose name contains `under`. `by_call` is [`LaunchJoin::by_call`],
    /// `numbers` are the numbers of the names of GPU operations. The cost is a step per work and
    /// region around its call.
    pub(super) fn of(
        timeline: &Timeline,
        (category, events): (Category, &Events),
        under: &str,
        (joined, by_call, numbers): (&LaunchJoin, &[u32], &[u32]),
    ) -> Self {
        let fits: Vec<bool> = events.names.iter().map(|name| name.contains(under)).collect();
        let style = events.column(ColumnId::RangeStyle);
        let counts = |at: usize| {
            let name = events.name.get(at).and_then(|name| fits.get(name.index()));
            // Ranges of start/end style need not nest.
            name == Some(&true) && style.and_then(|style| style.get(at)).unwrap_or(0) == 0
        };
        let mut regions = Self {
            category,
            parent: events.parents(counts),
            sequence: vec![Sequence::default(); events.len()],
            gpu_ns: vec![0; events.len()],
            of_launch: regions_of_launches(timeline, (category, events), counts, (joined, by_call)),
        };
        // Launches are in the order in which their GPU operations began.
        for (at, (launch, name)) in joined.launches.iter().zip(numbers).enumerate() {
            let mut around = regions.of_launch.get(at);
            for _ in 0..Self::MAX_LEVELS {
                let Some(region) = around else { break };
                let position = region.index();
                let slots = regions.sequence.get_mut(position).zip(regions.gpu_ns.get_mut(position));
                let Some((sequence, gpu_ns)) = slots else { break };
                sequence.push(*name);
                *gpu_ns += launch.work.time.len();
                around = regions.parent(position);
            }
        }
        regions
    }

    /// The category of all of them.
    pub(super) const fn category(&self) -> Category {
        self.category
    }

    /// For each launch the innermost region that holds its call.
    pub(super) const fn of_launches(&self) -> &EventLinks {
        &self.of_launch
    }

    /// The region around the one at `at`.
    pub(super) fn parent(&self, at: usize) -> Option<EventId> {
        self.parent.get(at)
    }

    /// What the region at `at` launched.
    pub(super) fn sequence(&self, at: usize) -> Sequence {
        self.sequence.get(at).copied().unwrap_or_default()
    }

    /// Sum of the lengths of what it launched in ns.
    pub(super) fn gpu_ns(&self, at: usize) -> u64 {
        self.gpu_ns.get(at).copied().unwrap_or(0)
    }

    /// Tells `found` each launch of the regions that are keys of `listed`, with what stands there,
    /// in the order in which the GPU operations began.
    pub(super) fn works_of(&self, listed: &BTreeMap<EventId, usize>, mut found: impl FnMut(usize, usize)) {
        if listed.is_empty() {
            return;
        }
        let mut is_listed = vec![false; self.parent.len()];
        for region in listed.keys() {
            if let Some(slot) = is_listed.get_mut(region.index()) {
                *slot = true;
            }
        }
        for (launch, region) in self.of_launch.iter().enumerate() {
            let mut around = region;
            for _ in 0..Self::MAX_LEVELS {
                let Some((region, is_listed)) =
                    around.and_then(|region| Some((region, is_listed.get(region.index())?)))
                else {
                    break;
                };
                if let Some(position) = listed.get(&region).filter(|_| *is_listed) {
                    found(*position, launch);
                }
                around = self.parent(region.index());
            }
        }
    }
}

/// For each launch the innermost of `events` that holds its call.
fn regions_of_launches(
    timeline: &Timeline,
    (category, events): (Category, &Events),
    counts: impl Fn(usize) -> bool,
    (joined, by_call): (&LaunchJoin, &[u32]),
) -> EventLinks {
    let track = match category {
        Category::CpuOp => Track::CpuOp,
        Category::NvtxRange => Track::Nvtx,
        _ => Track::Annotation,
    };
    let rows = row_on(timeline, track);
    let calls = timeline.capture.events.get(&Category::CudaApi);
    let row_of = |call: usize| *rows.get(calls?.row.get(call)?.index())?;
    let asked = by_call.iter().filter_map(|at| {
        let launch = joined.launches.get(index(*at))?;
        let row = row_of(launch.at)?;
        let question = HolderQuery { time: launch.call, row };
        Some((index(*at), question))
    });
    let (launch_numbers, queries): (Vec<usize>, Vec<HolderQuery>) = asked.unzip();
    let mut found = EventLinks::none(joined.launches.len());
    for (at, region) in launch_numbers
        .into_iter()
        .zip(innermost(events, counts, &queries).iter())
    {
        if let Some(region) = region {
            found.set(at, region);
        }
    }
    found
}
