//! Writes a timeline, under a temporary name until it is whole.

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;
use std::str::FromStr;

use flopwatch_summary::{Summary, SummaryError, summarise};
use hdf5::dataset::Layout;
use hdf5::file::LibraryVersion;
use hdf5::types::{H5Type, VarLenUnicode};
use hdf5::{Group, Location};

use super::{CHUNK_EVENTS, DEFLATE_LEVEL, NONE_U32, NONE_U64, SCHEMA_VERSION, access, devices};
use crate::hdf5_io::columns::{self, Columns, Store};
use crate::in_file::InFile;
use flopwatch_model::{Capture, Category, CounterSeries, Events, Lod, Timeline};

/// Bytes of a list that is stored as it is, within the file's structure: the library's deflate
/// needs a quarter of a megabyte whatever it is given, and whoever reads the structure has the
/// list.
const MAX_ATTRIBUTE_BYTES: usize = 8192;

/// Bytes that stand for a string, which itself is not filtered.
const REFERENCE_BYTES: usize = 16;

/// Bytes of structure per dataset and per chunk, and the unit of what is set aside for it;
/// measured.
const DATASET_BYTES: usize = 320;
const CHUNK_BYTES: usize = 16;
const STRUCTURE_UNIT: usize = 16 << 10;

/// Why a timeline could not be written. Nothing is left at the path then but what was there before.
#[derive(Debug, thiserror::Error)]
pub enum WriteFailure {
    /// The folder is missing, not writable, or full.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The library could not write it; most often the disk is full.
    #[error("cannot be written as HDF5: {0}")]
    Hdf5(String),
    /// A caller's series cannot be named in a file, or has more times than values.
    #[error("counter series {name:?}: needs names of letters, digits, '.', '_', ':' and '-', and one time per value")]
    Counter {
        /// Name of the series: `source/device/metric`.
        name: String,
    },
    /// The summary could not be made into JSON.
    #[error(transparent)]
    Summary(#[from] SummaryError),
}

impl From<hdf5::Error> for WriteFailure {
    fn from(error: hdf5::Error) -> Self {
        Self::Hdf5(error.to_string())
    }
}

/// A [`WriteFailure`] with the path of the file that was asked for.
pub type WriteError = InFile<WriteFailure>;

/// Writes `timeline` to `path`: to a temporary file beside it that is renamed when it is whole and
/// on disk.
pub fn write(timeline: &Timeline, path: &Path) -> Result<(), WriteError> {
    write_file(timeline, path, File::sync_all).map(drop)
}

/// The same without waiting for the disk, for a file that is made again when the power fails: as
/// with any copy that a command makes, it is the system's to bring it there. Gives the summary that
/// the file holds: it is made beside the columns, and need not be made again.
pub fn write_unsynced(timeline: &Timeline, path: &Path) -> Result<Summary, WriteError> {
    write_file(timeline, path, |_| Ok(()))
}

/// Writes `timeline` into the file at `path`, which is there and may have no name: a link to its
/// descriptor. What was in it is lost, also where this fails.
pub fn overwrite(timeline: &Timeline, path: &Path) -> Result<(), WriteError> {
    check_counters(timeline)
        .and_then(|()| deflated_ahead(timeline, path))
        .map(drop)
        .map_err(WriteError::at(path))
}

fn check_counters(timeline: &Timeline) -> Result<(), WriteFailure> {
    for series in &timeline.capture.counters {
        if !series.is_well_formed() {
            let name = format!("{}/{}/{}", series.source, series.device, series.metric);
            return Err(WriteFailure::Counter { name });
        }
    }
    Ok(())
}

fn write_file(
    timeline: &Timeline,
    path: &Path,
    finish: fn(&File) -> std::io::Result<()>,
) -> Result<Summary, WriteError> {
    place_beside(timeline, path, finish).map_err(WriteError::at(path))
}

fn place_beside(
    timeline: &Timeline,
    path: &Path,
    finish: fn(&File) -> std::io::Result<()>,
) -> Result<Summary, WriteFailure> {
    check_counters(timeline)?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let temporary = tempfile::Builder::new().prefix(".timeline-").tempfile_in(folder)?;
    let summary = deflated_ahead(timeline, temporary.path())?;
    // The library opened the path itself, so the handle that was made with it is the same file.
    finish(temporary.as_file())?;
    temporary.persist(path).map_err(|error| error.error)?;
    Ok(summary)
}

/// A category of the file.
struct Part<'a> {
    category: Category,
    events: Cow<'a, Events>,
    /// Levels of detail of the events; `None` where there are none.
    lod: Option<&'a Lod>,
}

