//! What the headers of a release say, as the machine's C compiler lays it out: they are compiled
//! with a stub of CUDA's own header, and the compiler's debugging information is read.

use anyhow::{Context as _, Result};
use flopwatch_toolchain::command::Run;
use gimli::{AttributeValue, DwTag, EndianSlice, LittleEndian, UnitOffset};
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What the headers refer to beside themselves.
const CUDA: &str = include_str!("cuda.h");
/// Headers that say nothing of activity records, and would want more of CUDA.
const EMPTY: [&str; 7] = [
    "builtin_types.h",
    "cuda_stdint.h",
    "cupti_callbacks.h",
    "cupti_events.h",
    "cupti_metrics.h",
    "Openacc/cupti_openacc.h",
    "Openmp/cupti_openmp.h",
];
const PROGRAM: &str = "\
#include <cuda.h>
#include <cupti_result.h>
#include <cupti_version.h>
#include <cupti_activity.h>
enum flopwatch { FLOPWATCH_API_VERSION = CUPTI_API_VERSION };
enum flopwatch flopwatch;
";
const API_VERSION: &str = "FLOPWATCH_API_VERSION";
/// How the names of types of records begin.
const ACTIVITY: &str = "CUpti_Activity";
/// Types within types that are followed.
const MAX_DEPTH: usize = 16;

/// What the headers of a release say.
#[derive(Debug, Default)]
pub(super) struct Headers {
    /// What `cuptiGetVersion` says of it.
    pub(super) version: u64,
    /// Numbers of kinds, by the name behind `CUPTI_ACTIVITY_KIND_`.
    pub(super) kinds: BTreeMap<String, u64>,
    /// Types of records, by the name behind `CUpti_Activity`.
    pub(super) records: BTreeMap<String, Record>,
}

/// A type of records.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) bytes: u64,
    pub(super) fields: Vec<Place>,
}

/// Where a field is.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) at: u64,
    pub(super) bytes: u64,
}

impl Headers {
    /// Of a release's folder of headers.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let scratch = tempfile::tempdir()?;
        let at = |name: &str| scratch.path().join(name);
        for name in EMPTY {
            let file = at("stub").join(name);
            fs::create_dir_all(file.parent().context("a header lies in no folder")?)?;
            fs::write(file, "")?;
        }
        fs::write(at("stub/cuda.h"), CUDA)?;
        fs::write(at("program.c"), PROGRAM)?;
        Run::new("cc")
            .args(["-g", "-gz=none", "-fno-eliminate-unused-debug-types"])
            // Linked, so that its places of strings are whole.
            .args(["-shared", "-fPIC", "-nostdlib", "-I"])
            .arg(at("stub"))
            .arg("-I")
            .arg(folder)
            .arg("-o")
            .arg(at("program.so"))
            .arg(at("program.c"))
            .quiet()
            .with_context(|| {
                let folder = folder.display();
                format!("the headers of {folder} want more than xtask/src/cupti_layouts/cuda.h has")
            })?;
        let file = fs::read(at("program.so"))?;
        Ok(Self::of(&Nodes::read(&file)?))
    }

    fn of(nodes: &Nodes) -> Self {
        let mut headers = Self::default();
        for node in nodes.0.values() {
            let Some(name) = &node.name else { continue };
            match node.tag {
                gimli::DW_TAG_enumerator if name == API_VERSION => headers.version = node.value.unwrap_or(0),
                gimli::DW_TAG_enumerator => {
                    if let (Some(kind), Some(number)) = (name.strip_prefix("CUPTI_ACTIVITY_KIND_"), node.value) {
                        headers.kinds.insert(kind.to_owned(), number);
                    }
                }
                gimli::DW_TAG_typedef => {
                    let record = name.strip_prefix(ACTIVITY).zip(nodes.record(node));
                    headers
                        .records
                        .extend(record.map(|(name, record)| (name.to_owned(), record)));
                }
                _ => {}
            }
        }
        headers
    }
}

/// The debugging information's entries, by their offset.
struct Nodes(BTreeMap<usize, Node>);

