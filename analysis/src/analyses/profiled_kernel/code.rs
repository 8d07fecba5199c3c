//! Figures of instructions: by opcode, and by address.

use std::collections::BTreeMap;

use flopwatch_model::{
    Instances, KernelCode, KernelFunction, KernelProfile, LineStart, SourceFile, SourceLocation, ValueList, index,
};
use schemars::JsonSchema;
use serde::Serialize;

/// Most bytes of a line of source in the result.
const MAX_LINE: usize = 240;
/// Most bytes of a text of code in the result.
const MAX_CODE: usize = 1 << 20;

/// Code that the launch ran, as far as the report has it as text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CodeText {
    /// Source text; empty where the report holds none.
    pub source: String,
    /// PTX of all kernels of the module; empty where the compiler left none.
    pub ptx: String,
    /// Bytes of source and PTX that were left out behind the first of each.
    pub left_out_bytes: u64,
    /// Bytes of machine code, of all kernels of the module.
    pub machine_code_bytes: u64,
}

impl CodeText {
    pub(super) fn of(code: &KernelCode) -> Self {
        let mut left_out_bytes = 0;
        let mut cut = |text: &str| {
            let end = text.floor_char_boundary(MAX_CODE);
            left_out_bytes += u64::try_from(text.len() - end).unwrap_or(u64::MAX);
            text.get(..end).unwrap_or_default().to_owned()
        };
        let (source, ptx) = (cut(&code.source), cut(&code.ptx));
        Self {
            source,
            ptx,
            left_out_bytes,
            machine_code_bytes: code.machine_code_bytes,
        }
    }
}

/// Instructions by opcode.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct InstructionMix {
    /// Opcodes, the most executed first.
    pub opcodes: Vec<Opcode>,
}

/// An opcode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Opcode {
    /// Its name, e.g. `FFMA`.
    pub name: String,
    /// Times that a warp executed it.
    pub executed: u64,
}

/// An instruction at an address.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Instruction {
    /// Bytes behind the kernel's first instruction; behind the first with figures where the report
    /// holds no machine code of it.
    pub offset_bytes: u64,
    /// Its text (SASS) as NVIDIA's disassembler writes it; null where it was not disassembled.
    pub text: Option<String>,
    /// The source line that it comes from, as `file:line`; null where the machine code has no table
    /// of lines.
    pub source: Option<String>,
    /// Where it was inlined: the innermost source line first, then that of each call; empty where
    /// nothing was.
    pub inlined: Vec<String>,
    /// The line of the module's PTX that it was made of, counted from 1.
    pub ptx_line: Option<u32>,
    /// Times that a warp executed it.
    pub executed: Option<u64>,
    /// Threads that executed it, in all.
    pub threads: Option<u64>,
    /// Samples of warps that were at it.
    pub samples: Option<u64>,
    /// The state that most of them were in.
    pub stall: Option<String>,
    /// Share of the launch's samples, 0 to 1.
    pub sample_ratio: Option<f64>,
}

impl InstructionMix {
    pub(super) fn of(profile: &KernelProfile) -> Self {
        let Some(Instances {
            keys: ValueList::Texts(names),
            values,
        }) = profile.instances.get("sass__inst_executed_per_opcode")
        else {
            return Self::default();
        };
        let opcodes = names.iter().enumerate().filter_map(|(at, name)| {
            Some(Opcode {
                name: name.clone(),
                executed: integer(values, at)?,
            })
        });
        let mut opcodes: Vec<Opcode> = opcodes.collect();
        opcodes.sort_by(|a, b| b.executed.cmp(&a.executed).then_with(|| a.name.cmp(&b.name)));
        Self { opcodes }
    }
}

fn integer(values: &ValueList, at: usize) -> Option<u64> {
    match values {
        ValueList::Integers(list) => list.get(at).copied(),
        ValueList::Numbers(list) => super::occupancy::whole(&(*list.get(at)?).into()),
        ValueList::Texts(_) => None,
    }
}

/// Values of a metric by address.
fn by_address(profile: &KernelProfile, metric: &str) -> BTreeMap<u64, u64> {
    let Some(Instances {
        keys: ValueList::Integers(addresses),
        values,
    }) = profile.instances.get(metric)
    else {
        return BTreeMap::new();
    };
    let numbered = addresses.iter().enumerate();
    numbered
        .filter_map(|(at, address)| Some((*address, integer(values, at)?)))
        .collect()
}

const EXECUTED: &str = "inst_executed";
const THREADS: &str = "thread_inst_executed";
const SAMPLES: &str = "smsp__pcsamp_sample_count";
const STALL: &str = "smsp__pcsamp_warps_issue_stalled_";

