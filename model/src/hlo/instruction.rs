//! Instructions: what each does, on what, and where in the program's source it comes from.

use super::ReadError;
use super::budget::Budget;
use super::shape::Shape;
use crate::wire::Message;

/// An instruction. What only some have is empty, or 0, in the others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Instruction {
    /// Name of the instruction, unique in its module.
    pub name: String,
    /// What it does: an opcode of HLO, e.g. `dot` or `fusion`.
    pub opcode: String,
    /// Shape of its value.
    pub shape: Shape,
    /// Number of the instruction.
    pub id: u64,
    /// Numbers of the instructions whose values it takes.
    pub operands: Vec<u64>,
    /// Numbers of the computations that it calls.
    pub called: Vec<u64>,
    /// Operation of the framework that it comes from, e.g. `jit(f)/dot_general`.
    pub op_name: String,
    /// File of the program's source; may be empty where it has a stack.
    pub source_file: String,
    /// Line in that file, counted from 1.
    pub source_line: u64,
    /// Number of its stack in the module's [`super::Frames`]; 0 for none.
    pub stack_frame: u64,
    /// Which parameter of its computation it is, of opcode `parameter`.
    pub parameter: u64,
    /// Which part it takes, of opcode `get-tuple-element`.
    pub tuple_index: u64,
    /// How a fusion is compiled: `kLoop`, `kInput`, `kOutput`, `kCustom`.
    pub fusion_kind: String,
    /// What a custom call calls, e.g. `__cublas$gemm`.
    pub custom_call_target: String,
    /// Dimensions that an operation is along, e.g. those that it reduces.
    pub dimensions: Vec<u64>,
    /// Dimensions of the first operand that a product sums over.
    pub contracting: Vec<u64>,
    /// Window of a convolution or of a windowed reduction.
    pub window: Vec<WindowDimension>,
    /// What the dimensions of a convolution are.
    pub convolution: Option<Box<Convolution>>,
    /// Groups of features of a convolution; 0 where it does not say, for 1.
    pub feature_groups: u64,
    /// Groups of batches of a convolution; 0 where it does not say, for 1.
    pub batch_groups: u64,
    /// Lengths of a Fourier transform.
    pub fft_length: Vec<u64>,
    /// Configuration by the compiler, mostly JSON.
    pub backend_config: String,
}

/// A dimension of a window. Paddings may be negative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WindowDimension {
    /// Elements of the window.
    pub size: u64,
    /// Elements from one position to the next.
    pub stride: u64,
    /// Elements in front of the base area.
    pub padding_low: i64,
    /// Distance of the window's elements.
    pub window_dilation: u64,
    /// Distance of the base area's elements.
    pub base_dilation: u64,
}

/// Which dimensions of a convolution are what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Convolution {
    /// Batch of the input.
    pub input_batch: u64,
    /// Features of the input.
    pub input_feature: u64,
    /// What the window moves over in the input.
    pub input_spatial: Vec<u64>,
    /// What the window moves over in the kernel.
    pub kernel_spatial: Vec<u64>,
    /// Features of the output.
    pub output_feature: u64,
    /// What the window moves over in the output.
    pub output_spatial: Vec<u64>,
}

