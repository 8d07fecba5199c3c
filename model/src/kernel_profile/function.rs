//! The function that a launch ran, as machine code.

use serde::{Deserialize, Serialize};

/// Machine code of a kernel: where it lies, the lines that it was made of, and its text where a
/// disassembler was at hand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelFunction {
    /// Address of its first instruction, as the keys of instances have it.
    pub address: u64,
    /// How long it is.
    pub bytes: u64,
    /// The architecture that it is for, e.g. `sm_86`; empty where the machine code does not say.
    pub architecture: String,
    /// The machine code itself; a timeline file does not keep it.
    #[serde(skip)]
    pub code: Vec<u8>,
    /// Source files that lines are of.
    pub files: Vec<String>,
    /// Where instructions come from, by rising offset: each is good up to the next.
    pub lines: Vec<LineStart>,
    /// Where the PTX of instructions is, likewise.
    pub ptx_lines: Vec<PtxStart>,
    /// Text of instructions (SASS), by rising offset; empty where none was made.
    pub instructions: Vec<InstructionText>,
    /// Why there is no text; empty where there is, and where none was asked for.
    pub not_disassembled: String,
}

/// The source of the instructions from an offset on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LineStart {
    /// Bytes behind the function's first instruction.
    pub offset_bytes: u64,
    /// The place; null for instructions that no line is known of.
    pub place: Option<SourceLocation>,
    /// Where code was inlined: the innermost place first, then the place of each call. Empty where
    /// nothing was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<SourceLocation>,
}

/// A line of a source file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SourceLocation {
    /// Place of the file among [`KernelFunction::files`].
    pub file: u32,
    /// The line, counted from 1.
    pub line: u32,
}

/// The PTX of the instructions from an offset on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PtxStart {
    /// Bytes behind the function's first instruction.
    pub offset_bytes: u64,
    /// The line of the module's PTX, counted from 1; 0 where none is known.
    pub line: u32,
}

/// An instruction's text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstructionText {
    /// Bytes behind the function's first instruction.
    pub offset_bytes: u64,
    /// The instruction as NVIDIA's disassembler writes it.
    pub text: String,
}

impl KernelFunction {
    /// Where the instruction at an offset comes from.
    pub fn line_at(&self, offset_bytes: u64) -> Option<&LineStart> {
        let behind = self.lines.partition_point(|line| line.offset_bytes <= offset_bytes);
        self.lines.get(behind.checked_sub(1)?)
    }

    /// The line of the PTX that the instruction at an offset was made of.
    pub fn ptx_line_at(&self, offset_bytes: u64) -> Option<u32> {
        let behind = self.ptx_lines.partition_point(|line| line.offset_bytes <= offset_bytes);
        let start = self.ptx_lines.get(behind.checked_sub(1)?)?;
        (start.line > 0).then_some(start.line)
    }

    /// The text of the instruction at an offset.
    pub fn text_at(&self, offset_bytes: u64) -> Option<&str> {
        let position = self
            .instructions
            .binary_search_by_key(&offset_bytes, |of| of.offset_bytes);
        self.instructions.get(position.ok()?).map(|of| of.text.as_str())
    }
}
