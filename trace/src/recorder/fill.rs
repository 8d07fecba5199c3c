//! From ranges to a capture.

use std::collections::BTreeMap;

use flopwatch_ring::header::Count;
use hashbrown::HashMap;

use super::clock::Clock;
use super::names::{Labels, Tables};
use super::ranges::{Range, Ranges};
use super::segments::{Name, SegmentOutcome};
use super::{Failure, Ring, word};
use crate::limits::ReadLimits;
use flopwatch_model::{
    Capture, Category, ColumnId, Event, Events, Loss, LossReason, NameDetail, NameId, Row, RowId, Track, count,
};

/// The capture so far.
pub(super) struct Fill<'a> {
    limits: &'a ReadLimits,
    capture: Capture,
    events: Events,
    rows: HashMap<(u32, u32), RowId>,
    names: HashMap<(u8, Name), NameId>,
    /// Domains of the names, one text for each.
    of_names: Vec<String>,
    categories: HashMap<(u8, u32), u32>,
    /// What is kept, in ns since the Unix epoch; all where there is none.
    between: Option<std::ops::Range<u64>>,
}

/// What is known of names.
struct NameTables {
    labels: Labels,
    domains: BTreeMap<u8, String>,
}

impl<'a> Fill<'a> {
    pub(super) fn new(limits: &'a ReadLimits) -> Self {
        Self {
            limits,
            capture: Capture::default(),
            events: Events::new(Category::NvtxRange),
            rows: HashMap::new(),
            names: HashMap::new(),
            of_names: Vec::new(),
            categories: HashMap::new(),
            between: None,
        }
    }

    /// With what ran in a window alone.
    pub(super) fn between(mut self, window: std::ops::Range<u64>) -> Self {
        self.between = Some(window);
        self
    }

    /// The capture of a file.
    pub(super) fn ring(mut self, ring: &Ring) -> Result<Capture, Failure> {
        "Flopwatch recorder".clone_into(&mut self.capture.source.tool);
        self.capture.source.schema_version = flopwatch_ring::VERSION.to_string();
        self.capture.captured.insert(Category::NvtxRange);
        let (mut segments, mut anchors) = (Vec::new(), Vec::new());
        let (mut found, mut torn, mut retaken, mut is_cut) = (0, 0, 0, false);
        for at in 0..ring.layout.segments {
            match SegmentOutcome::of(ring, at) {
                SegmentOutcome::Nothing => {}
                SegmentOutcome::Overwritten => retaken += 1,
                SegmentOutcome::Cut => is_cut = true,
                SegmentOutcome::Whole(segment) => {
                    anchors.extend(segment.anchors.into_iter().flatten());
                    found += count(segment.items.len());
                    torn += segment.torn;
                    segments.push(segment);
                }
            }
            if found > self.limits.max_events {
                let limit = self.limits.max_events;
                return Err(Failure::TooMany { what: "events", limit });
            }
        }
        self.count_loss(LossReason::Skipped, "NVTX events that are not whole", torn);
        self.count_loss(
            LossReason::Dropped,
            "segments of the ring that were overwritten while it was read",
            retaken,
        );
        self.count_loss(LossReason::Truncated, Loss::EVENTS_CUT, u64::from(is_cut));
        self.lose_what_was_counted(ring);
        let clock = Clock::new(ring.ticks_are_tsc, ring.made, &anchors);
        let ranges = Ranges::of(segments);
        self.count_loss(
            LossReason::Dropped,
            "ranges whose begin the ring no longer holds",
            ranges.headless,
        );
        self.count_loss(
            LossReason::Truncated,
            "ranges that were open before a gap in the ring",
            ranges.cut,
        );
        self.count_loss(LossReason::Truncated, "ranges that had not ended", ranges.open);
        self.count_loss(LossReason::Unsupported, "NVTX marks", ranges.marks);
        self.count_loss(LossReason::Unsupported, "payloads of NVTX events", ranges.payloads);
        self.ranges(ring, clock, ranges.found)?;
        Ok(self.capture)
    }

    fn count_loss(&mut self, reason: LossReason, what: &str, count: u64) {
        self.capture.losses.add(reason, what, count);
    }

    /// What the writers themselves could not keep.
    fn lose_what_was_counted(&mut self, ring: &Ring) {
        for what in Count::ALL {
            let text = match what {
                // What there was, and names whose text stands beside the event.
                Count::Processes | Count::Copies | Count::NamesWithoutEntry => continue,
                Count::CopiesLeftOut => "copies of NVTX beyond those that a process can record",
                Count::EventsWithoutSegment => "NVTX events that found no segment",
                Count::LabelsWithoutEntry => "names of threads and categories that found no entry",
                Count::HandlesWithoutEntry => "domains and registered strings that found no entry",
                Count::EventsOverwritten => "NVTX events that the ring no longer holds",
                Count::ProfilersNotLoaded => "profilers' libraries that did not load",
            };
            self.count_loss(LossReason::Dropped, text, word(&ring.bytes, what.at()));
        }
    }