/// Writes the file while other cores deflate its columns and make the summary, which is given back.
fn deflated_ahead(timeline: &Timeline, path: &Path) -> Result<Summary, WriteFailure> {
    let capture = &timeline.capture;
    let captured = Category::ALL
        .iter()
        .copied()
        .filter(|category| capture.captured.contains(category));
    let parts: Vec<Part<'_>> = captured
        .map(|category| Part {
            category,
            events: match capture.events.get(&category) {
                Some(events) => Cow::Borrowed(events),
                None => Cow::Owned(Events::new(category)),
            },
            lod: timeline.lod.get(&category).filter(|lod| !lod.levels.is_empty()),
        })
        .collect();
    let columns: Vec<Columns<'_>> = parts
        .iter()
        .flat_map(|part| {
            let levels = part.lod.map(|lod| super::events::entries(lod, &part.events));
            [super::events::columns(&part.events, &capture.rows)]
                .into_iter()
                .chain(levels)
        })
        .collect();
    let (stored, summary) = rayon::join(
        || {
            columns::ahead(&columns, DEFLATE_LEVEL, |store| {
                write_hdf5(timeline, &parts, store, path)
            })
        },
        || {
            let summary = summarise(timeline);
            summary.to_json().map(|text| (summary, text))
        },
    );
    let file = stored?;
    let (summary, text) = summary?;
    list(&file, "summary", text.as_bytes())?;
    file.close()?;
    Ok(summary)
}

