//! Several captures as one: of one program one after the other, or of several programs side by
//! side.

use super::call_stacks::moved;
use super::{Capture, Column, ColumnId, CounterSeries, Events, NameId, RowId, Values};

/// Why captures cannot be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// One of several does not say when it began, so that its times have no place among those of
    /// the others.
    #[error("capture {0} of several does not say when it began, so that they cannot be brought onto one clock")]
    NoStart(usize),
    /// Together they have more rows, or names of a category, than ids can tell apart.
    #[error("the captures have more {0} together than 32 bits can tell apart; merge fewer of them")]
    TooMany(&'static str),
}

impl Capture {
    /// One capture of all of `captures`, on the clock of the one that began first. Time that none
    /// of them covers has no events. One that says of no time at all, such as that of a process
    /// that did nothing, needs no place among the others: it adds what it says beside its events.
    ///
    /// A device, a program or a series that several of them have is there once, and so is a row
    /// after the transform: a process or a device means the same in all of them. One capture stays
    /// as it is, and of none there is an empty one.
    pub fn merge(captures: Vec<Self>) -> Result<Self, MergeError> {
        let without_start = captures
            .iter()
            .position(|capture| capture.session_start_utc_ns.is_none() && capture.has_times());
        let is_placed = |capture: &Self| capture.session_start_utc_ns.is_some() || capture.has_times();
        let (mut placed, timeless): (Vec<_>, Vec<_>) = captures.into_iter().partition(is_placed);
        if let Some(at) = without_start.filter(|_| placed.len() > 1) {
            return Err(MergeError::NoStart(at));
        }
        placed.sort_by_key(|capture| capture.session_start_utc_ns);
        let mut captures = placed.into_iter().chain(timeless);
        let mut merged = captures.next().unwrap_or_default();
        for capture in captures {
            merged.append(capture)?;
        }
        Ok(merged)
    }

    /// Whether anything in it has a time.
    pub fn has_times(&self) -> bool {
        self.duration_ns > 0
            || self.events.values().any(|events| !events.is_empty())
            || self.counters.iter().any(|series| !series.t_ns.is_empty())
            || !self.allocations.is_empty()
    }

    /// Adds a capture that began no earlier, or has no times.
    fn append(&mut self, other: Self) -> Result<(), MergeError> {
        let later = other
            .session_start_utc_ns
            .zip(self.session_start_utc_ns)
            .map_or(0, |(other, own)| other.saturating_sub(own));
        let rows = self.rows.len();
        self.duration_ns = self.duration_ns.max(later.saturating_add(other.duration_ns));
        self.rows.extend(other.rows);
        let stacks = self.call_stacks.append(other.call_stacks);
        for (category, mut events) in other.events {
            for start in &mut events.start_ns {
                *start = start.saturating_add(later);
            }
            for row in &mut events.row {
                let moved = row.index().checked_add(rows).and_then(RowId::from_index);
                *row = moved.ok_or(MergeError::TooMany("rows"))?;
            }
            if let Some(Values::U32(values)) = events.column_mut(ColumnId::CallStack) {
                for stack in values {
                    *stack = moved(*stack, stacks);
                }
            }
            let own = self.events.entry(category).or_insert_with(|| Events::new(category));
            own.append(events)?;
        }
        for mut allocation in other.allocations {
            allocation.t_ns = allocation.t_ns.saturating_add(later);
            self.allocations.push(allocation);
        }
        for mut series in other.counters {
            for time in &mut series.t_ns {
                *time = time.saturating_add(later);
            }
            match self.counters.iter_mut().find(|own| own.is_same(&series)) {
                Some(own) => own.append(series),
                None => self.counters.push(series),
            }
        }
        for device in other.devices {
            if self.devices.iter().all(|own| own.id != device.id) {
                self.devices.push(device);
            }
        }
        for program in other.programs {
            if !self.programs.contains(&program) {
                self.programs.push(program);
            }
        }
        for option in other.source.capture_options {
            if !self.source.capture_options.contains(&option) {
                self.source.capture_options.push(option);
            }
        }
        self.captured.extend(other.captured);
        self.profiles.extend(other.profiles);
        self.stacks = self.stacks.take().or(other.stacks);
        for loss in other.losses.list() {
            self.losses.add(loss.reason, &loss.what, loss.count);
        }
        self.redactions = self.redactions.saturating_add(other.redactions);
        Ok(())
    }
}