/// Figures of a launch by address.
pub(super) struct ByAddress<'a> {
    executed: BTreeMap<u64, u64>,
    threads: BTreeMap<u64, u64>,
    samples: BTreeMap<u64, u64>,
    /// Samples by address and state.
    stalls: BTreeMap<u64, Vec<(&'a str, u64)>>,
    /// The address that offsets count from.
    first: u64,
    function: Option<&'a KernelFunction>,
    files: &'a [SourceFile],
}

impl<'a> ByAddress<'a> {
    pub(super) fn of(profile: &'a KernelProfile) -> Self {
        let (executed, threads) = (by_address(profile, EXECUTED), by_address(profile, THREADS));
        let samples = by_address(profile, SAMPLES);
        let mut stalls: BTreeMap<u64, Vec<(&str, u64)>> = BTreeMap::new();
        for metric in profile.instances.keys() {
            let Some(reason) = metric
                .strip_prefix(STALL)
                .filter(|reason| !reason.ends_with("_not_issued"))
            else {
                continue;
            };
            for (address, count) in by_address(profile, metric).into_iter().filter(|(_, count)| *count > 0) {
                stalls.entry(address).or_default().push((reason, count));
            }
        }
        let function = profile.function.as_deref();
        let lowest = executed.keys().chain(samples.keys()).min().copied();
        // Machine code that is not of these addresses has nothing to say of them.
        let function = function.filter(|function| lowest.is_none_or(|lowest| lowest >= function.address));
        Self {
            first: function.map(|function| function.address).or(lowest).unwrap_or(0),
            executed,
            threads,
            samples,
            stalls,
            function,
            files: profile
                .code
                .as_deref()
                .map(|code| code.files.as_slice())
                .unwrap_or_default(),
        }
    }

    /// Addresses with figures or text.
    fn addresses(&self) -> Vec<u64> {
        let texts = self.function.iter().flat_map(|function| &function.instructions);
        let texts = texts.map(|of| self.first.saturating_add(of.offset_bytes));
        let figures = self.executed.keys().chain(self.samples.keys()).copied();
        let mut addresses: Vec<u64> = figures.chain(texts).collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }

    fn all_samples(&self) -> u64 {
        self.samples.values().sum()
    }