/// Writes everything but the summary.
fn write_hdf5(
    timeline: &Timeline,
    parts: &[Part<'_>],
    store: &mut Store<'_, '_>,
    path: &Path,
) -> hdf5::Result<hdf5::File> {
    let structure = structure_bytes(parts, &timeline.capture);
    let file = hdf5::File::with_options()
        .with_fcpl(|create| create.obj_track_times(false))
        // Newer ways of storing groups and chunk indices take a fraction of the space; HDF5 reads
        // them since 1.10.
        .with_fapl(|access| {
            access
                .libver_bounds(LibraryVersion::V110, LibraryVersion::V110)
                .meta_block_size(structure);
            access::unlocked(access, path)
        })
        .create(path)?;
    let capture = &timeline.capture;
    let categories: Vec<Category> = parts.iter().map(|part| part.category).collect();
    write_meta(&file, timeline, &categories)?;
    write_rows(&group(&file, "rows")?, capture)?;
    let (tiles, lods) = (group(&file, "tiles")?, group(&file, "lod")?);
    // Whoever opens the file needs these texts, and only these: they come before the columns, next
    // to the structure.
    for Part { category, events, .. } in parts.iter().filter(|part| !part.events.is_empty()) {
        let names = super::events::column_names(events);
        strings(&group(&tiles, category.name())?, "columns", names)?;
    }
    for Part { category, events, lod } in parts {
        let parent = group(&file, category.name())?;
        let (columns, stored) = store.next(&parent)?;
        if !events.is_empty() {
            let tiles = tiles.group(category.name())?;
            super::events::write_tiles(&tiles, events, columns.chunk, &columns.list, &stored)?;
        }
        if let Some(lod) = lod {
            super::events::write_lod(&group(&lods, category.name())?, lod, store)?;
        }
    }
    let names = group(&file, "names")?;
    for Part { category, events, .. } in parts {
        for (name, texts) in super::events::texts(*category, events) {
            strings(&names, &name, texts.iter().map(String::as_str))?;
        }
    }
    write_counters(&group(&file, "counters")?, &capture.counters)?;
    if !capture.allocations.is_empty() {
        super::allocations::write(&group(&file, "allocations")?, &capture.allocations)?;
    }
    if !capture.programs.is_empty() {
        super::programs::write(&group(&file, "programs")?, &capture.programs)?;
    }
    if !capture.profiles.is_empty() {
        super::profiles::write(&group(&file, "profiles")?, &capture.profiles)?;
    }
    if let Some(stacks) = &capture.stacks {
        super::stacks::write(&group(&file, "stacks")?, stacks)?;
    }
    if !capture.call_stacks.is_empty() {
        super::call_stacks::write(&group(&file, "call_stacks")?, &capture.call_stacks)?;
    }
    Ok(file)
}

/// Bytes that the file's structure will take, or somewhat more. Set aside at its beginning, they
/// gather it there: readers that fetch ranges have it with the first one, instead of all over the
/// file.
fn structure_bytes(parts: &[Part<'_>], capture: &Capture) -> u64 {
    // Of rows, devices and the groups of the root.
    let mut datasets = 40 + 3 * capture.counters.len();
    let (mut chunks, mut lists) = (0, 0);
    for Part { category, events, lod } in parts {
        // Those that every category has.
        let columns = 7 + events.columns.len();
        let tiles = events.len().div_ceil(CHUNK_EVENTS);
        datasets += columns + super::events::texts(*category, events).count();
        chunks += (columns + 1) * tiles;
        if tiles > 0 {
            datasets += 12;
            // What the tiles' lists hold for each tile, and for each column of one.
            lists += tiles * 36 + 2 * MAX_ATTRIBUTE_BYTES.min(8 * tiles * (columns + 1));
        }
        if let Some(lod) = lod {
            let entries: usize = lod.levels.iter().map(|level| level.row.len()).sum();
            datasets += 14;
            chunks += 6 * entries.div_ceil(CHUNK_EVENTS);
        }
    }
    let bytes = datasets * DATASET_BYTES + chunks * CHUNK_BYTES + lists;
    u64::try_from(bytes.next_multiple_of(STRUCTURE_UNIT)).unwrap_or(u64::MAX)
}

fn write_meta(file: &Group, timeline: &Timeline, categories: &[Category]) -> hdf5::Result<()> {
    let capture = &timeline.capture;
    let meta = group(file, "meta")?;
    attribute_text(&meta, "session_id", &timeline.session_id)?;
    attribute(&meta, "total_duration_ns", &capture.duration_ns)?;
    match u32::try_from(timeline.total_events()) {
        Ok(total) => attribute(&meta, "total_events", &total)?,
        Err(_) => attribute(&meta, "total_events", &timeline.total_events())?,
    }
    attribute(&meta, "schema_version", &SCHEMA_VERSION)?;
    if let Some(start) = capture.session_start_utc_ns {
        attribute(&meta, "session_start_utc_ns", &start)?;
    }
    attribute_text(&meta, "source", &json(&capture.source)?)?;
    attribute_text(&meta, "drops", &json(&capture.losses.list())?)?;
    attribute(&meta, "redactions", &capture.redactions)?;
    strings(&meta, "categories", categories.iter().map(|category| category.name()))?;
    devices::write(&group(&meta, "devices")?, &capture.devices)
}

fn write_rows(group: &Group, capture: &Capture) -> hdf5::Result<()> {
    let rows = &capture.rows;
    list(group, "capture", &collect(rows, |row| row.capture))?;
    list(group, "machine", &collect(rows, |row| row.machine))?;
    list(group, "process", &collect(rows, |row| row.process))?;
    strings(group, "track", rows.iter().map(|row| row.track.name()))?;
    list(group, "device", &collect(rows, |row| row.device.unwrap_or(NONE_U32)))?;
    list(group, "context", &collect(rows, |row| row.context.unwrap_or(NONE_U64)))?;
    list(group, "stream", &collect(rows, |row| row.stream.unwrap_or(NONE_U64)))?;
    list(group, "thread", &collect(rows, |row| row.thread.unwrap_or(NONE_U64)))?;
    strings(group, "label", rows.iter().map(|row| row.label.as_str()))?;
    list(group, "lanes", &lanes(capture))
}

/// How many lanes the events of each row take, those of all categories together.
fn lanes(capture: &Capture) -> Vec<u32> {
    let mut lanes = vec![0_u32; capture.rows.len()];
    for events in capture.events.values() {
        for (row, lane) in events.row.iter().zip(&events.lane) {
            if let Some(lanes) = lanes.get_mut(row.index()) {
                *lanes = (*lanes).max(lane.saturating_add(1));
            }
        }
    }
    lanes
}

fn write_counters(counters: &Group, all: &[CounterSeries]) -> hdf5::Result<()> {
    for series in all {
        let mut parent = counters.clone();
        for part in [&series.source, &series.device, &series.metric] {
            parent = if parent.link_exists(part) {
                parent.group(part)?
            } else {
                group(&parent, part)?
            };
        }
        attribute_text(&parent, "unit", &series.unit)?;
        list(&parent, "t_ns", &series.t_ns)?;
        list(&parent, "value", &series.value)?;
    }
    Ok(())
}

pub(super) fn collect<T, U>(items: &[T], field: impl Fn(&T) -> U) -> Vec<U> {
    items.iter().map(field).collect()
}

pub(super) fn group(parent: &Group, name: &str) -> hdf5::Result<Group> {
    parent.create_group_builder().obj_track_times(false).create(name)
}

pub(super) fn attribute<T: H5Type>(object: &Location, name: &str, value: &T) -> hdf5::Result<()> {
    object.new_attr::<T>().create(name)?.write_scalar(value)
}

fn attribute_text(object: &Location, name: &str, value: &str) -> hdf5::Result<()> {
    attribute(object, name, &text(value)?)
}

pub(super) fn json<T: serde::Serialize>(value: &T) -> hdf5::Result<String> {
    serde_json::to_string(value).map_err(|error| hdf5::Error::from(error.to_string()))
}

fn text(value: &str) -> hdf5::Result<VarLenUnicode> {
    VarLenUnicode::from_str(value).map_err(|error| hdf5::Error::from(error.to_string()))
}

pub(super) fn strings<'a>(group: &Group, name: &str, values: impl Iterator<Item = &'a str>) -> hdf5::Result<()> {
    let texts = values.map(text).collect::<hdf5::Result<Vec<VarLenUnicode>>>()?;
    let builder = group.new_dataset_builder().obj_track_times(false);
    if texts.is_empty() {
        builder.empty::<VarLenUnicode>().shape(0).create(name)?;
        return Ok(());
    }
    let builder = builder.chunk(texts.len().min(CHUNK_EVENTS));
    let builder = if texts.len().saturating_mul(REFERENCE_BYTES) <= MAX_ATTRIBUTE_BYTES {
        builder
    } else {
        builder.shuffle().deflate(DEFLATE_LEVEL)
    };
    builder.with_data(&texts).create(name)?;
    Ok(())
}

/// A column of which nobody reads a part: in one piece when it is short.
pub(super) fn list<T: H5Type>(group: &Group, name: &str, values: &[T]) -> hdf5::Result<()> {
    let builder = group.new_dataset_builder().obj_track_times(false);
    if values.is_empty() {
        builder.empty::<T>().shape(0).create(name)?;
        return Ok(());
    }
    if size_of_val(values) <= MAX_ATTRIBUTE_BYTES {
        builder.layout(Layout::Compact).with_data(values).create(name)?;
        return Ok(());
    }
    let chunk = values.len().min(CHUNK_EVENTS);
    builder
        .chunk(chunk)
        .shuffle()
        .deflate(DEFLATE_LEVEL)
        .with_data(values)
        .create(name)?;
    Ok(())
}
