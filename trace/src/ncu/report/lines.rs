//! Tables of lines (DWARF): which source line each address was made of, and what was inlined there.

use std::ops::Range;

use gimli::{DebugLine, DebugLineOffset, DwLne, EndianSlice, LineInstruction, LineRow, LittleEndian, Reader};
use hashbrown::HashMap;

use flopwatch_model::{LineStart, SourceLocation};

/// Most rows of a table. Compilers write some two per instruction.
const MAX_ROWS: usize = 4 << 20;
/// Most calls that an instruction is inlined below.
const MAX_CALLS: usize = 64;
/// The file of lines whose table names none.
const NO_FILE: u32 = u32::MAX;
/// NVIDIA's instruction of line programs: the next rows are inlined at the row of that number.
const INLINED_CALL: DwLne = DwLne(0x90);

/// Offsets in a table at which the address of a symbol is to be added.
pub(super) type Relocations = HashMap<u64, u64>;

/// A row that an address has.
#[derive(Debug, Clone, Copy)]
struct Row {
    address: u64,
    /// Place of the file among those of the table; `None` ends a run of rows.
    place: Option<SourceLocation>,
    /// Number of the row that it is inlined at, counted from 1 in its run; 0 for none.
    inlined_at: u32,
    /// Index, among all rows, of the first row of the same run.
    run: usize,
}

/// Rows by address.
#[derive(Debug, Default)]
pub(super) struct LineTable {
    files: Vec<String>,
    rows: Vec<Row>,
    /// Places of rows by rising address; those of one address in the order that the table has them.
    by_address: Vec<usize>,
}

/// Adds addresses of symbols to what the table says.
#[derive(Debug, Clone, Copy)]
struct AddRelocations<'a>(&'a Relocations);

impl gimli::Relocate for AddRelocations<'_> {
    fn relocate_address(&self, offset: usize, value: u64) -> gimli::Result<u64> {
        let at = u64::try_from(offset).ok();
        let base = at.and_then(|at| self.0.get(&at)).copied().unwrap_or(0);
        Ok(value.wrapping_add(base))
    }

    fn relocate_offset(&self, _offset: usize, value: usize) -> gimli::Result<usize> {
        Ok(value)
    }
}

type Input<'a> = gimli::RelocateReader<EndianSlice<'a, LittleEndian>, AddRelocations<'a>>;

impl LineTable {
    /// Reads what is whole of a table.
    pub(super) fn read(bytes: &[u8], relocations: &Relocations) -> Self {
        let mut table = Self::default();
        let input = gimli::RelocateReader::new(EndianSlice::new(bytes, LittleEndian), AddRelocations(relocations));
        let section = DebugLine::from(input);
        let (mut at, mut known) = (0, HashMap::new());
        while at < bytes.len() && table.rows.len() < MAX_ROWS {
            let Some(end) = table.unit(&section, at, &mut known).filter(|end| *end > at) else {
                break;
            };
            at = end;
        }
        table.by_address = (0..table.rows.len()).collect();
        let address = |row: &usize| table.rows.get(*row).map(|row| row.address);
        table.by_address.sort_by_key(address);
        table
    }

    /// Reads the program at an offset; gives where it ends.
    fn unit(&mut self, section: &DebugLine<Input<'_>>, at: usize, known: &mut HashMap<String, u32>) -> Option<usize> {
        const ADDRESS_BYTES: u8 = 8;
        let mut program = section.program(DebugLineOffset(at), ADDRESS_BYTES, None, None).ok()?;
        let header = program.header().clone();
        let length_bytes: usize = match header.format() {
            gimli::Format::Dwarf32 => 4,
            gimli::Format::Dwarf64 => 12,
        };
        let end = at.checked_add(length_bytes)?.checked_add(header.unit_length())?;
        let files: Vec<Option<u32>> = (1..=header.file_names().len())
            .map(|number| self.file(file_name(&header, u64::try_from(number).ok()?)?, known))
            .collect();
        let mut instructions = header.instructions();
        let mut row = LineRow::new(&header);
        let (mut run, mut inlined_at) = (self.rows.len(), 0);
        while let Ok(Some(instruction)) = instructions.next_instruction(&header) {
            if let LineInstruction::UnknownExtended(INLINED_CALL, mut operands) = instruction {
                inlined_at = operands
                    .read_uleb128()
                    .ok()
                    .and_then(|number| u32::try_from(number).ok())
                    .unwrap_or(0);
                continue;
            }
            let Ok(is_row) = row.execute(instruction, &mut program) else {
                break;
            };
            if !is_row {
                continue;
            }
            if self.rows.len() >= MAX_ROWS {
                break;
            }
            let file = usize::try_from(row.file_index())
                .ok()
                .and_then(|number| number.checked_sub(1));
            let file = file.and_then(|location| files.get(location).copied().flatten());
            let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
            // Tables of lines of the PTX name no file: it is the module's.
            let file = file.unwrap_or(NO_FILE);
            let location = line.map(|line| SourceLocation { file, line });
            self.rows.push(Row {
                address: row.address(),
                place: location.filter(|_| !row.end_sequence()),
                inlined_at,
                run,
            });
            if row.end_sequence() {
                (run, inlined_at) = (self.rows.len(), 0);
            }
            row.reset(&header);
        }
        Some(end)
    }

