//! From begins and ends to ranges.

use std::collections::BTreeMap;

use flopwatch_ring::slot::Kind;

use super::segments::{Item, Name, Segment};
use flopwatch_model::count;

/// A range, in ticks.
#[derive(Debug, Clone)]
pub(super) struct Range {
    /// Process and thread that began it.
    pub(super) thread: (u32, u32),
    pub(super) domain: u8,
    pub(super) name: Name,
    pub(super) category: u32,
    pub(super) color: u32,
    /// Whether any thread could end it.
    pub(super) is_start_end: bool,
    pub(super) begin: u64,
    pub(super) end: u64,
}

/// Ranges of all threads, and what there was beside them.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    pub(super) found: Vec<Range>,
    /// Ends of ranges of which the file no longer holds the begin.
    pub(super) headless: u64,
    /// Ranges that were open when the file was read, and end with its last event.
    pub(super) open: u64,
    /// Ranges that were open before events that are not there, and end with the last event before
    /// them.
    pub(super) cut: u64,
    pub(super) marks: u64,
    pub(super) payloads: u64,
    /// Begins and ends of ranges that any thread may end, with their process and identifier.
    loose: Vec<(u64, (u32, u64), Option<Range>)>,
    last: u64,
}

impl Ranges {
    /// The ranges of all segments.
    pub(super) fn of(segments: Vec<Segment>) -> Self {
        let mut threads: BTreeMap<u64, Vec<Segment>> = BTreeMap::new();
        for segment in segments {
            threads.entry(segment.serial).or_default().push(segment);
        }
        let mut ranges = Self {
            last: last_of(threads.values().flatten()),
            ..Self::default()
        };
        for (_, mut segments) in threads {
            segments.sort_by_key(|segment| segment.first_event);
            ranges.thread(segments);
        }
        ranges.match_loose();
        ranges
    }

    fn thread(&mut self, segments: Vec<Segment>) {
        let mut open: BTreeMap<u8, Vec<Range>> = BTreeMap::new();
        let (mut expected, mut last) = (0_u64, 0);
        for segment in segments {
            if segment.first_event > expected {
                self.cut = self.cut.saturating_add(self.end_all(&mut open, last));
            }
            let there = count(segment.items.len()).saturating_add(segment.torn);
            expected = segment.first_event.saturating_add(there);
            let thread = (segment.process, segment.thread);
            for item in segment.items {
                last = item.ticks;
                self.item(thread, item, &mut open);
            }
        }
        self.open = self.open.saturating_add(self.end_all(&mut open, self.last));
    }

    /// Ends all ranges that are open, and says how many there were.
    fn end_all(&mut self, open: &mut BTreeMap<u8, Vec<Range>>, end: u64) -> u64 {
        let mut ended = 0;
        for mut range in std::mem::take(open).into_values().flatten() {
            range.end = end.max(range.begin);
            self.found.push(range);
            ended += 1;
        }
        ended
    }

    fn item(&mut self, thread: (u32, u32), item: Item, open: &mut BTreeMap<u8, Vec<Range>>) {
        self.payloads += u64::from(item.has_payload);
        let id = (thread.0, item.range.unwrap_or(0));
        match item.kind {
            Kind::Push => open.entry(item.domain).or_default().push(range(thread, item)),
            Kind::Pop => match open.get_mut(&item.domain).and_then(Vec::pop) {
                Some(mut range) => {
                    range.end = item.ticks.max(range.begin);
                    self.found.push(range);
                }
                None => self.headless += 1,
            },
            Kind::Start => self.loose.push((item.ticks, id, Some(range(thread, item)))),
            Kind::End => self.loose.push((item.ticks, id, None)),
            Kind::Mark => self.marks += 1,
            // These are of an event, and never one.
            Kind::Payload | Kind::Style | Kind::Range | Kind::Text => {}
        }
    }

    /// Finds the end of each begin among all threads of its process.
    fn match_loose(&mut self) {
        let mut loose = std::mem::take(&mut self.loose);
        // Of one moment the begin comes first.
        loose.sort_by_key(|(ticks, _, begin)| (*ticks, begin.is_none()));
        let mut open: BTreeMap<(u32, u64), Range> = BTreeMap::new();
        for (ticks, id, begin) in loose {
            let is_end = begin.is_none();
            let before = match begin {
                Some(begin) => open.insert(id, begin),
                None => open.remove(&id),
            };
            match before {
                Some(mut range) => {
                    range.end = ticks.max(range.begin);
                    self.found.push(range);
                    // An identifier that is used anew: the end of its first range is not there.
                    self.cut += u64::from(!is_end);
                }
                None => self.headless += u64::from(is_end),
            }
        }
        for (_, mut range) in open {
            range.end = self.last.max(range.begin);
            self.found.push(range);
            self.open += 1;
        }
    }
}

fn last_of<'a>(segments: impl Iterator<Item = &'a Segment>) -> u64 {
    let ends = segments.filter_map(|segment| segment.items.last());
    ends.map(|item| item.ticks).max().unwrap_or(0)
}

fn range(thread: (u32, u32), item: Item) -> Range {
    Range {
        thread,
        domain: item.domain,
        name: item.name,
        category: item.category,
        color: item.color,
        is_start_end: item.kind == Kind::Start,
        begin: item.ticks,
        end: item.ticks,
    }
}