    fn line(&self, address: u64) -> Option<&'a LineStart> {
        self.function?.line_at(address.checked_sub(self.first)?)
    }

    /// The text of a line, without the blanks around it.
    fn line_of(&self, path: &str, line: u32) -> Option<String> {
        let file = self.files.iter().find(|file| file.path == path)?;
        let text = file.text.lines().nth(index(line.checked_sub(1)?))?.trim();
        let end = text.floor_char_boundary(MAX_LINE);
        text.get(..end).map(str::to_owned)
    }

    fn name(&self, location: SourceLocation) -> String {
        let files = self
            .function
            .map(|function| function.files.as_slice())
            .unwrap_or_default();
        let file = files.get(index(location.file)).map_or("", String::as_str);
        format!("{file}:{}", location.line)
    }

    /// Instructions with most samples, in the order of addresses, and how many were left out.
    pub(super) fn instructions(&self, limit: u32) -> (Vec<Instruction>, u64) {
        let mut addresses = self.addresses();
        let all = self.all_samples();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let left_out = u64::try_from(addresses.len().saturating_sub(limit)).unwrap_or(u64::MAX);
        if left_out > 0 {
            addresses.sort_by_key(|address| {
                let samples = self.samples.get(address).copied().unwrap_or(0);
                (std::cmp::Reverse(samples), *address)
            });
            addresses.truncate(limit);
            addresses.sort_unstable();
        }
        let instruction = |address: u64| {
            let samples = self.samples.get(&address).copied();
            let line = self.line(address);
            let offset_bytes = address - self.first;
            Instruction {
                offset_bytes,
                text: self
                    .function
                    .and_then(|function| function.text_at(offset_bytes))
                    .map(str::to_owned),
                source: line.and_then(|line| line.place).map(|location| self.name(location)),
                inlined: line.map_or_else(Vec::new, |line| {
                    line.inlined.iter().map(|location| self.name(*location)).collect()
                }),
                ptx_line: self.function.and_then(|function| function.ptx_line_at(offset_bytes)),
                executed: self.executed.get(&address).copied(),
                threads: self.threads.get(&address).copied(),
                samples,
                stall: self.stalls.get(&address).and_then(|stalls| longest(stalls)),
                sample_ratio: samples.and_then(|samples| share(samples, all)),
            }
        };
        (addresses.into_iter().map(instruction).collect(), left_out)
    }

    /// Source lines, those with most samples first, and how many were left out.
    pub(super) fn source_lines(&self, limit: u32) -> (Vec<SourceLine>, u64) {
        let mut lines: BTreeMap<SourceLocation, (SourceLine, BTreeMap<&str, u64>)> = BTreeMap::new();
        for address in self.addresses() {
            let Some(location) = self.line(address).and_then(|line| line.place) else {
                continue;
            };
            let (line, states) = lines.entry(location).or_default();
            line.instructions += 1;
            for (sum, figures) in [
                (&mut line.executed, &self.executed),
                (&mut line.threads, &self.threads),
                (&mut line.samples, &self.samples),
            ] {
                if let Some(figure) = figures.get(&address) {
                    *sum = Some(sum.unwrap_or(0).saturating_add(*figure));
                }
            }
            for (state, count) in self.stalls.get(&address).into_iter().flatten() {
                *states.entry(state).or_default() += count;
            }
        }
        let all = self.all_samples();
        let mut lines: Vec<SourceLine> = lines
            .into_iter()
            .map(|(location, (line, states))| {
                let states: Vec<(&str, u64)> = states.into_iter().collect();
                let file = self
                    .function
                    .and_then(|function| function.files.get(index(location.file)));
                SourceLine {
                    file: file.cloned().unwrap_or_default(),
                    line: location.line,
                    text: file.and_then(|file| self.line_of(file, location.line)),
                    stall: longest(&states),
                    sample_ratio: line.samples.and_then(|samples| share(samples, all)),
                    ..line
                }
            })
            .collect();
        lines.sort_by(|a, b| {
            let weight = |line: &SourceLine| std::cmp::Reverse((line.samples, line.executed));
            weight(a)
                .cmp(&weight(b))
                .then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line)))
        });
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let left_out = u64::try_from(lines.len().saturating_sub(limit)).unwrap_or(u64::MAX);
        lines.truncate(limit);
        (lines, left_out)
    }

    /// How many instructions and samples have a source line; `None` where the machine code has no
    /// table of lines.
    pub(super) fn coverage(&self) -> Option<LineCoverage> {
        self.function.filter(|function| !function.lines.is_empty())?;
        let mut coverage = LineCoverage::default();
        for address in self.addresses() {
            let has_line = self.line(address).is_some_and(|line| line.place.is_some());
            let samples = self.samples.get(&address).copied().unwrap_or(0);
            coverage.instructions += 1;
            coverage.samples += samples;
            if has_line {
                coverage.instructions_with_line += 1;
                coverage.samples_with_line += samples;
            }
        }
        Some(coverage)
    }

    /// Whether there is machine code that figures are of.
    pub(super) const fn has_machine_code(&self) -> bool {
        self.function.is_some()
    }

    /// Why no instruction has a text; `None` where they have.
    pub(super) fn not_disassembled(&self) -> Option<&'a str> {
        let function = self.function.filter(|function| function.instructions.is_empty())?;
        Some(if function.not_disassembled.is_empty() {
            "this capture was read without NVIDIA's disassembler (nvdisasm), which alone reads machine code"
        } else {
            &function.not_disassembled
        })
    }
}

/// The state of most samples; the first by name of those with equally many.
fn longest(stalls: &[(&str, u64)]) -> Option<String> {
    let max = stalls.iter().map(|(_, count)| *count).max()?;
    let (state, _) = stalls.iter().find(|(_, count)| *count == max)?;
    Some((*state).to_owned())
}

fn share(part: u64, all: u64) -> Option<f64> {
    let of = |number: u64| flopwatch_model::approximate(number.into());
    (all > 0).then(|| of(part) / of(all))
}

/// Figures of the instructions of a source line, summed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct SourceLine {
    /// The file, as its compiler was given it.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// Its text; null where the report does not hold the file (`ncu --import-source yes`).
    pub text: Option<String>,
    /// Instructions that it was made into.
    pub instructions: u64,
    /// Times that a warp executed one of them.
    pub executed: Option<u64>,
    /// Threads that executed one of them, in all.
    pub threads: Option<u64>,
    /// Samples of warps that were at one of them.
    pub samples: Option<u64>,
    /// The state that most of them were in.
    pub stall: Option<String>,
    /// Share of the launch's samples, 0 to 1.
    pub sample_ratio: Option<f64>,
}

/// How much of a launch has a source line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LineCoverage {
    /// Instructions with figures or text.
    pub instructions: u64,
    /// Those with a source line.
    pub instructions_with_line: u64,
    /// Samples of the launch.
    pub samples: u64,
    /// Those at instructions with a source line.
    pub samples_with_line: u64,
}