impl Instruction {
    /// `HloInstructionProto`; numbers of the fields are in the match.
    pub(super) fn read(message: Message<'_>, budget: &mut Budget) -> Result<Self, ReadError> {
        budget.one::<Self>()?;
        let mut found = Self::default();
        for field in message.fields() {
            let (number, value) = field?;
            match (number, value.message()) {
                (1, _) => found.name = budget.text(value)?,
                (2, _) => found.opcode = budget.text(value)?,
                (3, Some(message)) => found.shape = Shape::read(message, budget)?,
                (7, Some(message)) => found.read_metadata(message, budget)?,
                (9, _) => found.parameter = value.number().unwrap_or(0),
                (11, _) => found.fusion_kind = budget.text(value)?,
                (13, _) => found.tuple_index = value.number().unwrap_or(0),
                (14, _) => budget.numbers(value, &mut found.dimensions)?,
                (15, Some(message)) => {
                    for field in message.fields() {
                        if let (1, Some(message)) = field.map(|(number, value)| (number, value.message()))? {
                            budget.one::<WindowDimension>()?;
                            found.window.push(WindowDimension::read(message)?);
                        }
                    }
                }
                (16, Some(message)) => {
                    budget.one::<Convolution>()?;
                    found.convolution = Some(Box::new(Convolution::read(message, budget)?));
                }
                (28, _) => found.custom_call_target = budget.text(value)?,
                (30, Some(message)) => found.read_dot(message, budget)?,
                // A ragged product has the dimensions of a product in it.
                (90, Some(message)) => {
                    for field in message.fields() {
                        if let (1, Some(dot)) = field.map(|(number, value)| (number, value.message()))? {
                            found.read_dot(dot, budget)?;
                        }
                    }
                }
                (32, _) => budget.numbers(value, &mut found.fft_length)?,
                (35, _) => found.id = value.number().unwrap_or(0),
                (36, _) => budget.numbers(value, &mut found.operands)?,
                (38, _) => budget.numbers(value, &mut found.called)?,
                (43, _) => found.backend_config = budget.text(value)?,
                (50, _) => found.feature_groups = value.number().unwrap_or(0),
                (58, _) => found.batch_groups = value.number().unwrap_or(0),
                _ => {}
            }
        }
        Ok(found)
    }

    /// `OpMetadata`: name 2, file 3, line 4, stack 15.
    fn read_metadata(&mut self, message: Message<'_>, budget: &mut Budget) -> Result<(), ReadError> {
        for field in message.fields() {
            let (number, value) = field?;
            match number {
                2 => self.op_name = budget.text(value)?,
                3 => self.source_file = budget.text(value)?,
                4 => self.source_line = value.number().unwrap_or(0),
                15 => self.stack_frame = value.number().unwrap_or(0),
                _ => {}
            }
        }
        Ok(())
    }

    /// `DotDimensionNumbers`: contracting dimensions of the first operand 1.
    fn read_dot(&mut self, message: Message<'_>, budget: &mut Budget) -> Result<(), ReadError> {
        for field in message.fields() {
            if let (1, value) = field? {
                budget.numbers(value, &mut self.contracting)?;
            }
        }
        Ok(())
    }
}

impl WindowDimension {
    /// `WindowDimension`: size 1, stride 2, padding in front 3, dilation of the window 5 and of the
    /// base 6.
    fn read(message: Message<'_>) -> Result<Self, ReadError> {
        let mut found = Self::default();
        for field in message.fields() {
            let (number, value) = field?;
            let value = value.number().unwrap_or(0);
            match number {
                1 => found.size = value,
                2 => found.stride = value,
                3 => found.padding_low = value.cast_signed(),
                5 => found.window_dilation = value,
                6 => found.base_dilation = value,
                _ => {}
            }
        }
        Ok(found)
    }
}

impl Convolution {
    /// `ConvolutionDimensionNumbers`; numbers of the fields are in the match.
    fn read(message: Message<'_>, budget: &mut Budget) -> Result<Self, ReadError> {
        let mut found = Self::default();
        for field in message.fields() {
            let (number, value) = field?;
            match number {
                6 => budget.numbers(value, &mut found.kernel_spatial)?,
                7 => found.input_batch = value.number().unwrap_or(0),
                8 => found.input_feature = value.number().unwrap_or(0),
                10 => found.output_feature = value.number().unwrap_or(0),
                11 => budget.numbers(value, &mut found.input_spatial)?,
                12 => budget.numbers(value, &mut found.output_spatial)?,
                _ => {}
            }
        }
        Ok(found)
    }
}