    fn ranges(&mut self, ring: &Ring, clock: Clock, ranges: Vec<Range>) -> Result<(), Failure> {
        let mut tables = Tables::new(ring, self.limits);
        let known = NameTables {
            labels: tables.labels()?,
            domains: tables.domains()?,
        };
        let mut timed = Vec::with_capacity(ranges.len());
        let mut astray = 0;
        for range in ranges {
            match (clock.utc_ns(range.begin), clock.utc_ns(range.end)) {
                (Some(begin), Some(end)) => timed.push((begin, end, range)),
                _ => astray += 1,
            }
        }
        self.count_loss(LossReason::Skipped, "ranges years away from the others", astray);
        let first = match self.between.clone() {
            Some(window) => {
                self.cut(&window, &mut timed);
                Some(window.start)
            }
            None => timed.iter().map(|(begin, ..)| *begin).min(),
        };
        self.capture.session_start_utc_ns = first;
        for (begin, end, range) in timed {
            let start_ns = begin.saturating_sub(first.unwrap_or(0));
            let duration_ns = end.saturating_sub(begin);
            self.capture.duration_ns = self.capture.duration_ns.max(start_ns.saturating_add(duration_ns));
            self.range(&mut tables, &known, (start_ns, duration_ns), range)?;
        }
        self.count_loss(LossReason::Truncated, "names of NVTX that are longer", tables.cut);
        self.capture.redactions = tables.redactions;
        if self.of_names.iter().any(|domain| !domain.is_empty()) {
            self.events
                .name_details
                .insert(NameDetail::Domain, std::mem::take(&mut self.of_names));
        }
        if !self.events.is_empty() {
            let events = std::mem::replace(&mut self.events, Events::new(Category::NvtxRange));
            self.capture.events.insert(Category::NvtxRange, events);
        }
        Ok(())
    }

    /// Leaves of the ranges what ran in the window.
    fn cut(&mut self, window: &std::ops::Range<u64>, timed: &mut Vec<(u64, u64, Range)>) {
        self.capture.duration_ns = window.end.saturating_sub(window.start);
        timed.retain(|(begin, end, _)| *begin < window.end && *end >= window.start);
        let mut cut = 0;
        for (begin, end, _) in timed {
            cut += u64::from(*begin < window.start || *end > window.end);
            *begin = (*begin).max(window.start);
            *end = (*end).min(window.end);
        }
        self.count_loss(LossReason::Truncated, "ranges that go beyond the window", cut);
    }

    fn range(
        &mut self,
        tables: &mut Tables<'_>,
        known: &NameTables,
        time: (u64, u64),
        range: Range,
    ) -> Result<(), Failure> {
        let row = self.row(known, range.thread)?;
        let category = self.category(known, range.domain, range.category);
        let event = Event {
            start_ns: time.0,
            duration_ns: time.1,
            row,
            name: self.name(tables, known, (range.domain, range.name))?,
            correlation: 0,
        };
        let mut own = vec![u64::from(range.color), u64::from(range.is_start_end)];
        own.extend(category);
        self.events.push(event, &own);
        Ok(())
    }

    fn row(&mut self, known: &NameTables, (process, thread): (u32, u32)) -> Result<RowId, Failure> {
        if let Some(row) = self.rows.get(&(process, thread)) {
            return Ok(*row);
        }
        let limit = self.limits.max_rows;
        let next = RowId::from_index(self.rows.len()).filter(|row| row.number() < limit);
        let next = next.ok_or(Failure::TooMany {
            what: "threads",
            limit: u64::from(limit),
        })?;
        let label = match known.labels.threads.get(&thread).filter(|name| !name.is_empty()) {
            Some(name) => format!("{name} (process {process}) thread {thread}"),
            None => format!("process {process} thread {thread}"),
        };
        self.capture.rows.push(Row {
            capture: 0,
            machine: 0,
            process,
            track: Track::Nvtx,
            device: None,
            context: None,
            stream: None,
            thread: Some(u64::from(thread)),
            label,
        });
        self.rows.insert((process, thread), next);
        Ok(next)
    }

    fn name(&mut self, tables: &mut Tables<'_>, known: &NameTables, key: (u8, Name)) -> Result<NameId, Failure> {
        if let Some(name) = self.names.get(&key) {
            return Ok(*name);
        }
        let text = tables.text(&key.1)?;
        let domain = known.domains.get(&key.0).cloned().unwrap_or_default();
        let whole = if domain.is_empty() {
            text
        } else {
            format!("{domain}:{text}")
        };
        let next = NameId::from_index(self.events.names.len()).ok_or(Failure::TooMany {
            what: "names",
            limit: u64::from(u32::MAX),
        })?;
        self.events.names.push(whole);
        self.of_names.push(domain);
        self.names.insert(key, next);
        Ok(next)
    }

    /// The number of a category's text in its column, which is there as soon as one range has a
    /// category; `None` before.
    fn category(&mut self, known: &NameTables, domain: u8, number: u32) -> Option<u64> {
        if number == 0 {
            return None;
        }
        let slot = self.events.add_column(ColumnId::RangeCategory);
        let texts = &mut self.events.columns.get_mut(slot)?.texts;
        let at = *self.categories.entry((domain, number)).or_insert_with(|| {
            let named = known.labels.categories.get(&(domain, number));
            texts.push(
                named
                    .filter(|name| !name.is_empty())
                    .cloned()
                    .unwrap_or_else(|| number.to_string()),
            );
            u32::try_from(texts.len() - 1).unwrap_or(u32::MAX)
        });
        Some(u64::from(at))
    }
}