impl CounterSeries {
    fn is_same(&self, other: &Self) -> bool {
        (&self.source, &self.device, &self.metric, &self.unit)
            == (&other.source, &other.device, &other.metric, &other.unit)
    }

    /// Adds the samples of the same series of another capture, in the order of time.
    fn append(&mut self, other: Self) {
        self.t_ns.extend(other.t_ns);
        self.value.extend(other.value);
        if !self.t_ns.is_sorted() {
            let times = std::mem::take(&mut self.t_ns).into_iter();
            let mut samples: Vec<_> = times.zip(std::mem::take(&mut self.value)).collect();
            samples.sort_by_key(|(time, _)| *time);
            (self.t_ns, self.value) = samples.into_iter().unzip();
        }
    }
}

impl Events {
    /// Adds the events of another list of the same category; its rows are this one's already.
    fn append(&mut self, mut other: Self) -> Result<(), MergeError> {
        // Each gets the optional columns of the other, said by none of its events.
        for column in &other.columns {
            self.add_column(column.id);
        }
        for column in &self.columns {
            other.add_column(column.id);
        }
        let (before, added) = (self.names.len(), other.names.len());
        for (detail, texts) in other.name_details {
            let own = self.name_details.entry(detail).or_default();
            own.resize(before, String::new());
            own.extend(texts);
        }
        for texts in self.name_details.values_mut() {
            texts.resize(before + added, String::new());
        }
        self.names.extend(other.names);
        self.start_ns.extend(other.start_ns);
        self.duration_ns.extend(other.duration_ns);
        self.row.extend(other.row);
        self.lane.extend(other.lane);
        for name in &mut other.name {
            let moved = name.index().checked_add(before).and_then(NameId::from_index);
            *name = moved.ok_or(MergeError::TooMany("names of a category"))?;
        }
        self.name.extend(other.name);
        self.correlation.extend(other.correlation);
        for column in other.columns {
            if let Some(own) = self.columns.iter_mut().find(|own| own.id == column.id) {
                own.append(column);
            }
        }
        Ok(())
    }
}

