//! Events, the index of their chunks and their levels of detail, as the file holds them.

use std::borrow::Cow;

use hdf5::Group;
use rayon::prelude::*;

use super::CHUNK;
use super::write::{attribute, group, list};
use crate::hdf5_io::columns::{Column, Columns, Store, Stored, Values, width};
use flopwatch_model::{Category, Events, Lod, LodLevel, Row, index};

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
    let stream = |row: &u32| streams.get(index(*row)).copied().unwrap_or(0);
    let most_stream = streams.iter().copied().max().unwrap_or(0);
    // The width is that of the streams that occur here.
    let most_stream = if most_stream > u64::from(u8::MAX) {
        events.row.iter().map(stream).max().unwrap_or(0)
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
                Values::Keyed(&events.row, streams.into()),
            ),
            narrow(name, 2, &events.name),
            narrow(row, 1, &events.row),
            narrow(lane, 1, &events.lane),
            plain(correlation, 4, Values::U32((&events.correlation).into())),
        ]
    };
    let (shared, own) = rayon::join(shared, own);
    Columns {
        list: shared.into_iter().chain(own).collect(),
        count: events.len(),
        chunk: events.len().clamp(1, CHUNK),
    }
}

/// For each chunk of events, of which there are some: the first one, how many, their times, and where each column's bytes lie.
pub(super) fn write_tiles(
    tiles: &Group,
    events: &Events,
    chunk: usize,
    columns: &[Column<'_>],
    stored: &[Vec<Stored>],
) -> hdf5::Result<()> {
    let mut first = Vec::new();
    let (mut count, mut t_min, mut t_max, mut max_end) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut place, mut latest) = (0_u64, 0);
    for (starts, durations) in events.start_ns.chunks(chunk).zip(events.duration_ns.chunks(chunk)) {
        let ends = starts
            .iter()
            .zip(durations)
            .map(|(start, duration)| start.saturating_add(*duration));
        let last = ends.max().unwrap_or(0);
        latest = last.max(latest);
        first.push(place);
        count.push(u32::try_from(starts.len()).unwrap_or(u32::MAX));
        t_min.push(starts.first().copied().unwrap_or(0));
        t_max.push(last);
        max_end.push(latest);
        place += u64::try_from(starts.len()).unwrap_or(0);
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
    let by_tile = |pick: fn(&Stored) -> u64| -> Vec<u64> {
        let of_tile = |tile: usize| stored.iter().map(move |places| places.get(tile).map_or(0, pick));
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
    let event = small(|level| &level.event);
    let name = |event: &u32| events.name.get(index(*event)).copied().unwrap_or(0);
    let names: Vec<u32> = event.iter().map(name).collect();
    Columns {
        list: vec![
            narrow_wide("bucket", 4, bucket),
            narrow("event", 4, event),
            narrow("name_idx", 2, names),
            narrow_wide("duration_ns", 4, wide(|level| &level.duration_ns)),
            narrow("count", 4, small(|level| &level.count)),
            narrow_wide("busy_ns", 4, wide(|level| &level.busy_ns)),
        ],
        count,
        chunk: count.clamp(1, CHUNK),
    }
}

/// Writes the levels of a category, whose entries are the next columns of `store`, and which of them are of which level, row and
/// lane.
pub(super) fn write_lod(place: &Group, lod: &Lod, store: &mut Store<'_, '_>) -> hdf5::Result<()> {
    let (mut shift, mut rows, mut lanes) = (Vec::new(), Vec::new(), Vec::new());
    let (mut first, mut count) = (Vec::new(), Vec::new());
    let mut at = 0_u64;
    for level in &lod.levels {
        let mut start = 0;
        let same = |a: usize, b: usize| level.row.get(a) == level.row.get(b) && level.lane.get(a) == level.lane.get(b);
        while start < level.row.len() {
            let mut end = start + 1;
            while end < level.row.len() && same(start, end) {
                end += 1;
            }
            shift.push(level.shift);
            rows.push(level.row.get(start).copied().unwrap_or_default());
            let lane = level.lane.get(start).copied().unwrap_or_default();
            lanes.push(u8::try_from(lane).unwrap_or(u8::MAX));
            first.push(at);
            count.push(u32::try_from(end - start).unwrap_or(u32::MAX));
            at += u64::try_from(end - start).unwrap_or(0);
            start = end;
        }
    }
    let levels = group(place, "levels")?;
    list(&levels, "shift", &shift)?;
    list(&levels, "row", &rows)?;
    list(&levels, "lane", &lanes)?;
    list(&levels, "first", &first)?;
    list(&levels, "count", &count)?;
    store.next(&group(place, "entries")?).map(drop)
}
