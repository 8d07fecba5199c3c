//! Events, the index of their chunks and their levels of detail, as the file holds them.

use std::borrow::Cow;

use hdf5::Group;
use rayon::prelude::*;

use super::CHUNK_EVENTS;
use super::write::{attribute, group, list};
use crate::hdf5_io::columns::{ChunkLocation, Column, Columns, Store, Values, width};
use flopwatch_model::{Category, EventId, Events, Lod, LodLevel, NameId, Row, RowId};

/// A column that holds `values` as they are.
fn plain<'a>(name: &str, width: usize, values: Values<'a>) -> Column<'a> {
    let name = name.to_owned();
    Column { name, width, values }
}

/// The same in the least width of at least `bytes`.
fn narrow<'a>(name: &str, bytes: usize, values: impl Into<Cow<'a, [u32]>>) -> Column<'a> {
    let values = values.into();
    // As many bits as the largest one, and quicker to find.
    let bits = values.iter().fold(0, |bits, value| bits | value);
    plain(name, width(bits.into(), bytes), Values::U32(values))
}

/// The same of 64 bits.
fn narrow_wide<'a>(name: &str, bytes: usize, values: impl Into<Cow<'a, [u64]>>) -> Column<'a> {
    let values = values.into();
    let bits = values.iter().fold(0, |bits, value| bits | value);
    plain(name, width(bits, bytes), Values::U64(values))
}

/// Columns that every category has.
const SHARED: [&str; 7] = [
    "start_ns",
    "duration_ns",
    "stream",
    "name_idx",
    "row",
    "lane",
    "correlation",
];

/// The names of [`columns`].
pub(super) fn column_names(events: &Events) -> impl Iterator<Item = &str> {
    SHARED
        .into_iter()
        .chain(events.columns.iter().map(|column| column.id.name()))
}

/// The lists of texts of a category, and their names in `/names`.
pub(super) fn texts(category: Category, events: &Events) -> impl Iterator<Item = (String, &[String])> {
    let names = (category.name().to_owned(), events.names.as_slice());
    let details = events.name_details.iter();
    let details = details.map(move |(detail, list)| (text_list(category, detail.name()), list.as_slice()));
    let columns = events.columns.iter().filter(|column| column.id.is_text());
    let columns = columns.map(move |column| (text_list(category, column.id.name()), column.texts.as_slice()));
    [names].into_iter().chain(details).chain(columns)
}

/// Name in `/names` of a list of texts beside the names of a category.
pub(super) fn text_list(category: Category, of: &str) -> String {
    format!("{}.{of}", category.name())
}

/// The columns of a category, those that clients of the earlier service read first.
pub(super) fn columns<'a>(events: &'a Events, rows: &[Row]) -> Columns<'a> {
    let streams: Vec<u64> = rows.iter().map(|row| row.stream.unwrap_or(0)).collect();
    let stream = |row: &RowId| streams.get(row.index()).copied();
    let most_stream = streams.iter().copied().max().unwrap_or(0);
    // The width is that of the streams that occur here.
    let most_stream = if most_stream > u64::from(u8::MAX) {
        events.row.iter().filter_map(stream).max().unwrap_or(0)
    } else {
        most_stream
    };
    let [start, duration, in_stream, name, row, lane, correlation] = SHARED;
    // Each is looked through for its width.
    let own = || -> Vec<Column<'a>> {
        let columns = events.columns.par_iter().map(|own| {
            // Where the largest number stands for none, it stays that.
            let whole = own.id.missing() != 0;
            match &own.values {
                flopwatch_model::Values::U32(values) => narrow(own.id.name(), if whole { 4 } else { 1 }, values),
                flopwatch_model::Values::U64(values) => narrow_wide(own.id.name(), if whole { 8 } else { 1 }, values),
            }
        });
        columns.collect()
    };
    let shared = || {
        [
            plain(start, 8, Values::U64((&events.start_ns).into())),
            plain(duration, 8, Values::U64((&events.duration_ns).into())),
            plain(
                in_stream,
                width(most_stream, 1),
                Values::Keyed(RowId::numbers(&events.row), streams.into()),
            ),
            narrow(name, 2, NameId::numbers(&events.name)),
            narrow(row, 1, RowId::numbers(&events.row)),
            narrow(lane, 1, &events.lane),
            plain(correlation, 4, Values::U32((&events.correlation).into())),
        ]
    };
    let (shared, own) = rayon::join(shared, own);
    Columns {
        list: shared.into_iter().chain(own).collect(),
        count: events.len(),
        chunk: events.len().clamp(1, CHUNK_EVENTS),
    }
}

