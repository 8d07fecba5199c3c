//! Machine code of a module, as it is loaded onto a device: an ELF file with the functions and the
//! tables of their lines.

use hashbrown::HashMap;
use object::LittleEndian;
use object::elf::{EM_CUDA, FileHeader64, SHT_REL, SHT_SYMTAB, STT_FUNC, STT_SECTION};
use object::read::elf::{FileHeader, SectionHeader, SectionTable, Sym, SymbolTable};
use object::{SectionIndex, SymbolIndex};

use super::lines::{LineTable, Relocations};
use flopwatch_model::{KernelFunction, PtxStart};

type Elf = FileHeader64<LittleEndian>;

/// The section of a module in which compilers leave the PTX that they made it of, where they are
/// asked for line numbers.
const PTX: &[u8] = b".nv_debug_ptx_txt";
/// Lines of source files.
const SOURCE_LINES: &str = ".debug_line";
/// Lines of the PTX, in the same form.
const PTX_LINES: &str = ".nv_debug_line_sass";
/// Where the sections of modules that are not loaded are put apart from each other: they all begin
/// at 0.
const APART: u32 = 40;

/// A module.
pub(super) struct Module<'a> {
    elf: &'a [u8],
    header: &'a Elf,
    sections: SectionTable<'a, Elf>,
    symbols: SymbolTable<'a, Elf>,
    /// Where sections were loaded; those that were not are missing.
    loaded: HashMap<SectionIndex, u64>,
    /// The tables of lines, once one was asked for.
    tables: Option<(LineTable, LineTable)>,
}

/// A function of a module, before its lines are looked up.
struct FunctionLocation<'a> {
    code: &'a [u8],
    /// Where the tables of lines have its first instruction.
    in_tables: u64,
    /// Where it was loaded; 0 where it was not.
    loaded: u64,
}

impl<'a> Module<'a> {
    /// The module that a report holds as bytes; `None` of what is no machine code of NVIDIA's
    /// devices.
    pub(super) fn parse(elf: &'a [u8]) -> Option<Self> {
        let header = Elf::parse(elf).ok()?;
        (header.e_machine.get(LittleEndian) == EM_CUDA).then_some(())?;
        let sections = header.sections(LittleEndian, elf).ok()?;
        let symbols = sections.symbols(LittleEndian, elf, SHT_SYMTAB).ok()?;
        let of_sections = symbols.iter().filter(|symbol| symbol.st_type() == STT_SECTION);
        let addresses = of_sections.map(|symbol| {
            let section = SectionIndex(symbol.st_shndx.get(LittleEndian).into());
            (section, symbol.st_value.get(LittleEndian))
        });
        let loaded = addresses.filter(|(_, address)| *address > 0).collect();
        Some(Self {
            elf,
            header,
            sections,
            symbols,
            loaded,
            tables: None,
        })
    }

    /// The architecture, e.g. `sm_86`. It stands in the lowest byte of the flags, and in the next
    /// one since the format of CUDA 13.
    fn architecture(&self) -> String {
        const SINCE_CUDA_13: u8 = 0x41;
        let flags = self.header.e_flags.get(LittleEndian);
        let shift = if self.header.e_ident.os_abi == SINCE_CUDA_13 {
            8
        } else {
            0
        };
        match (flags >> shift) & 0xff {
            0 => String::new(),
            number => format!("sm_{number}"),
        }
    }

    fn section(&self, name: &str) -> Option<(SectionIndex, &'a [u8])> {
        let (index, header) = self.sections.section_by_name(LittleEndian, name.as_bytes())?;
        Some((index, header.data(LittleEndian, self.elf).ok()?))
    }

    /// The PTX that the module was made of, where its compiler left it.
    pub(super) fn ptx(&self) -> Option<String> {
        let (_, text) = self.section(std::str::from_utf8(PTX).ok()?)?;
        // Lines that end in a zero byte each.
        let lines = text.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let text: Vec<_> = lines.collect();
        Some(text.join("\n").trim_end().to_owned())
    }

    /// Where a section was loaded; 0 where it was not.
    fn load_address(&self, section: SectionIndex) -> u64 {
        self.loaded.get(&section).copied().unwrap_or(0)
    }

    /// Where the tables of lines have the first byte of a section.
    fn in_tables(&self, section: SectionIndex) -> u64 {
        match self.load_address(section) {
            0 => u64::try_from(section.0).unwrap_or(u64::MAX) << APART,
            loaded => loaded,
        }
    }

