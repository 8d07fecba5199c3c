//! Events, the index of their chunks and their levels of detail, as the file holds them.

use hdf5::Group;

use super::write::{attribute, group, list, strings};
use super::{CHUNK, DEFLATE_LEVEL};
use crate::hdf5_io::columns::{self, Column, Stored, width};
use crate::model::{Events, Lod, LodLevel, Row, Values, index};

/// A column that holds `values` as they are.
fn plain<'a, T: Copy + Sync>(name: &str, width: usize, values: &'a [T]) -> Column<'a>
where
    u64: From<T>,
{
    Column {
        name: name.to_owned(),
        width,
        values: Box::new(move |range, out| {
            out.extend(
                values
                    .get(range)
                    .unwrap_or_default()
                    .iter()
                    .map(|value| u64::from(*value)),
            );
        }),
    }
}

/// The same in the least width of at least `bytes`.
fn narrow<'a, T: Copy + Sync + Ord>(name: &str, bytes: usize, values: &'a [T]) -> Column<'a>
where
    u64: From<T>,
{
    let most = values.iter().copied().max().map_or(0, u64::from);
    plain(name, width(most, bytes), values)
}

/// The columns of a category, those that clients of the earlier service read first.
fn columns<'a>(events: &'a Events, rows: &'a [Row]) -> Vec<Column<'a>> {
    let stream = |row: u32| rows.get(index(row)).and_then(|row| row.stream).unwrap_or(0);
    let most_stream = rows.iter().filter_map(|row| row.stream).max().unwrap_or(0);
    // The width is that of the streams that occur here.
    let most_stream = if most_stream > u64::from(u8::MAX) {
        events.row.iter().map(|row| stream(*row)).max().unwrap_or(0)
    } else {
        most_stream
    };
    let streams = Column {
        name: "stream".to_owned(),
        width: width(most_stream, 1),
        values: Box::new(move |range, out| {
            out.extend(events.row.get(range).unwrap_or_default().iter().map(|row| stream(*row)));
        }),
    };
    let mut all = vec![
        plain("start_ns", 8, &events.start_ns),
        plain("duration_ns", 8, &events.duration_ns),
        streams,
        narrow("name_idx", 2, &events.name),
        narrow("row", 1, &events.row),
        narrow("lane", 1, &events.lane),
        plain("correlation", 4, &events.correlation),
    ];
    for own in &events.columns {
        all.push(match &own.values {
            Values::U32(values) => plain(own.id.name(), 4, values),
            Values::U64(values) => plain(own.id.name(), 8, values),
        });
    }
    all
}

/// Writes the events of a category into `place` and the index of their chunks, where there are any, into `tiles`.
pub(super) fn write(place: &Group, tiles: &Group, name: &str, events: &Events, rows: &[Row]) -> hdf5::Result<()> {
    let columns = columns(events, rows);
    let chunk = events.len().clamp(1, CHUNK);
    let stored = columns::write(place, &columns, events.len(), chunk, DEFLATE_LEVEL)?;
    if events.is_empty() {
        return Ok(());
    }
    write_tiles(&group(tiles, name)?, events, chunk, &columns, &stored)
}

/// For each chunk of events: the first one, how many, their times, and where each column's bytes lie.
fn write_tiles(
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
    strings(tiles, "columns", columns.iter().map(|column| column.name.as_str()))?;
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

/// Writes the levels of a category: all entries one behind the other, and which of them are of which level, row and lane.
pub(super) fn write_lod(place: &Group, lod: &Lod, events: &Events) -> hdf5::Result<()> {
    let (mut shift, mut rows, mut lanes) = (Vec::new(), Vec::new(), Vec::new());
    let (mut first, mut count) = (Vec::new(), Vec::new());
    let mut at = 0_u64;
    for level in &lod.levels {
        let strips: Vec<(u32, u32)> = level.row.iter().copied().zip(level.lane.iter().copied()).collect();
        for strip in strips.chunk_by(|a, b| a == b) {
            let (row, lane) = strip.first().copied().unwrap_or_default();
            shift.push(level.shift);
            rows.push(row);
            lanes.push(u8::try_from(lane).unwrap_or(u8::MAX));
            first.push(at);
            count.push(u32::try_from(strip.len()).unwrap_or(u32::MAX));
            at += u64::try_from(strip.len()).unwrap_or(0);
        }
    }
    let levels = group(place, "levels")?;
    list(&levels, "shift", &shift)?;
    list(&levels, "row", &rows)?;
    list(&levels, "lane", &lanes)?;
    list(&levels, "first", &first)?;
    list(&levels, "count", &count)?;
    let entries = group(place, "entries")?;
    let wide =
        |column: fn(&LodLevel) -> &Vec<u64>| -> Vec<u64> { lod.levels.iter().flat_map(column).copied().collect() };
    let small =
        |column: fn(&LodLevel) -> &Vec<u32>| -> Vec<u32> { lod.levels.iter().flat_map(column).copied().collect() };
    let bucket = wide(|level| &level.bucket);
    let (event, count) = (small(|level| &level.event), small(|level| &level.count));
    let (duration, busy) = (wide(|level| &level.duration_ns), wide(|level| &level.busy_ns));
    let name = |event: &u32| events.name.get(index(*event)).copied().unwrap_or(0);
    let names: Vec<u32> = event.iter().map(name).collect();
    let columns = [
        narrow("bucket", 4, &bucket),
        narrow("event", 4, &event),
        narrow("name_idx", 2, &names),
        narrow("duration_ns", 4, &duration),
        narrow("count", 4, &count),
        narrow("busy_ns", 4, &busy),
    ];
    let length = bucket.len();
    columns::write(&entries, &columns, length, length.clamp(1, CHUNK), DEFLATE_LEVEL).map(drop)
}
