//! Calls of CUDA, of cuDNN and cuBLAS and of the operating system, and NVTX ranges.

use hashbrown::HashMap;

use super::gather::{NO_CLASS, NvtxNames, OptionalColumn, PieceSummary, Plan, Slot, WorkerState, too_many_rows};
use super::keys::RowWords;
use super::names::{NameKey, Text};
use super::tables::Piece;
use super::{Failure, GlobalId, Reader, RowKey};
use flopwatch_model::{Category, ColumnId, Track, index};

const RUNTIME: &str = "CUPTI_ACTIVITY_KIND_RUNTIME";
const OSRT: &str = "OSRT_API";
const CUDNN: &str = "CUDNN_EVENTS";
const CUBLAS: &str = "CUBLAS_EVENTS";
const NVTX: &str = "NVTX_EVENTS";

/// The tables that are read here.
pub(super) const TABLES: &[&str] = &[RUNTIME, OSRT, CUDNN, CUBLAS, NVTX];

/// `eventClass` of calls (`ENUM_NSYS_EVENT_CLASS`): CUDA runtime and driver; operating system
/// functions; cuDNN; cuBLAS.
const API_CALLS: [u32; 2] = [0, 1];
const OS_CALLS: [u32; 1] = [27];
const CUDNN_CALLS: [u32; 1] = [28];
const CUBLAS_CALLS: [u32; 1] = [29];

/// Machine, process and id of an NVTX domain.
pub(super) type DomainKey = (u32, u32, u64);

/// Texts of NVTX domains.
pub(super) type Domains = HashMap<DomainKey, Text>;

/// Domain and number of an NVTX category.
pub(super) type RangeCategoryKey = (DomainKey, u32);

/// What the texts of NVTX domains and categories are.
#[derive(Debug, Default)]
pub(super) struct Descriptions {
    pub(super) domains: Domains,
    pub(super) range_categories: HashMap<RangeCategoryKey, Text>,
}

/// `eventType` of NVTX rows (`ENUM_NSYS_EVENT_TYPE`). Ranges arrive finished, as 59 and 60, or
/// imported from text, as 70, 71.
const MARK: u32 = 34;
const PUSH_POP_RANGE: [u32; 2] = [59, 70];
const START_END_RANGE: [u32; 2] = [60, 71];
const DOMAIN_CREATE: u32 = 75;
const CATEGORY_NAME: u32 = 33;
/// Rows that describe others: category and thread names, domains coming and going.
const DESCRIPTIONS: [u32; 4] = [CATEGORY_NAME, 39, DOMAIN_CREATE, 76];

fn calling_row([thread, ..]: RowWords) -> RowKey {
    RowKey::Thread {
        track: Track::CudaApi,
        thread: GlobalId(thread),
    }
}

fn calling_system([thread, ..]: RowWords) -> RowKey {
    RowKey::Thread {
        track: Track::OsRuntime,
        thread: GlobalId(thread),
    }
}

fn calling_library([thread, ..]: RowWords) -> RowKey {
    RowKey::Thread {
        track: Track::Library,
        thread: GlobalId(thread),
    }
}

