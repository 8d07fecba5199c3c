//! The way of a reader that fetches a part of a timeline file: byte ranges by `/tiles`, inflated
//! without HDF5.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use flopwatch_model::{Capture, Category, Event, Events, NameId, Needs, Row, RowId, Timeline, Track};
use flopwatch_trace::ReadLimits;
use flopwatch_trace::timeline_file::{self, Layout};
use hdf5::types::VarLenUnicode;
use libdeflater::Decompressor;

use crate::capture::timeline_of;
use crate::random::Random;

/// More events than a chunk holds, on 300 streams, one range over all of them and little work of
/// another kind.
fn timeline() -> Timeline {
    let mut random = Random(17);
    let mut events = Events::new(Category::CudaKernel);
    events.names = (0..70).map(|name| format!("kernel {name}")).collect();
    let mut sets = Events::new(Category::CudaMemset);
    sets.names = vec!["set".to_owned()];
    for at in 0..70_000_u32 {
        let event = Event {
            start_ns: u64::from(at) * 900 + u64::try_from(random.below(2000)).unwrap(),
            duration_ns: match at {
                7 => 1 << 33,
                _ => u64::try_from(random.below(4000)).unwrap(),
            },
            row: RowId::new(at % 300),
            name: NameId::new(at % 70),
            correlation: at,
        };
        events.push(event, &[u64::from(at), 2, 3, 4, 5, 6, 7, 8, u64::from(u32::MAX)]);
        if at < 5 {
            sets.push(event, &[u64::MAX]);
        }
    }
    sets.name.fill(NameId::new(0));
    let row = |stream| Row {
        device: Some(0),
        stream: Some(stream),
        ..Row::of(1, Track::GpuStream)
    };
    let capture = Capture {
        events: [(Category::CudaKernel, events), (Category::CudaMemset, sets)].into(),
        rows: (0..300).map(row).collect(),
        ..Capture::default()
    };
    timeline_of(capture)
}

/// Every column of a category, read by the index of its chunks alone.
fn by_ranges(index: &hdf5::File, raw: &File, category: &str) -> BTreeMap<String, Vec<u64>> {
    let tiles = index.group(&format!("tiles/{category}")).unwrap();
    let list = |name: &str| tiles.dataset(name).unwrap().read_raw::<u64>().unwrap();
    let chunk: u32 = tiles.attr("chunk_events").unwrap().read_scalar().unwrap();
    let chunk = usize::try_from(chunk).unwrap();
    let columns = tiles.dataset("columns").unwrap().read_raw::<VarLenUnicode>().unwrap();
    let (widths, counts, offsets, bytes) = (list("width"), list("count"), list("offset"), list("bytes"));
    let mut all: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (tile, count) in counts.iter().enumerate() {
        for (at, (column, width)) in columns.iter().zip(&widths).enumerate() {
            let place = tile * columns.len() + at;
            let width = usize::try_from(*width).unwrap();
            let mut stored = vec![0; usize::try_from(bytes[place]).unwrap()];
            raw.read_exact_at(&mut stored, offsets[place]).unwrap();
            let mut planes = vec![0; chunk * width];
            let inflated = Decompressor::new().zlib_decompress(&stored, &mut planes).unwrap();
            assert_eq!(inflated, planes.len(), "{category}/{column}");
            let count = usize::try_from(*count).unwrap();
            let value = |event: usize| {
                (0..width)
                    .rev()
                    .fold(0, |value, byte| value << 8 | u64::from(planes[byte * chunk + event]))
            };
            all.entry(column.to_string()).or_default().extend((0..count).map(value));
            assert!(
                (count..chunk).all(|behind| value(behind) == 0),
                "behind the last event come zeros"
            );
        }
    }
    all
}

#[test]
fn the_byte_ranges_of_the_index_hold_every_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.h5");
    let timeline = timeline();
    timeline_file::write(&timeline, &path).unwrap();
    let file = crate::export::unlocked().open(&path).unwrap();
    let raw = File::open(&path).unwrap();
    for (category, events) in &timeline.capture.events {
        let category = category.name();
        let columns = by_ranges(&file, &raw, category);
        for dataset in file.group(category).unwrap().datasets().unwrap() {
            let name = dataset.name().rsplit('/').next().unwrap().to_owned();
            assert_eq!(columns[&name], dataset.read_raw::<u64>().unwrap(), "{category}/{name}");
        }
        assert_eq!(columns["start_ns"], events.start_ns);
        assert_eq!(columns["duration_ns"], events.duration_ns);
        let list = |name: &str| {
            file.dataset(&format!("tiles/{category}/{name}"))
                .unwrap()
                .read_raw::<u64>()
                .unwrap()
        };
        let (first, count, max_end) = (list("first"), list("count"), list("max_end"));
        assert_eq!(count.iter().sum::<u64>(), events.count());
        for (tile, first) in first.iter().enumerate() {
            let (from, to) = (
                usize::try_from(*first).unwrap(),
                usize::try_from(first + count[tile]).unwrap(),
            );
            assert_eq!(list("t_min")[tile], events.start_ns[from]);
            assert_eq!(
                list("t_max")[tile],
                (from..to).map(|at| events.end_ns(at)).max().unwrap()
            );
            assert_eq!(max_end[tile], (0..to).map(|at| events.end_ns(at)).max().unwrap());
        }
    }
}

