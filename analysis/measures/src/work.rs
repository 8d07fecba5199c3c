//! The work of GPUs across categories: kernels, whole graphs, copies and memsets in the order of
//! their starts.

use std::collections::BTreeMap;

use flopwatch_model::{Category, ColumnId, Events, Needs, RowId, Timeline, gpu_work_and, index};

use crate::interval::{Interval, Intervals};
use crate::kernel_class::WorkClass;

/// What an analysis needs so that [`GpuWork::of`] finds everything: the categories of GPU work.
pub const GPU_WORK: &[Category] = gpu_work_and![];

/// What [`GpuWork::of`] reads.
pub const NAMED_WORK: Needs = Needs::of(GPU_WORK).names().rows();

/// A kernel, a whole graph, a copy or a memset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// When it ran.
    pub time: Interval,
    /// Category of the work.
    pub category: Category,
    /// Index of the work among the events of its category.
    pub at: u32,
    /// Row of the timeline: a stream of a process.
    pub row: RowId,
    /// Purpose of the work.
    pub class: WorkClass,
}

impl Work {
    /// Columns of the events of the work's category; `None` where the capture has none.
    pub fn events(self, timeline: &Timeline) -> Option<&Events> {
        timeline.capture.events.get(&self.category)
    }

    /// Name of the work.
    pub fn name(self, timeline: &Timeline) -> &str {
        self.events(timeline)
            .map_or("", |events| events.name_of(index(self.at)))
    }

    /// How many bytes it moved or set; `None` where the source does not say it. Needs
    /// [`ColumnId::Bytes`].
    pub fn bytes(self, timeline: &Timeline) -> Option<u64> {
        self.events(timeline)?.number(ColumnId::Bytes, index(self.at))
    }

    /// The place of the call that launched it among the events of [`Category::CudaApi`]; `None`
    /// where it was not recorded. Needs [`ColumnId::Launch`]. One launch of a CUDA graph has many
    /// GPU operations.
    pub fn launch(self, timeline: &Timeline) -> Option<usize> {
        let launch = self.events(timeline)?.column(ColumnId::Launch)?.get(index(self.at))?;
        let launch = u32::try_from(launch).ok()?;
        (launch != ColumnId::NO_LAUNCH).then(|| index(launch))
    }
}

/// The work of all GPUs of a timeline, by start. Needs rows and names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuWork {
    all: Vec<Work>,
}

impl GpuWork {
    /// All GPU work of the timeline.
    pub fn of(timeline: &Timeline) -> Self {
        let categories = GPU_WORK.iter().copied();
        let lists = categories.filter_map(|category| Some((category, timeline.capture.events.get(&category)?)));
        let mut all = Vec::new();
        for (category, events) in lists {
            let classes: Vec<WorkClass> = events
                .names
                .iter()
                .map(|name| WorkClass::of(category, name).unwrap_or(WorkClass::Compute))
                .collect();
            let usual = WorkClass::of(category, "").unwrap_or(WorkClass::Compute);
            for (at, row) in (0_u32..).zip(&events.row) {
                let name = events.name.get(index(at)).map(|name| name.index());
                all.push(Work {
                    time: Interval::of(events, index(at)),
                    category,
                    at,
                    row: *row,
                    class: name.and_then(|name| classes.get(name)).copied().unwrap_or(usual),
                });
            }
        }
        // Each category is sorted already: the stable sort merges their runs.
        all.sort_by_key(|work| work.time.start);
        Self { all }
    }

    /// Of pieces that are in the order of their starts.
    pub fn sorted(all: Vec<Work>) -> Self {
        Self { all }
    }

    /// Every piece, by start.
    pub fn all(&self) -> &[Work] {
        &self.all
    }

    /// The work of each row, which is a stream of a process.
    pub fn by_row(&self) -> BTreeMap<RowId, Self> {
        let mut rows: BTreeMap<RowId, Self> = BTreeMap::new();
        for work in &self.all {
            rows.entry(work.row).or_default().all.push(*work);
        }
        rows
    }

    /// The places in [`GpuWork::all`] of each group, in the order of starts. Rows without a key are
    /// left out.
    pub fn places_by<K: Ord>(&self, key: impl Fn(RowId) -> Option<K>) -> BTreeMap<K, Vec<u32>> {
        let mut groups: BTreeMap<K, Vec<u32>> = BTreeMap::new();
        for (at, work) in (0_u32..).zip(&self.all) {
            if let Some(key) = key(work.row) {
                groups.entry(key).or_default().push(at);
            }
        }
        groups
    }

    /// When any of it ran.
    pub fn busy(&self) -> Intervals {
        self.all.iter().map(|work| work.time).collect()
    }

    /// When work of `class` ran.
    pub fn busy_with(&self, class: WorkClass) -> Intervals {
        let of_class = self.all.iter().filter(|work| work.class == class);
        of_class.map(|work| work.time).collect()
    }

    /// From the first start to the last end; `None` without work.
    pub fn span(&self) -> Option<Interval> {
        let start = self.all.first()?.time.start;
        let end = self.all.iter().map(|work| work.time.end).max()?;
        Some(Interval::new(start, end))
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_model::{Event, Row, Track};

    use super::*;

    fn row(device: u32, stream: u64) -> Row {
        Row {
            device: Some(device),
            context: Some(1),
            stream: Some(stream),
            ..Row::of(1, Track::GpuStream)
        }
    }

    #[test]
    fn work_of_all_categories_is_in_the_order_of_starts() {
        let mut timeline = Timeline::default();
        timeline.capture.rows = vec![row(0, 7), row(1, 7)];
        for (category, start_ns, row) in [
            (Category::CudaKernel, 10, 0),
            (Category::CudaMemcpyH2d, 5, 0),
            (Category::CudaMemset, 20, 1),
        ] {
            let mut events = Events::new(category);
            let event = Event {
                start_ns,
                duration_ns: 10,
                row: RowId::new(row),
                ..Event::default()
            };
            events.push(event, &[]);
            events.names.push("work".to_owned());
            timeline.capture.events.insert(category, events);
        }
        let work = GpuWork::of(&timeline);
        let starts: Vec<u64> = work.all().iter().map(|work| work.time.start).collect();
        assert_eq!(starts, [5, 10, 20]);
        assert_eq!(work.busy().len_ns(), 25);
        assert_eq!(work.busy_with(WorkClass::Compute).len_ns(), 10);
        assert_eq!(work.span(), Some(Interval::new(5, 30)));
        let kernel = work
            .all()
            .iter()
            .find(|work| work.category == Category::CudaKernel)
            .unwrap();
        assert_eq!(kernel.launch(&timeline), None);
    }
}