    fn find(&self, name: &[u8]) -> Option<FunctionLocation<'a>> {
        let symbol = self.symbols.iter().find(|symbol| {
            symbol.st_type() == STT_FUNC
                && symbol.st_shndx.get(LittleEndian) != 0
                && symbol.name(LittleEndian, self.symbols.strings()) == Ok(name)
        })?;
        let index = SectionIndex(symbol.st_shndx.get(LittleEndian).into());
        let data = self.sections.section(index).ok()?.data(LittleEndian, self.elf).ok()?;
        let value = symbol.st_value.get(LittleEndian);
        let offset = value.checked_sub(self.load_address(index))?;
        let rest = data.get(usize::try_from(offset).ok()?..)?;
        let size = usize::try_from(symbol.st_size.get(LittleEndian)).ok()?;
        Some(FunctionLocation {
            code: rest.get(..size.min(rest.len()))?,
            in_tables: self.in_tables(index).checked_add(offset)?,
            loaded: if self.load_address(index) == 0 { 0 } else { value },
        })
    }

    /// What a table of lines has to be corrected by: nothing where the module is loaded, else the
    /// sections that its addresses are of.
    fn relocations(&self, table: SectionIndex) -> Relocations {
        let mut relocations = Relocations::default();
        let of_table = self.sections.iter().filter(|header| {
            header.sh_type.get(LittleEndian) == SHT_REL
                && usize::try_from(header.sh_info.get(LittleEndian)) == Ok(table.0)
        });
        for header in of_table {
            let Ok(Some((entries, _))) = header.rel(LittleEndian, self.elf) else {
                continue;
            };
            for entry in entries {
                let symbol = SymbolIndex(usize::try_from(entry.r_info.get(LittleEndian) >> 32).unwrap_or(usize::MAX));
                let Ok(symbol) = self.symbols.symbol(symbol) else {
                    continue;
                };
                let section = SectionIndex(symbol.st_shndx.get(LittleEndian).into());
                if self.load_address(section) == 0 {
                    let value = symbol.st_value.get(LittleEndian);
                    let base = self.in_tables(section).saturating_add(value);
                    relocations.insert(entry.r_offset.get(LittleEndian), base);
                }
            }
        }
        relocations
    }

    fn table(&self, name: &str) -> LineTable {
        let Some((index, bytes)) = self.section(name) else {
            return LineTable::default();
        };
        LineTable::read(bytes, &self.relocations(index))
    }

    /// The function of that name; `entry` is where a launch had its first instruction, where the
    /// report says so.
    pub(super) fn function(&mut self, name: &[u8], entry: Option<u64>) -> Option<KernelFunction> {
        let FunctionLocation {
            code,
            in_tables,
            loaded,
        } = self.find(name)?;
        let bytes = u64::try_from(code.len()).ok()?;
        if self.tables.is_none() {
            self.tables = Some((self.table(SOURCE_LINES), self.table(PTX_LINES)));
        }
        let (source, ptx) = self.tables.as_ref()?;
        let mut function = KernelFunction {
            address: entry.unwrap_or(loaded),
            bytes,
            architecture: self.architecture(),
            code: code.to_vec(),
            ..KernelFunction::default()
        };
        let range = in_tables..in_tables.checked_add(bytes)?;
        (function.files, function.lines) = source.lines(range.clone());
        let ptx_lines = ptx.lines(range).1.into_iter().map(|start| PtxStart {
            offset_bytes: start.offset_bytes,
            line: start.place.map_or(0, |location| location.line),
        });
        function.ptx_lines = ptx_lines.collect();
        Some(function)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use flopwatch_model::{LineStart, SourceLocation};

    /// `lines.cu` beside it, compiled by CUDA 13.0 with `-lineinfo` for `sm_86`.
    const CUBIN: &[u8] = include_bytes!("../../../tests/suite/data/lines.cubin");
    const FILE: &str = "/src/lines.cu";

    /// Offsets, lines, and lines of what was inlined.
    fn line_rows(lines: &[LineStart]) -> Vec<(u64, u32, Vec<u32>)> {
        let line = |location: SourceLocation| location.line;
        let line_rows = lines.iter().map(|start| {
            let inlined = start.inlined.iter().copied().map(line).collect();
            (start.offset_bytes, start.place.map_or(0, line), inlined)
        });
        line_rows.collect()
    }

    #[test]
    fn a_kernel_has_the_lines_that_nvidias_disassembler_prints_for_it() {
        let mut module = Module::parse(CUBIN).unwrap();
        let first = module.function(b"first", None).unwrap();
        assert_eq!((first.address, first.bytes), (0, 512));
        assert_eq!((first.architecture.as_str(), first.code.len()), ("sm_86", 512));
        assert_eq!(first.files, [FILE]);
        // `nvdisasm -gi`: at 0xa0 "line 3 inlined at line 6", "line 6 inlined at line 12", "line
        // 12".
        let expected = [
            (0, 9, vec![]),
            (0x10, 10, vec![]),
            (0x40, 11, vec![]),
            (0x60, 12, vec![]),
            (0xa0, 12, vec![3, 6, 12]),
            (0xb0, 7, vec![7, 12]),
            (0xc0, 7, vec![3, 7, 12]),
            (0xd0, 7, vec![7, 12]),
            (0xe0, 12, vec![]),
            (0xf0, 13, vec![]),
        ];
        assert_eq!(line_rows(&first.lines), expected);
        let ptx = module.ptx().unwrap();
        let ptx_at = |offset: u64| {
            let line = usize::try_from(first.ptx_line_at(offset).unwrap()).unwrap();
            ptx.lines().nth(line - 1).unwrap().trim()
        };
        assert_eq!(ptx_at(0x10), "mov.u32 \t%r3, %ctaid.x;");
        assert_eq!(ptx_at(0xb0), "mul.f32 \t%f3, %f2, 0f40400000;");
    }

    #[test]
    fn functions_that_all_begin_at_zero_have_their_own_lines() {
        let mut module = Module::parse(CUBIN).unwrap();
        let second = module.function(b"_Z6secondPfi", Some(0x7000)).unwrap();
        assert_eq!((second.address, second.bytes), (0x7000, 1024));
        let lines = line_rows(&second.lines);
        assert_eq!(lines[0], (0, 14, vec![]));
        // The slow way of a square root behind the kernel has the line of its end, as NVIDIA's
        // tools have it.
        assert_eq!(lines.last().unwrap().1, 17);
        assert!(lines.contains(&(0x180, 16, vec![3, 16])), "{lines:?}");
        assert!(module.function(b"third", None).is_none());
    }

    /// The same module as a device has it: symbols and tables have addresses.
    fn loaded(address: u64) -> Vec<u8> {
        let module = Module::parse(CUBIN).unwrap();
        let (text, _) = module.section(".text.first").unwrap();
        let mut elf = CUBIN.to_vec();
        let mut put = |at: u64, value: u64| {
            let at = usize::try_from(at).unwrap();
            elf[at..at + 8].copy_from_slice(&value.to_le_bytes());
        };
        let header = |name: &[u8]| module.sections.section_by_name(LittleEndian, name).unwrap().1;
        let begin = |name: &[u8]| header(name).sh_offset.get(LittleEndian);
        for (number, symbol) in module.symbols.iter().enumerate() {
            if usize::from(symbol.st_shndx.get(LittleEndian)) == text.0 {
                let at = begin(b".symtab") + u64::try_from(number).unwrap() * 24 + 8;
                put(at, address + symbol.st_value.get(LittleEndian));
            }
        }
        for (table, section) in [
            (b".debug_line".as_slice(), SOURCE_LINES),
            (b".nv_debug_line_sass", PTX_LINES),
        ] {
            let (index, _) = module.section(section).unwrap();
            for (offset, base) in module.relocations(index) {
                if base == module.in_tables(text) {
                    put(begin(table) + offset, address);
                }
            }
        }
        elf
    }

    #[test]
    fn a_module_that_is_loaded_has_the_same_lines_at_its_addresses() {
        let elf = loaded(0x7fd5_24fb_8900);
        let mut module = Module::parse(&elf).unwrap();
        let found = module.function(b"first", None).unwrap();
        let expected = Module::parse(CUBIN).unwrap().function(b"first", None).unwrap();
        assert_eq!(found.address, 0x7fd5_24fb_8900);
        assert_eq!(found.lines, expected.lines);
        assert_eq!(found.ptx_lines, expected.ptx_lines);
    }

    #[test]
    fn a_module_that_is_cut_off_anywhere_gives_less_or_nothing() {
        let whole = Module::parse(CUBIN).unwrap().function(b"first", None).unwrap();
        let header = Module::parse(CUBIN).unwrap().header;
        // Headers of sections are behind all that is read.
        let sections = header.e_shoff.get(LittleEndian) + 64 * u64::from(header.e_shnum.get(LittleEndian));
        for end in 0..usize::try_from(sections).unwrap() {
            let found = Module::parse(&CUBIN[..end]).and_then(|mut module| module.function(b"first", None));
            assert!(found.is_none_or(|found| found != whole), "{end}");
        }
        assert!(Module::parse(b"\x7fELF of something else").is_none());
    }

    proptest! {
        #[test]
        fn damage_anywhere_ends_in_an_answer(damage in prop::collection::vec((0..CUBIN.len(), any::<u8>()), 1..24)) {
            let mut elf = CUBIN.to_vec();
            for (at, byte) in damage {
                elf[at] = byte;
            }
            if let Some(mut module) = Module::parse(&elf) {
                for name in [b"first".as_slice(), b"_Z6secondPfi"] {
                    if let Some(found) = module.function(name, None) {
                        prop_assert!(found.code.len() <= elf.len());
                        prop_assert!(found.lines.windows(2).all(|pair| pair[0].offset_bytes < pair[1].offset_bytes));
                        prop_assert!(found.lines.iter().all(|line| line.inlined.len() <= 64));
                    }
                }
                drop(module.ptx());
            }
        }
    }
}