/// For each chunk of events, of which there are some: the first one, how many, their times, and
/// where each column's bytes lie.
pub(super) fn write_tiles(
    tiles: &Group,
    events: &Events,
    chunk: usize,
    columns: &[Column<'_>],
    stored: &[Vec<ChunkLocation>],
) -> hdf5::Result<()> {
    let mut first = Vec::new();
    let (mut count, mut t_min, mut t_max, mut max_end) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut position, mut latest) = (0_u64, 0);
    for (starts, durations) in events.start_ns.chunks(chunk).zip(events.duration_ns.chunks(chunk)) {
        let ends = starts
            .iter()
            .zip(durations)
            .map(|(start, duration)| start.saturating_add(*duration));
        let last = ends.max().unwrap_or(0);
        latest = last.max(latest);
        first.push(position);
        count.push(u32::try_from(starts.len()).unwrap_or(u32::MAX));
        t_min.push(starts.first().copied().unwrap_or(0));
        t_max.push(last);
        max_end.push(latest);
        position += u64::try_from(starts.len()).unwrap_or(0);
    }
    attribute(tiles, "chunk_events", &u32::try_from(chunk).unwrap_or(u32::MAX))?;
    list(tiles, "first", &first)?;
    list(tiles, "count", &count)?;
    list(tiles, "t_min", &t_min)?;
    list(tiles, "t_max", &t_max)?;
    list(tiles, "max_end", &max_end)?;
    let widths: Vec<u8> = columns
        .iter()
        .filter_map(|column| u8::try_from(column.width).ok())
        .collect();
    list(tiles, "width", &widths)?;
    // One row per tile, one element per column.
    let by_tile = |pick: fn(&ChunkLocation) -> u64| -> Vec<u64> {
        let of_tile = |tile: usize| stored.iter().map(move |locations| locations.get(tile).map_or(0, pick));
        (0..first.len()).flat_map(of_tile).collect()
    };
    list(tiles, "offset", &by_tile(|stored| stored.offset))?;
    list(tiles, "bytes", &by_tile(|stored| stored.bytes))
}

/// The entries of the levels of a category, one behind the other.
pub(super) fn entries(lod: &Lod, events: &Events) -> Columns<'static> {
    let wide =
        |column: fn(&LodLevel) -> &Vec<u64>| -> Vec<u64> { lod.levels.iter().flat_map(column).copied().collect() };
    let small =
        |column: fn(&LodLevel) -> &Vec<u32>| -> Vec<u32> { lod.levels.iter().flat_map(column).copied().collect() };
    let bucket = wide(|level| &level.bucket);
    let count = bucket.len();
    let event: Vec<EventId> = lod.levels.iter().flat_map(|level| &level.event).copied().collect();
    let name = |event: &EventId| events.name.get(event.index()).copied().unwrap_or_default();
    let names: Vec<NameId> = event.iter().map(name).collect();
    Columns {
        list: vec![
            narrow_wide("bucket", 4, bucket),
            narrow("event", 4, EventId::into_numbers(event)),
            narrow("name_idx", 2, NameId::into_numbers(names)),
            narrow_wide("duration_ns", 4, wide(|level| &level.duration_ns)),
            narrow("count", 4, small(|level| &level.count)),
            narrow_wide("busy_ns", 4, wide(|level| &level.busy_ns)),
        ],
        count,
        chunk: count.clamp(1, CHUNK_EVENTS),
    }
}

/// Writes the levels of a category, whose entries are the next columns of `store`, and which of
/// them are of which level, row and lane.
pub(super) fn write_lod(parent: &Group, lod: &Lod, store: &mut Store<'_, '_>) -> hdf5::Result<()> {
    let (mut shift, mut rows, mut lanes) = (Vec::new(), Vec::new(), Vec::new());
    let (mut first, mut count) = (Vec::new(), Vec::new());
    let mut at = 0_u64;
    for level in &lod.levels {
        let strips: Vec<(RowId, u32)> = level.row.iter().copied().zip(level.lane.iter().copied()).collect();
        for strip in strips.chunk_by(|a, b| a == b) {
            let Some((row, lane)) = strip.first() else { continue };
            shift.push(level.shift);
            rows.push(*row);
            lanes.push(u8::try_from(*lane).unwrap_or(u8::MAX));
            first.push(at);
            count.push(u32::try_from(strip.len()).unwrap_or(u32::MAX));
            at += flopwatch_model::count(strip.len());
        }
    }
    let levels = group(parent, "levels")?;
    list(&levels, "shift", &shift)?;
    list(&levels, "row", RowId::numbers(&rows))?;
    list(&levels, "lane", &lanes)?;
    list(&levels, "first", &first)?;
    list(&levels, "count", &count)?;
    store.next(&group(parent, "entries")?).map(drop)
}