impl Reader<'_> {
    pub(super) fn read_api_calls(&mut self) -> Result<(), Failure> {
        self.read_calls(RUNTIME, Category::CudaApi, calling_row, &API_CALLS)
    }

    pub(super) fn read_os_calls(&mut self) -> Result<(), Failure> {
        self.read_calls(OSRT, Category::OsRuntime, calling_system, &OS_CALLS)
    }

    /// Reads the calls of cuDNN and of cuBLAS, which share a row, since either calls the other.
    pub(super) fn read_library_calls(&mut self) -> Result<(), Failure> {
        self.read_calls(CUDNN, Category::CudnnApi, calling_library, &CUDNN_CALLS)?;
        self.read_calls(CUBLAS, Category::CublasApi, calling_library, &CUBLAS_CALLS)
    }

    /// Reads the rows of these event classes; the rest of the table are notes of the profiler about
    /// itself.
    fn read_calls(
        &mut self,
        name: &str,
        category: Category,
        row: fn(RowWords) -> RowKey,
        classes: &[u32],
    ) -> Result<(), Failure> {
        let Some(table) = self.table(name)? else { return Ok(()) };
        if table.rows() == 0 {
            return Ok(());
        }
        self.captured(&table, [category]);
        table.must_have("globalTid")?;
        table.must_have("nameId")?;
        // A table that does not tell classes apart holds calls alone.
        let has_classes = table.has("eventClass");
        let returns = category == Category::CudaApi && table.has("returnValue");
        // Exports have no correlation of calls of libraries.
        let correlates = matches!(category, Category::CudaApi | Category::OsRuntime);
        let mut numbers = vec!["globalTid", "nameId"];
        numbers.extend(correlates.then_some("correlationId"));
        numbers.extend(has_classes.then_some("eventClass"));
        numbers.extend(returns.then_some("returnValue"));
        let plan = Plan {
            categories: &[category],
            optional: if returns { &[ColumnId::ReturnValue] } else { &[] },
            numbers: &numbers,
            texts: &[],
            row,
            open_ends: true,
            unsupported: &|class| format!("{name}: events of class {class}"),
        };
        let fill = |worker: &mut WorkerState, piece: &mut Piece<'_, '_>, slot: &mut Slot<'_>| {
            let count = slot.rows();
            if correlates {
                piece.read("correlationId", slot.correlation)?;
            }
            if let Some(OptionalColumn::U32(values)) = slot.own.first_mut() {
                piece.read("returnValue", values)?;
            }
            for words in &mut worker.words {
                words.resize(count, 0);
            }
            worker.kinds.clear();
            worker.kinds.resize(count, classes.first().copied().unwrap_or(0));
            if has_classes {
                piece.read("eventClass", &mut worker.kinds)?;
            }
            let [threads, ids, ..] = &mut worker.words;
            piece.read_ids("globalTid", threads)?;
            piece.read("nameId", ids)?;
            let mut summary = PieceSummary::default();
            for at in 0..count {
                let kind = worker.kinds.get(at).copied().unwrap_or_default();
                let [threads, ids, ..] = &worker.words;
                let (thread, id) = (threads.get(at), ids.get(at));
                let (thread, id) = (thread.copied().unwrap_or(0), id.copied().unwrap_or(0));
                // A thread of notes alone has no row.
                if !classes.contains(&kind) {
                    *summary.unsupported.entry(kind).or_default() += 1;
                    summary.mixed = true;
                    set(slot.class, at, NO_CLASS);
                    continue;
                }
                set(slot.row, at, row_of(worker, name, slot.piece, thread)?);
                if let Some(names) = worker.names.first_mut() {
                    set(slot.name, at, names.of_id(slot.piece, id));
                }
            }
            Ok(summary)
        };
        self.gather(&table, &plan, fill).map(drop)
    }

    /// Reads push/pop and start/end ranges; counts marks and the rest. Gives the names of the
    /// domains and categories.
    pub(super) fn read_ranges(&mut self) -> Result<Descriptions, Failure> {
        let mut described = Descriptions::default();
        let Some(table) = self.table(NVTX)? else {
            return Ok(described);
        };
        if table.rows() == 0 {
            return Ok(described);
        }
        self.captured(&table, [Category::NvtxRange]);
        table.must_have("eventType")?;
        table.must_have("globalTid")?;
        let plan = Plan {
            categories: &[Category::NvtxRange],
            optional: &[ColumnId::RangeCategory],
            numbers: &["eventType", "globalTid", "domainId", "textId", "color", "category"],
            texts: &["text"],
            row: |[thread, ..]| RowKey::Thread {
                track: Track::Nvtx,
                thread: GlobalId(thread),
            },
            open_ends: true,
            unsupported: &|kind| match kind {
                MARK => "NVTX marks".to_owned(),
                kind => format!("NVTX events of type {kind}"),
            },
        };
        let NvtxNames {
            domains,
            range_categories,
        } = self.gather(&table, &plan, fill_ranges)?;
        for (key, text) in domains {
            self.take_description(described.domains.len(), &text)?;
            described.domains.insert(key, text);
        }
        for (key, text) in range_categories {
            self.take_description(described.range_categories.len(), &text)?;
            described.range_categories.insert(key, text);
        }
        Ok(described)
    }

    fn take_description(&mut self, known: usize, text: &Text) -> Result<(), Failure> {
        if known >= index(self.limits.max_rows) {
            return Err(too_many_domains(self.limits.max_rows));
        }
        if let Text::Inline(text) = text {
            self.strings.take(NVTX, text)?;
        }
        Ok(())
    }
}