#[test]
fn the_levels_in_the_file_are_those_of_the_timeline() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.h5");
    let timeline = timeline();
    timeline_file::write(&timeline, &path).unwrap();
    let file = crate::export::unlocked().open(&path).unwrap();
    let lod = file.group("lod/cuda_kernel").unwrap();
    let list = |name: &str| lod.dataset(name).unwrap().read_raw::<u64>().unwrap();
    let levels = &timeline.lod[&Category::CudaKernel].levels;
    assert!(!levels.is_empty());
    let busy: Vec<u64> = levels.iter().flat_map(|level| &level.busy_ns).copied().collect();
    assert_eq!(list("entries/busy_ns"), busy);
    let names = &timeline.capture.events[&Category::CudaKernel].name;
    let event = list("entries/event");
    let of_events = event
        .iter()
        .map(|event| u64::from(names[usize::try_from(*event).unwrap()].number()));
    assert_eq!(list("entries/name_idx"), of_events.collect::<Vec<u64>>());
    let (shifts, firsts, counts, rows, lanes) = (
        list("levels/shift"),
        list("levels/first"),
        list("levels/count"),
        list("levels/row"),
        list("levels/lane"),
    );
    assert!(lanes.contains(&1), "events overlap");
    let runs: Vec<_> = (0..shifts.len()).map(|at| (shifts[at], rows[at], lanes[at])).collect();
    assert!(runs.is_sorted_by(|a, b| a < b), "sorted by level, row and lane");
    let mut parts = Vec::new();
    for (at, shift) in shifts.iter().enumerate() {
        let level = levels.iter().find(|level| u64::from(level.shift) == *shift).unwrap();
        let strips = level.row.iter().zip(&level.lane);
        let of_strip =
            strips.filter(|(row, lane)| (u64::from(row.number()), u64::from(**lane)) == (rows[at], lanes[at]));
        assert_eq!(counts[at], u64::try_from(of_strip.count()).unwrap());
        parts.push((firsts[at], counts[at]));
    }
    assert!(
        parts.windows(2).all(|pair| pair[0].0 + pair[0].1 == pair[1].0),
        "without gaps"
    );
    assert!(!file.link_exists("lod/cuda_memset"), "a small category has none");
}

/// A file of the length of `whole` that holds these parts of it, and zeros.
fn filled(whole: &[u8], parts: &[Range<u64>]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let raw = file.as_file();
    raw.set_len(u64::try_from(whole.len()).unwrap()).unwrap();
    for part in parts {
        let place = usize::try_from(part.start).unwrap()..usize::try_from(part.end).unwrap();
        raw.write_all_at(&whole[place], part.start).unwrap();
    }
    file
}

#[test]
fn a_category_is_read_of_a_file_that_holds_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.h5");
    let timeline = timeline();
    timeline_file::write(&timeline, &path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let size = u64::try_from(whole.len()).unwrap();
    let layout = Layout::of(&path).unwrap();
    assert_eq!(layout.categories[&Category::CudaKernel].events, 70_000);

    assert!(layout.is_whole);

    // What is there of the structure tells where the rest of it may be, and is never taken for all
    // of it.
    let (mut parts, mut step) = (Vec::new(), 16_384);
    parts.push(0..step);
    loop {
        let part = filled(&whole, &parts);
        let found = Layout::of(part.path()).unwrap();
        if found.is_whole {
            assert_eq!(found, layout);
            break;
        }
        step *= 2;
        let gaps = found.rest(size).into_iter();
        parts.extend(gaps.map(|gap| gap.start..gap.end.min(gap.start + step)));
        assert!(step < size, "no end");
    }

    let mut parts = layout.rest(size);
    parts.extend(layout.categories[&Category::CudaMemset].bytes.iter().cloned());
    let held: u64 = parts.iter().map(|part| part.end - part.start).sum();
    assert!(held < size / 2, "{held} of {size}");
    let part = filled(&whole, &parts);
    let needs = Needs::EVERYTHING.only(&[Category::CudaMemset]);
    let read = |path| timeline_file::read_for(path, &ReadLimits::default(), &needs).unwrap();
    assert_eq!(read(part.path()), read(&path));
    // What is not there is missed.
    let needs = needs.only(&[Category::CudaKernel]);
    timeline_file::read_for(part.path(), &ReadLimits::default(), &needs).unwrap_err();
}
