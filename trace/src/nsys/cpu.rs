//! CUDA API calls, operating system calls and NVTX ranges.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::names::{NameKey, Text};
use super::tables::Table;
use super::{BIAS, Batch, Failure, GlobalId, Reader, RowKey, Span, spans};
use crate::model::{Category, DropReason, Events, Track, Values, index};

const RUNTIME: &str = "CUPTI_ACTIVITY_KIND_RUNTIME";
const OSRT: &str = "OSRT_API";
const NVTX: &str = "NVTX_EVENTS";

/// The tables that are read here.
pub(super) const TABLES: &[&str] = &[RUNTIME, OSRT, NVTX];

/// `eventClass` of calls (`ENUM_NSYS_EVENT_CLASS`): CUDA runtime and driver; operating system functions.
const API_CALLS: [u32; 2] = [0, 1];
const OS_CALLS: [u32; 1] = [27];

/// Texts of NVTX domains by machine, process and domain id.
pub(super) type Domains = HashMap<(u32, u32, u64), Text>;

/// `eventType` of NVTX rows (`ENUM_NSYS_EVENT_TYPE`). Ranges arrive finished, as 59 and 60, or imported from text, as 70, 71.
const MARK: u32 = 34;
const PUSH_POP_RANGE: [u32; 2] = [59, 70];
const START_END_RANGE: [u32; 2] = [60, 71];
const DOMAIN_CREATE: u32 = 75;
/// Rows that describe others: category and thread names, domains coming and going.
const DESCRIPTIONS: [u32; 4] = [33, 39, DOMAIN_CREATE, 76];

/// Whether an event had not ended when the capture did: its end is 0 then.
fn is_open(span: Span) -> bool {
    span.end == 0 && span.start > 0
}

/// What of a table had not ended when the capture did. It is kept up to the table's last time, as `nsys stats` counts it, which
/// is known at its end only.
#[derive(Debug, Default)]
struct Open {
    /// Where such events are among those of the category.
    places: Vec<usize>,
    last: i64,
}

impl Open {
    /// Looks at the spans of a slab and gives those that are open no length for now.
    fn note(&mut self, spans: &mut [Span]) -> Vec<bool> {
        let mut open = Vec::with_capacity(spans.len());
        for span in spans {
            self.last = self.last.max(span.start).max(span.end);
            open.push(is_open(*span));
            if is_open(*span) {
                span.end = span.start;
            }
        }
        open
    }
}

