//! CUDA API calls, operating system calls and NVTX ranges.

use std::collections::HashMap;
use std::ops::Range;

use super::names::{NameKey, Text};
use super::tables::Table;
use super::{Failure, Found, GlobalId, Reader, Span};
use crate::hdf5_io::TableError;
use crate::model::{Category, DropReason, Row, Track, index};

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

fn thread_row(global_tid: u64, track: Track) -> Row {
    let id = GlobalId(global_tid);
    Row {
        capture: 0,
        machine: id.machine(),
        process: id.process(),
        track,
        device: None,
        context: None,
        stream: None,
        thread: Some(u64::from(id.thread())),
        label: String::new(),
    }
}

fn spans(table: &Table, slab: &Range<usize>) -> Result<Vec<Span>, TableError> {
    let start: Vec<i64> = table.required("start", slab)?;
    let end: Vec<i64> = table.required("end", slab)?;
    Ok(start
        .into_iter()
        .zip(end)
        .map(|(start, end)| Span { start, end })
        .collect())
}

/// The last time that a table mentions: where what had not ended is cut.
fn last_time(table: &Table) -> Result<i64, TableError> {
    let mut last = 0;
    for slab in table.slabs() {
        for span in spans(table, &slab)? {
            last = last.max(span.start).max(span.end);
        }
    }
    Ok(last)
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
        let last = last_time(&table)?;
        for slab in table.slabs() {
            let spans = spans(&table, &slab)?;
            let threads: Vec<u64> = table.required_ids("globalTid", &slab)?;
            let names: Vec<u64> = table.required("nameId", &slab)?;
            let correlations: Vec<u32> = table.optional("correlationId", &slab)?;
            // A table that does not tell classes apart holds calls alone.
            let kinds: Vec<u32> = if table.has("eventClass") {
                table.required("eventClass", &slab)?
            } else {
                vec![classes.first().copied().unwrap_or(0); slab.len()]
            };
            let rows = spans.into_iter().zip(threads).zip(names).zip(correlations).zip(kinds);
            for ((((span, thread), name), correlation), kind) in rows {
                if !classes.contains(&kind) {
                    let what = format!("{}: events of class {kind}", table.name());
                    self.capture.drops.add(DropReason::Unsupported, &what, 1);
                    continue;
                }
                let span = self.finished(&table, span, last);
                let (row, name) = (thread_row(thread, track), Text::Id(name).into());
                self.push(
                    &table,
                    Found {
                        category,
                        span,
                        row,
                        name,
                        correlation,
                        own: &[],
                    },
                )?;
            }
        }
        Ok(())
    }

    /// Reads push/pop and start/end ranges; counts marks and the rest. Gives the names of the domains.
    pub(super) fn read_ranges(&mut self) -> Result<Domains, Failure> {
        let mut domains = Domains::new();
        let Some(table) = self.table(NVTX)? else {
            return Ok(domains);
        };
        self.captured(&table, [Category::NvtxRange]);
        let last = last_time(&table)?;
        for slab in table.slabs() {
            let spans = spans(&table, &slab)?;
            let kinds: Vec<u32> = table.required("eventType", &slab)?;
            let threads: Vec<u64> = table.required_ids("globalTid", &slab)?;
            let colors: Vec<u64> = table.optional("color", &slab)?;
            let domain_ids: Vec<u64> = table.optional("domainId", &slab)?;
            let text_ids: Vec<u64> = table.optional("textId", &slab)?;
            let texts = table.strings("text", &slab)?;
            let times = spans.into_iter().zip(kinds).zip(threads);
            let looks = colors.into_iter().zip(domain_ids).zip(text_ids).zip(texts);
            for (((span, kind), thread), (((color, domain), text_id), text)) in times.zip(looks) {
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
                let span = self.finished(&table, span, last);
                let name = NameKey {
                    text,
                    domain: Some(key),
                };
                let row = thread_row(thread, Track::Nvtx);
                let own = &[color, style];
                self.push(
                    &table,
                    Found {
                        category: Category::NvtxRange,
                        span,
                        row,
                        name,
                        correlation: 0,
                        own,
                    },
                )?;
            }
        }
        Ok(domains)
    }

    /// What had not ended when the capture did has end 0. It is kept up to the table's last time, as `nsys stats` counts it.
    fn finished(&mut self, table: &Table, span: Span, last: i64) -> Span {
        if span.end != 0 || span.start <= 0 {
            return span;
        }
        self.capture
            .drops
            .add(DropReason::Truncated, &format!("{}: not ended", table.name()), 1);
        Span {
            start: span.start,
            end: last,
        }
    }
}