fn row_of(worker: &mut WorkerState, table: &str, piece: usize, thread: u64) -> Result<u32, Failure> {
    let number = worker.rows.number(piece, [thread, 0, 0, 0], worker.most_rows);
    number.ok_or_else(|| too_many_rows(table, worker.most_rows))
}

fn too_many_domains(limit: u32) -> Failure {
    Failure::TooMany {
        table: NVTX.to_owned(),
        what: "domains and categories",
        limit: u64::from(limit),
    }
}

fn fill_ranges(
    worker: &mut WorkerState,
    piece: &mut Piece<'_, '_>,
    slot: &mut Slot<'_>,
) -> Result<PieceSummary, Failure> {
    let count = slot.rows();
    for words in &mut worker.words {
        words.resize(count, 0);
    }
    worker.kinds.resize(count, 0);
    piece.read("eventType", &mut worker.kinds)?;
    let [threads, domain_ids, text_ids, _] = &mut worker.words;
    piece.read_ids("globalTid", threads)?;
    piece.read("domainId", domain_ids)?;
    piece.read("textId", text_ids)?;
    piece.texts("text")?;
    let [
        OptionalColumn::U32(colors),
        OptionalColumn::U32(styles),
        OptionalColumn::U32(categories),
        ..,
    ] = &mut slot.own[..]
    else {
        return Ok(PieceSummary::default());
    };
    piece.read("color", colors)?;
    piece.read("category", categories)?;
    let mut summary = PieceSummary::default();
    for at in 0..count {
        let word = |words: &[u64]| words.get(at).copied().unwrap_or(0);
        let [threads, domain_ids, text_ids, _] = &worker.words;
        let (thread, domain, text_id) = (word(threads), word(domain_ids), word(text_ids));
        let id = GlobalId(thread);
        let domain = (id.machine(), id.process(), domain);
        let kind = worker.kinds.get(at).copied().unwrap_or(0);
        let style = match kind {
            kind if PUSH_POP_RANGE.contains(&kind) => 0,
            kind if START_END_RANGE.contains(&kind) => 1,
            kind => {
                if kind == DOMAIN_CREATE || kind == CATEGORY_NAME {
                    let text = text(piece.text(at)?, text_id);
                    if let Text::Inline(text) = &text {
                        worker.strings.take(NVTX, text)?;
                    }
                    if summary.domains.len().max(summary.range_categories.len()) >= index(worker.most_rows) {
                        return Err(too_many_domains(worker.most_rows));
                    }
                    if kind == DOMAIN_CREATE {
                        summary.domains.push((domain, text));
                    } else {
                        let category = categories.get(at).copied().unwrap_or(0);
                        summary.range_categories.push(((domain, category), text));
                    }
                } else if !DESCRIPTIONS.contains(&kind) {
                    *summary.unsupported.entry(kind).or_default() += 1;
                }
                summary.mixed = true;
                set(slot.class, at, NO_CLASS);
                continue;
            }
        };
        set(slot.row, at, row_of(worker, NVTX, slot.piece, thread)?);
        set(styles, at, style);
        let bytes = piece.text(at)?;
        if let Some(names) = worker.names.first_mut() {
            let number = if bytes.is_empty() {
                let (text, domain) = (text(bytes, text_id), Some(domain));
                names.of_key(slot.piece, NameKey { text, domain })
            } else {
                names.of_text(slot.piece, domain, bytes, NVTX, &mut worker.strings)?
            };
            set(slot.name, at, number);
        }
    }
    Ok(summary)
}

fn text(bytes: &[u8], id: u64) -> Text {
    match (bytes, id) {
        // No text at all: 0 stands for NULL, and as an id it would mean another string.
        ([], 0) => Text::Fixed(""),
        ([], id) => Text::Id(id),
        (bytes, _) => Text::Inline(String::from_utf8_lossy(bytes).into_owned()),
    }
}

fn set<T>(values: &mut [T], at: usize, value: T) {
    if let Some(slot) = values.get_mut(at) {
        *slot = value;
    }
}