impl Reader<'_> {
    pub(super) fn read_api_calls(&mut self) -> Result<(), Failure> {
        self.read_calls(RUNTIME, Category::CudaApi, Track::CudaApi, &API_CALLS)
    }

    pub(super) fn read_os_calls(&mut self) -> Result<(), Failure> {
        self.read_calls(OSRT, Category::OsRuntime, Track::OsRuntime, &OS_CALLS)
    }

    /// Reads the rows of these event classes; the rest of the table are notes of the profiler about itself.
    fn read_calls(&mut self, name: &str, category: Category, track: Track, classes: &[u32]) -> Result<(), Failure> {
        let Some(table) = self.table(name)? else { return Ok(()) };
        self.captured(&table, [category]);
        let mut open = Open::default();
        for slab in table.slabs() {
            let mut batch = Batch {
                span: spans(&table, &slab)?,
                correlation: table.optional("correlationId", &slab)?,
                ..Batch::default()
            };
            let threads: Vec<u64> = table.required_ids("globalTid", &slab)?;
            let names: Vec<u64> = table.required("nameId", &slab)?;
            // A table that does not tell classes apart holds calls alone.
            let kinds: Vec<u32> = if table.has("eventClass") {
                table.required("eventClass", &slab)?
            } else {
                vec![classes.first().copied().unwrap_or(0); slab.len()]
            };
            let mut notes: BTreeMap<u32, u64> = BTreeMap::new();
            for (thread, kind) in threads.into_iter().zip(&kinds) {
                // A thread of notes alone has no row.
                let row = if classes.contains(kind) {
                    let thread = GlobalId(thread);
                    self.row(&table, RowKey::Thread { track, thread })?
                } else {
                    *notes.entry(*kind).or_default() += 1;
                    0
                };
                batch.row.push(row);
            }
            for (kind, count) in notes {
                let what = format!("{}: events of class {kind}", table.name());
                self.capture.drops.add(DropReason::Unsupported, &what, count);
            }
            let is_call = |at: usize| kinds.get(at).is_some_and(|kind| classes.contains(kind));
            let names = names.into_iter().zip(&kinds).filter(|(_, kind)| classes.contains(kind));
            let mut interned = self
                .names_of_ids(&table, category, names.map(|(name, _)| name).collect())?
                .into_iter();
            batch.name = kinds
                .iter()
                .map(|kind| {
                    if classes.contains(kind) {
                        interned.next().unwrap_or(0)
                    } else {
                        0
                    }
                })
                .collect();
            self.append_open(&table, category, &mut batch, &mut open, is_call)?;
        }
        self.close(&table, category, &open);
        Ok(())
    }

    /// Appends events of which some may not have ended.
    fn append_open(
        &mut self,
        table: &Table,
        category: Category,
        batch: &mut Batch,
        open: &mut Open,
        keep: impl Fn(usize) -> bool,
    ) -> Result<(), Failure> {
        let is_open = open.note(&mut batch.span);
        let mut place = self.capture.events.get(&category).map_or(0, Events::len);
        for (at, (span, is_open)) in batch.span.iter().zip(is_open).enumerate() {
            if keep(at) && span.length().is_some() {
                if is_open {
                    open.places.push(place);
                }
                place += 1;
            }
        }
        self.append(table, category, batch, keep)
    }

    /// Gives what had not ended its length, and counts it.
    fn close(&mut self, table: &Table, category: Category, open: &Open) {
        let count = u64::try_from(open.places.len()).unwrap_or(u64::MAX);
        let what = format!("{}: not ended", table.name());
        self.capture.drops.add(DropReason::Truncated, &what, count);
        let Some(events) = self.capture.events.get_mut(&category) else {
            return;
        };
        for place in &open.places {
            if let (Some(start), Some(duration)) = (events.start_ns.get(*place), events.duration_ns.get_mut(*place)) {
                let start = (start ^ BIAS).cast_signed();
                *duration = u64::try_from(open.last.saturating_sub(start)).unwrap_or(0);
            }
        }
    }

    /// Reads push/pop and start/end ranges; counts marks and the rest. Gives the names of the domains.
    pub(super) fn read_ranges(&mut self) -> Result<Domains, Failure> {
        let mut domains = Domains::new();
        let Some(table) = self.table(NVTX)? else {
            return Ok(domains);
        };
        self.captured(&table, [Category::NvtxRange]);
        let mut open = Open::default();
        for slab in table.slabs() {
            let mut batch = Batch {
                span: spans(&table, &slab)?,
                correlation: vec![0; slab.len()],
                ..Batch::default()
            };
            let kinds: Vec<u32> = table.required("eventType", &slab)?;
            let threads: Vec<u64> = table.required_ids("globalTid", &slab)?;
            let colors: Vec<u32> = table.optional("color", &slab)?;
            let domain_ids: Vec<u64> = table.optional("domainId", &slab)?;
            let text_ids: Vec<u64> = table.optional("textId", &slab)?;
            let texts = table.strings("text", &slab)?;
            let mut styles = vec![0_u32; slab.len()];
            let mut is_range = vec![false; slab.len()];
            batch.row = vec![0; slab.len()];
            batch.name = vec![0; slab.len()];
            let looks = domain_ids.into_iter().zip(text_ids).zip(texts);
            for (at, ((kind, thread), ((domain, text_id), text))) in
                kinds.into_iter().zip(threads).zip(looks).enumerate()
            {
                let text = match (text.is_empty(), text_id) {
                    (false, _) => Text::Inline(text),
                    // No text at all: 0 stands for NULL, and as an id it would mean another string.
                    (true, 0) => Text::Fixed(""),
                    (true, id) => Text::Id(id),
                };
                let id = GlobalId(thread);
                let key = (id.machine(), id.process(), domain);
                if kind == DOMAIN_CREATE {
                    if domains.len() >= index(self.limits.max_rows) {
                        let limit = u64::from(self.limits.max_rows);
                        return Err(Failure::TooMany {
                            table: NVTX.to_owned(),
                            what: "domains",
                            limit,
                        });
                    }
                    if let Text::Inline(text) = &text {
                        self.strings.take(NVTX, text)?;
                    }
                    domains.insert(key, text);
                    continue;
                }
                let style = match kind {
                    kind if PUSH_POP_RANGE.contains(&kind) => 0,
                    kind if START_END_RANGE.contains(&kind) => 1,
                    MARK => {
                        self.capture.drops.add(DropReason::Unsupported, "NVTX marks", 1);
                        continue;
                    }
                    kind if DESCRIPTIONS.contains(&kind) => continue,
                    kind => {
                        self.capture
                            .drops
                            .add(DropReason::Unsupported, &format!("NVTX events of type {kind}"), 1);
                        continue;
                    }
                };
                let name = NameKey {
                    text,
                    domain: Some(key),
                };
                let row = RowKey::Thread {
                    track: Track::Nvtx,
                    thread: id,
                };
                let (row, name) = (self.row(&table, row)?, self.name(&table, Category::NvtxRange, name)?);
                set(&mut batch.row, at, row);
                set(&mut batch.name, at, name);
                set(&mut styles, at, style);
                set(&mut is_range, at, true);
            }
            batch.own = vec![Values::U32(colors), Values::U32(styles)];
            let keep = |at: usize| is_range.get(at).copied().unwrap_or(false);
            self.append_open(&table, Category::NvtxRange, &mut batch, &mut open, keep)?;
        }
        self.close(&table, Category::NvtxRange, &open);
        Ok(domains)
    }
}

fn set<T>(values: &mut [T], at: usize, value: T) {
    if let Some(slot) = values.get_mut(at) {
        *slot = value;
    }
}