/// What is read of an entry.
struct Node {
    tag: DwTag,
    name: Option<String>,
    /// Offset of its type.
    type_at: Option<usize>,
    bytes: Option<u64>,
    /// Offset within the type that it is a member of.
    at: u64,
    /// Number of an enumerator.
    value: Option<u64>,
    /// The last index of an array.
    last: Option<u64>,
    children: Vec<usize>,
}

type Input<'a> = EndianSlice<'a, LittleEndian>;

impl Nodes {
    fn read(file: &[u8]) -> Result<Self> {
        let elf: ElfFile64<'_, object::LittleEndian> = ElfFile64::parse(file).context("cc wrote no ELF file")?;
        let section = |id: gimli::SectionId| -> Result<Input<'_>> {
            let data = match elf.section_by_name(id.name()) {
                Some(section) => section.data()?,
                None => &[],
            };
            Ok(EndianSlice::new(data, LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(section)?;
        // One source is one unit.
        let header = dwarf.units().next()?.context("cc wrote no debugging information")?;
        let unit = dwarf.unit(header)?;
        let mut entries = unit.entries();
        let mut nodes = BTreeMap::<usize, Node>::new();
        let mut path = Vec::new();
        while let Some(entry) = entries.next_dfs()? {
            let number = |name| entry.attr_value(name).and_then(|value| value.udata_value());
            let name = entry.attr_value(gimli::DW_AT_name);
            let name = name.and_then(|value| dwarf.attr_string(&unit, value).ok());
            let node = Node {
                tag: entry.tag(),
                name: name.map(|name| name.to_string_lossy().into_owned()),
                type_at: match entry.attr_value(gimli::DW_AT_type) {
                    Some(AttributeValue::UnitRef(UnitOffset(at))) => Some(at),
                    _ => None,
                },
                bytes: number(gimli::DW_AT_byte_size),
                at: number(gimli::DW_AT_data_member_location)
                    .or_else(|| Some(number(gimli::DW_AT_data_bit_offset)? / 8))
                    .unwrap_or(0),
                value: number(gimli::DW_AT_const_value),
                last: number(gimli::DW_AT_upper_bound),
                children: Vec::new(),
            };
            let at = entry.offset().0;
            path.truncate(usize::try_from(entry.depth()).unwrap_or(0));
            if let Some(parent) = path.last().and_then(|parent| nodes.get_mut(parent)) {
                parent.children.push(at);
            }
            path.push(at);
            nodes.insert(at, node);
        }
        Ok(Self(nodes))
    }

    fn type_of(&self, node: &Node) -> Option<&Node> {
        self.0.get(&node.type_at?)
    }

    fn children(&self, node: &Node) -> impl Iterator<Item = &Node> {
        node.children.iter().filter_map(|at| self.0.get(at))
    }

    /// The record that a name stands for, where it is one.
    fn record(&self, node: &Node) -> Option<Record> {
        let type_ = self.type_of(node)?;
        let mut fields = Vec::new();
        if type_.tag == gimli::DW_TAG_structure_type {
            self.fields(type_, 0, MAX_DEPTH, &mut fields);
        }
        (!fields.is_empty()).then_some(Record {
            bytes: type_.bytes?,
            fields,
        })
    }

    /// The fields of a type, those of nameless parts among them.
    fn fields(&self, type_: &Node, begin: u64, depth: usize, found: &mut Vec<Place>) {
        let members = self.children(type_).filter(|member| member.tag == gimli::DW_TAG_member);
        for member in members {
            let at = begin.saturating_add(member.at);
            match (&member.name, self.type_of(member)) {
                (Some(name), _) => found.push(Place {
                    name: name.clone(),
                    at,
                    bytes: self.bytes(member, MAX_DEPTH).unwrap_or(0),
                }),
                (None, Some(part)) if depth > 0 => self.fields(part, at, depth - 1, found),
                (None, _) => {}
            }
        }
    }

    /// The bytes of an entry, or of what its type comes to.
    fn bytes(&self, node: &Node, depth: usize) -> Option<u64> {
        if node.bytes.is_some() {
            return node.bytes;
        }
        let one = self.bytes(self.type_of(node)?, depth.checked_sub(1)?)?;
        if node.tag != gimli::DW_TAG_array_type {
            return Some(one);
        }
        self.children(node)
            .filter_map(|range| range.last)
            .try_fold(one, |bytes, last| bytes.checked_mul(last.checked_add(1)?))
    }
}