    fn file(&mut self, name: String, known: &mut HashMap<String, u32>) -> Option<u32> {
        if let Some(location) = known.get(&name) {
            return Some(*location);
        }
        let location = u32::try_from(self.files.len()).ok()?;
        self.files.push(name.clone());
        known.insert(name, location);
        Some(location)
    }

    /// The lines of what lies at these addresses, and the files that they are of.
    pub(super) fn lines(&self, addresses: Range<u64>) -> (Vec<String>, Vec<LineStart>) {
        let address = |row: &usize| self.rows.get(*row).map_or(u64::MAX, |row| row.address);
        let begin = self.by_address.partition_point(|row| address(row) < addresses.start);
        let end = self.by_address.partition_point(|row| address(row) < addresses.end);
        let rows = self.by_address.get(begin..end).unwrap_or_default();
        let mut files = Files::default();
        let mut lines: Vec<LineStart> = Vec::new();
        for group in rows.chunk_by(|one, other| address(one) == address(other)) {
            let rows = || group.iter().filter_map(|row| self.rows.get(*row));
            // NVIDIA's tools take the first of the rows that an address has. The last is the
            // innermost that was inlined.
            let first = rows().find(|row| row.place.is_some());
            let innermost = rows().rfind(|row| row.place.is_some() && row.inlined_at > 0);
            let location = first
                .and_then(|row| row.place)
                .map(|location| files.number(self, location));
            let inlined = innermost.map(|row| self.calls(*row)).unwrap_or_default();
            let start = LineStart {
                offset_bytes: group.first().map_or(0, |row| address(row) - addresses.start),
                place: location,
                inlined: inlined
                    .into_iter()
                    .map(|location| files.number(self, location))
                    .collect(),
            };
            let same = lines
                .last()
                .is_some_and(|last| last.place == start.place && last.inlined == start.inlined);
            if !same {
                lines.push(start);
            }
        }
        (files.names, lines)
    }

    /// The place of a row, and those of the calls that it is inlined below.
    fn calls(&self, innermost: Row) -> Vec<SourceLocation> {
        let mut calls = Vec::new();
        let mut row = Some(innermost);
        while let Some(here) = row.filter(|_| calls.len() < MAX_CALLS) {
            calls.extend(here.place);
            let number = usize::try_from(here.inlined_at)
                .ok()
                .and_then(|number| number.checked_sub(1));
            let caller = number.and_then(|number| self.rows.get(here.run.checked_add(number)?));
            row = caller.filter(|caller| caller.run == here.run).copied();
        }
        calls
    }
}

/// The files that some lines are of, numbered as they come.
#[derive(Default)]
struct Files {
    names: Vec<String>,
    numbers: HashMap<u32, u32>,
}

impl Files {
    fn number(&mut self, table: &LineTable, location: SourceLocation) -> SourceLocation {
        let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let file = *self.numbers.entry(location.file).or_insert_with(|| {
            let name = usize::try_from(location.file)
                .ok()
                .and_then(|file| table.files.get(file));
            self.names.push(name.cloned().unwrap_or_default());
            next
        });
        SourceLocation { file, ..location }
    }
}

/// A file with its folder, as NVIDIA's tools write it: one that is not known better than `.` is
/// left out.
fn file_name<R: Reader<Offset = usize>>(header: &gimli::LineProgramHeader<R>, number: u64) -> Option<String> {
    let text = |value: gimli::AttributeValue<R>| match value {
        gimli::AttributeValue::String(text) => {
            let bytes = text.to_slice().ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        }
        _ => None,
    };
    let file = header.file(number)?;
    let name = text(file.path_name())?;
    let folder = file.directory(header).and_then(text).unwrap_or_default();
    if folder.is_empty() || folder == "." || name.starts_with('/') {
        return Some(name);
    }
    Some(format!("{}/{name}", folder.trim_end_matches('/')))
}
