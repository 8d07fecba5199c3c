//! Where the bytes of a timeline file lie, for readers that fetch parts of it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use hdf5::dataset::Layout as Storage;
use hdf5::{Dataset, File, Group, LinkType, LocationType};

use super::{OpenError, access};
use flopwatch_model::Category;

/// Groups within groups: a series of a counter lies three deep.
const MAX_DEPTH: usize = 6;
/// Datasets of a file: hundreds of series with two each, and a few hundred more.
const MAX_DATASETS: usize = 100_000;

/// Parts of a file that no reader of events and rows needs.
const BESIDE: [&str; 8] = [
    "lod",
    "counters",
    "allocations",
    "programs",
    "profiles",
    "stacks",
    "call_stacks",
    "summary",
];

/// Where the bytes lie that most of a timeline file consists of. What is in none of them is the
/// file's structure, the rows, and all strings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// Categories that were captured.
    pub categories: BTreeMap<Category, Columns>,
    /// Parts that no reader of events and rows needs.
    pub beside: Vec<Range<u64>>,
    /// Whether all of the structure was there to be read.
    pub is_whole: bool,
}

/// The columns of a category.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns {
    /// How many events.
    pub events: usize,
    /// Where their bytes lie.
    pub bytes: Vec<Range<u64>>,
}

impl Layout {
    /// That of the file at `path`, of which only the structure is read. Of a file that is not all
    /// there yet, whose other bytes are zeros, it is as much as can be known: the structure carries
    /// checksums, so that what is missing is not taken for what it is not.
    pub fn of(path: &Path) -> Result<Self, OpenError> {
        let file = access::open(path).map_err(OpenError::at(path))?;
        let mut walk = Walk {
            left: MAX_DATASETS,
            layout: Self {
                is_whole: true,
                ..Self::default()
            },
        };
        walk.file(&file);
        Ok(walk.layout)
    }

    /// What of a file of `size` bytes is neither columns of events nor beside them, in the order of
    /// the file.
    pub fn rest(&self, size: u64) -> Vec<Range<u64>> {
        let columns = self.categories.values().flat_map(|columns| &columns.bytes);
        let mut known: Vec<&Range<u64>> = columns.chain(&self.beside).collect();
        known.sort_unstable_by_key(|range| range.start);
        let mut rest = Vec::new();
        let mut from = 0;
        for range in known {
            if range.start > from {
                rest.push(from..range.start.min(size));
            }
            from = from.max(range.end);
        }
        if from < size {
            rest.push(from..size);
        }
        rest.retain(|range| range.start < range.end);
        rest
    }
}

/// A walk over the structure, which goes on where a part of it is missing.
struct Walk {
    layout: Layout,
    left: usize,
}

impl Walk {
    /// Something that was found; none where it is missing.
    fn found<T>(&mut self, what: hdf5::Result<T>) -> Option<T> {
        self.see(&what);
        what.ok()
    }

    fn see<T>(&mut self, what: &hdf5::Result<T>) {
        self.layout.is_whole &= what.is_ok();
    }

    fn file(&mut self, file: &File) {
        for (name, is_group) in self.members(file) {
            if let (Some(category), true) = (Category::from_name(&name), is_group) {
                let columns = self.columns(file, category);
                self.layout.categories.insert(category, columns);
            } else if BESIDE.contains(&name.as_str()) {
                let mut bytes = Vec::new();
                self.object(file, &name, is_group, 0, &mut bytes);
                self.layout.beside.append(&mut bytes);
            }
        }
    }

    fn columns(&mut self, file: &File, category: Category) -> Columns {
        let name = category.name();
        let mut columns = Columns::default();
        if let Some(group) = self.found(file.group(name)) {
            self.group(&group, 1, &mut columns.bytes);
            let starts = self.found(group.dataset("start_ns"));
            columns.events = starts.map_or(0, |starts| starts.size());
        }
        if !self.layout.is_whole {
            // The index of the chunks lies elsewhere, and may be there.
            columns.bytes.extend(tiles(file, name).unwrap_or_default());
        }
        columns
    }

    /// The groups and datasets of a group that lie in this file, and which of them are groups.
    fn members(&mut self, group: &Group) -> Vec<(String, bool)> {
        let mut names = Vec::new();
        let visited = group.iter_visit_default(|link, info| {
            if info.link_type == LinkType::Hard {
                names.push(link.to_owned());
            }
            Ok(())
        });
        self.see(&visited);
        let kind = |name: String| {
            let kind = self.found(group.loc_type_by_name(&name))?;
            Some((name, kind == LocationType::Group))
        };
        names.into_iter().filter_map(kind).collect()
    }

    /// Adds the chunks of all datasets below `group`.
    fn group(&mut self, group: &Group, depth: usize, bytes: &mut Vec<Range<u64>>) {
        if depth > MAX_DEPTH {
            self.layout.is_whole = false;
            return;
        }
        for (name, is_group) in self.members(group) {
            self.object(group, &name, is_group, depth, bytes);
        }
    }

    fn object(&mut self, of: &Group, name: &str, is_group: bool, depth: usize, bytes: &mut Vec<Range<u64>>) {
        if is_group {
            if let Some(group) = self.found(of.group(name)) {
                self.group(&group, depth + 1, bytes);
            }
        } else if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            self.see(&of.dataset(name).and_then(|dataset| chunks(&dataset, bytes)));
        } else {
            self.layout.is_whole = false;
        }
    }
}

/// Adds where the chunks of a dataset lie. A short one has none: it is a part of the structure.
fn chunks(dataset: &Dataset, bytes: &mut Vec<Range<u64>>) -> hdf5::Result<()> {
    if dataset.size() == 0 || dataset.create_plist()?.get_layout()? != Storage::Chunked {
        return Ok(());
    }
    dataset.chunks_visit(|chunk| {
        bytes.push(chunk.addr..chunk.addr.saturating_add(chunk.size));
        0
    })
}

/// Where the chunks of a category lie by their index.
fn tiles(file: &File, category: &str) -> hdf5::Result<Vec<Range<u64>>> {
    let tiles = file.group("tiles")?.group(category)?;
    let offsets = tiles.dataset("offset")?.read_raw::<u64>()?;
    let sizes = tiles.dataset("bytes")?.read_raw::<u64>()?;
    let extents = offsets.into_iter().zip(sizes);
    Ok(extents
        .map(|(offset, size)| offset..offset.saturating_add(size))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_what_lies_between() {
        let layout = Layout {
            categories: [(
                Category::CudaKernel,
                Columns {
                    events: 1,
                    bytes: vec![30..40, 10..20],
                },
            )]
            .into(),
            beside: vec![20..30, 60..70, 35..45],
            is_whole: true,
        };
        assert_eq!(layout.rest(100), [0..10, 45..60, 70..100]);
        assert_eq!(layout.rest(70), [0..10, 45..60]);
        assert_eq!(layout.rest(50), [0..10, 45..50], "a file that is cut off");
    }
}
