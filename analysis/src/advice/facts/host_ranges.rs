//! Ranges, operators and functions whose names say what the host does while they run: it loads
//! data, collects garbage or compiles.

use flopwatch_model::Category;

use super::{Facts, NamedTime};

/// Categories whose names tell of loading of data and of garbage collection.
pub(crate) const PROGRAM: &[Category] = &[
    Category::CpuOp,
    Category::Annotation,
    Category::NvtxRange,
    Category::PythonFunction,
];

/// Categories whose names tell of compilation.
pub(crate) const COMPILER: &[Category] = &[Category::CpuOp, Category::Annotation];

/// What names of ranges, operators and functions hold that load data; letters of either case are
/// the same.
const LOADING: &[&str] = &[
    "dataloader",
    "data_loader",
    "dataloading",
    "data_loading",
    "data loading",
    "load_data",
    "load data",
    "load_batch",
    "load batch",
    "next_batch",
    "next batch",
    "get_batch",
    "fetch_batch",
    "input_pipeline",
    "iteratorgetnext",
    "iterator::",
];

/// What events of compilation hold: the phases of TorchDynamo and Inductor, and XLA's compiler.
const COMPILING: &[&str] = &["(dynamo_timed)", "XlaCompile", "PjRtCompile", "xla::GpuCompiler"];

/// Such ranges of a capture.
#[derive(Debug, Default)]
pub(crate) struct HostRanges<'a> {
    /// Those in which data is loaded.
    pub(crate) loading: Vec<NamedTime<'a>>,
    /// Those in which garbage is collected.
    pub(crate) garbage: Vec<NamedTime<'a>>,
    /// Those in which the framework compiles. They nest.
    pub(crate) compiling: Vec<NamedTime<'a>>,
}

impl<'a> HostRanges<'a> {
    /// Of the capture that `facts` are of.
    pub(super) fn of(facts: &Facts<'a>) -> Self {
        Self {
            loading: facts.named(PROGRAM, loads_data),
            garbage: facts.named(PROGRAM, collects_garbage),
            compiling: facts.named(COMPILER, |name| COMPILING.iter().any(|word| name.contains(word))),
        }
    }
}

fn loads_data(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    LOADING.iter().any(|word| name.contains(word))
}

/// `gc` as a word, or `garbage`: letters of `gc` are in many other names.
fn collects_garbage(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    name.contains("garbage") || words.any(|word| word == "gc")
}