impl Column {
    /// Adds the values of the same column of another list.
    fn append(&mut self, other: Self) {
        // The first text of each stands for none.
        let texts = u32::try_from(self.texts.len()).unwrap_or(u32::MAX).saturating_sub(1);
        let is_text = self.id.is_text();
        match (&mut self.values, other.values) {
            (Values::U32(own), Values::U32(values)) if is_text => {
                own.extend(
                    values
                        .into_iter()
                        .map(|text| if text == 0 { 0 } else { text.saturating_add(texts) }),
                );
            }
            (Values::U32(own), Values::U32(values)) => own.extend(values),
            (Values::U64(own), Values::U64(values)) => own.extend(values),
            // The width is the column's.
            (own, values) => {
                for at in 0..values.len() {
                    own.push(values.get(at).unwrap_or_default());
                }
            }
        }
        if is_text {
            self.texts.extend(other.texts.into_iter().skip(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Category, ColumnId, Event, LossReason, NameDetail, Row, Track};

    fn row(process: u32) -> Row {
        Row {
            thread: Some(1),
            label: format!("process {process}"),
            ..Row::of(process, Track::Nvtx)
        }
    }

    /// A capture that began then, with one range of that name in the only row, of that process.
    fn capture(start: Option<u64>, process: u32, name: &str) -> Capture {
        let mut events = Events::new(Category::NvtxRange);
        events.names.push(name.to_owned());
        let event = Event {
            start_ns: 5,
            duration_ns: 10,
            ..Event::default()
        };
        events.push(event, &[]);
        Capture {
            session_start_utc_ns: start,
            duration_ns: 20,
            events: [(Category::NvtxRange, events)].into(),
            rows: vec![row(process)],
            ..Capture::default()
        }
    }

    fn ranges(capture: &Capture) -> Vec<(u64, &str, u32)> {
        let events = &capture.events[&Category::NvtxRange];
        let process = |at: usize| capture.rows[events.row[at].index()].process;
        (0..events.len())
            .map(|at| (events.start_ns[at], events.name_of(at), process(at)))
            .collect()
    }

    #[test]
    fn captures_one_after_the_other_stand_on_the_clock_of_the_first() {
        let merged = Capture::merge(vec![
            capture(Some(1_100), 7, "second"),
            capture(Some(1_000), 7, "first"),
        ])
        .unwrap();
        assert_eq!(ranges(&merged), [(5, "first", 7), (105, "second", 7)]);
        assert_eq!((merged.session_start_utc_ns, merged.duration_ns), (Some(1_000), 120));
    }

    #[test]
    fn processes_side_by_side_keep_their_rows() {
        let merged = Capture::merge(vec![capture(Some(0), 7, "a"), capture(Some(0), 8, "b")]).unwrap();
        assert_eq!(ranges(&merged), [(5, "a", 7), (5, "b", 8)]);
    }

    #[test]
    fn one_capture_needs_no_start_and_several_do() {
        let alone = capture(None, 7, "a");
        assert_eq!(Capture::merge(vec![alone.clone()]), Ok(alone.clone()));
        assert_eq!(Capture::merge(Vec::new()), Ok(Capture::default()));
        let several = vec![capture(Some(0), 7, "a"), alone];
        assert_eq!(Capture::merge(several), Err(MergeError::NoStart(1)));
    }

    #[test]
    fn a_capture_without_times_needs_no_start_and_adds_what_it_says_of_losses() {
        let mut silent = Capture::default();
        silent.losses.add(LossReason::Dropped, "buffers", 2);
        for start in [Some(1_000), None] {
            let worker = capture(start, 7, "a");
            for captures in [
                vec![silent.clone(), worker.clone()],
                vec![worker.clone(), silent.clone()],
            ] {
                let merged = Capture::merge(captures).unwrap();
                assert_eq!(ranges(&merged), [(5, "a", 7)]);
                assert_eq!((merged.session_start_utc_ns, merged.duration_ns), (start, 20));
                assert_eq!(merged.losses, silent.losses);
            }
        }
        let two = vec![silent.clone(), capture(None, 7, "a"), capture(Some(0), 8, "b")];
        assert_eq!(Capture::merge(two), Err(MergeError::NoStart(1)));
        let nothing = Capture::merge(vec![silent.clone(), silent]).unwrap();
        assert!(!nothing.has_times());
        assert_eq!(nothing.losses.list()[0].count, 4);
    }

    #[test]
    fn a_column_or_a_detail_that_one_lacks_says_nothing_of_its_events() {
        let (mut first, mut second) = (capture(Some(0), 7, "a"), capture(Some(0), 7, "b"));
        let events = first.events.get_mut(&Category::NvtxRange).unwrap();
        let at = events.add_column(ColumnId::RangeCategory);
        events.columns[at].texts.push("io".to_owned());
        events.columns[at].values.set(0, 1);
        let events = second.events.get_mut(&Category::NvtxRange).unwrap();
        events.name_details.insert(NameDetail::Domain, vec!["NCCL".to_owned()]);
        let third = {
            let mut third = first.clone();
            third.session_start_utc_ns = Some(1);
            third.events.get_mut(&Category::NvtxRange).unwrap().columns[at].texts[1] = "net".to_owned();
            third
        };
        let merged = Capture::merge(vec![first, second, third]).unwrap();
        let events = &merged.events[&Category::NvtxRange];
        let labels: Vec<_> = (0..3)
            .map(|at| {
                (
                    events.text(ColumnId::RangeCategory, at),
                    events.name_detail(NameDetail::Domain, at),
                )
            })
            .collect();
        assert_eq!(labels, [(Some("io"), None), (None, Some("NCCL")), (Some("net"), None)]);
    }

    #[test]
    fn samples_of_a_series_that_several_have_come_in_the_order_of_time() {
        let with = |start, t_ns: &[u64]| {
            let mut capture = capture(Some(start), 7, "a");
            capture.counters.push(CounterSeries {
                source: "nsys".to_owned(),
                t_ns: t_ns.to_vec(),
                value: vec![1.0; t_ns.len()],
                ..CounterSeries::default()
            });
            capture
        };
        let merged = Capture::merge(vec![with(0, &[1, 30]), with(10, &[2, 40])]).unwrap();
        assert_eq!(merged.counters.len(), 1);
        assert_eq!(merged.counters[0].t_ns, [1, 12, 30, 50]);
    }
}
