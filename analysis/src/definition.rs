//! What an analysis says of itself, as a type and as a value.

use std::io::{self, Write};

use flopwatch_model::{Loss, Needs};
use flopwatch_report::page::{self, Heading};
use flopwatch_report::{Format, Layout, Page, Tabular, page_of};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::export::Export;
use crate::group::Group;
use crate::input::{Input, Inputs};
use crate::outcome::{AnalysisOutcome, Outcome, write_as};
use crate::parameters::{Parameters, Properties};

/// An analysis: a pure function of captures and parameters to a result that is written as JSON.
pub trait Analysis: 'static {
    /// Its name, in kebab case, at most [`Definition::LONGEST_NAME`] bytes. A table of another tool
    /// keeps that tool's name.
    const NAME: &'static str;
    /// Raised whenever the same inputs and parameters may give another result: by a change of the
    /// computation, of the result's type or of a parameter's default. Kept results of other
    /// versions are never served.
    const VERSION: u32;
    /// Description of the analysis, a sentence for people.
    const ABOUT: &'static str;
    /// What people call the analysis: its name in lists, and the heading of its page. A table of
    /// another tool is called as that tool calls it.
    const TITLE: &'static str = Self::NAME;
    /// Question that the analysis answers: its group in lists.
    const GROUP: Group = Group::Capture;
    /// Number of captures that the analysis is made of: one, unless it says another.
    const INPUTS: InputCount = InputCount::One;
    /// Parts of each capture that the analysis reads.
    const NEEDS: Needs;
    /// Its parameters: a struct of plain fields with `#[serde(default, deny_unknown_fields)]`, each
    /// documented. Bounds are said to schemars (`#[schemars(range(min = 1, max = 100))]`) and are
    /// checked from there. `capture`, `uid`, `with` and `format` are no names: queries name
    /// captures and the form of the result by them.
    type Params: DeserializeOwned + Serialize + JsonSchema + Default;
    /// Its result. A result whose one list holds plain fields is shown as a table; see [`Tabular`].
    type Output: Serialize + JsonSchema + 'static;

    /// Runs it.
    fn run(inputs: &Inputs<'_>, params: &Self::Params) -> Result<Self::Output, AnalysisError>;

    /// The result as people read it. Without words of its own an analysis whose result is a table
    /// (see [`Tabular`]) has that table, and any other its figures as tiles and its lists as
    /// tables.
    fn page(output: &Self::Output) -> Result<Page, AnalysisError> {
        let value = serde_json::to_value(output).map_err(AnalysisError::Json)?;
        Ok(page_of(
            Self::TITLE,
            Self::ABOUT,
            &schema_of::<Self::Output>(SchemaSettings::default()),
            &value,
        ))
    }

    /// The one word of the result that a program's exit code stands for, whatever the result is
    /// written as; `None` of most.
    fn verdict(_output: &Self::Output) -> Option<&'static str> {
        None
    }

    /// The result as text: its page, unless an analysis has older readers that know it otherwise.
    fn text(output: &Self::Output, layout: Layout) -> Result<String, AnalysisError> {
        Ok(page::text::render(&Self::page(output)?, layout))
    }

    /// The result as CSV: the tables of its page, unless an analysis has older readers that know it
    /// otherwise.
    fn csv(output: &Self::Output) -> Result<String, AnalysisError> {
        Ok(page::csv::render(&Self::page(output)?))
    }

    /// Writes the result: compact JSON and a line's end, unless an analysis has older clients that
    /// know it otherwise.
    fn write(output: &Self::Output, out: &mut dyn Write) -> Result<(), AnalysisError> {
        serde_json::to_writer(&mut *out, output).map_err(AnalysisError::Json)?;
        Ok(out.write_all(b"\n")?)
    }
}

/// An analysis whose result is a file for another program.
pub trait FileAnalysis {
    /// As [`Analysis::NAME`].
    const NAME: &'static str;
    /// As [`Analysis::VERSION`].
    const VERSION: u32;
    /// As [`Analysis::ABOUT`].
    const ABOUT: &'static str;
    /// As [`Analysis::TITLE`].
    const TITLE: &'static str;
    /// As [`Analysis::INPUTS`].
    const INPUTS: InputCount = InputCount::One;
    /// As [`Analysis::NEEDS`].
    const NEEDS: Needs;
    /// The file's media type.
    const MEDIA_TYPE: &'static str;
    /// How the file is called.
    const FILE_NAME: &'static str;
    /// Whether a file of no bytes says that the capture holds nothing of the kind.
    const MAY_BE_ABSENT: bool = false;
    /// As [`Analysis::Params`].
    type Params: DeserializeOwned + Serialize + JsonSchema + Default;

    /// Writes the file. After an error `out` holds a part.
    fn write(inputs: &Inputs<'_>, params: &Self::Params, out: &mut dyn Write) -> Result<(), AnalysisError>;
}

/// No parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoParameters {}

/// How many captures an analysis is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputCount {
    /// One.
    One,
    /// Two, in an order that matters: before and after.
    Two,
    /// One or more, at most [`InputCount::MAX_INPUTS`].
    Many,
}

impl InputCount {
    /// Most captures of one analysis.
    pub const MAX_INPUTS: usize = 64;

    /// Whether `count` captures are as many as it takes.
    pub const fn accepts(self, count: usize) -> bool {
        match self {
            Self::One => count == 1,
            Self::Two => count == 2,
            Self::Many => count >= 1 && count <= Self::MAX_INPUTS,
        }
    }

    /// For people: `one capture`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::One => "one capture",
            Self::Two => "two captures",
            Self::Many => "one to 64 captures",
        }
    }
}

/// What comes of an analysis.
#[derive(Debug, Clone, Copy)]
pub enum ResultType {
    /// JSON of a type.
    Json {
        /// Makes the type's schema; [`Definition::result_schema`] and
        /// [`Definition::written_schema`] are the two that are asked for.
        schema: fn(SchemaSettings) -> Schema,
    },
    /// A file for another program.
    File {
        /// Media type of the file.
        media_type: &'static str,
        /// How the file is called.
        file_name: &'static str,
        /// Whether it is also served under that name beside the capture's artifacts.
        artifact: bool,
        /// Whether a file of no bytes says that the capture holds nothing of the kind. Other files
        /// of nothing are whole files.
        may_be_absent: bool,
    },
}

/// Counts of what a file holds that an analysis wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Events in the file.
    pub events: u64,
    /// Samples of series in it.
    pub samples: u64,
    /// What the capture holds and the format, or the table, does not.
    pub left_out: Vec<Loss>,
    /// [`Analysis::verdict`].
    #[serde(default)]
    pub verdict: Option<String>,
}

/// Why an analysis has no result.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// More or fewer captures were named than it is made of.
    #[error("{name} is made of {wanted}, not of {found}")]
    Inputs {
        /// Name of the analysis.
        name: &'static str,
        /// Number of captures that the analysis is made of, in words.
        wanted: &'static str,
        /// Number of captures that were named.
        found: usize,
    },
    /// The parameters are none of the analysis; whoever parsed the request had another version of
    /// it.
    #[error("the parameters of {name} cannot be read: {source}")]
    Parameters {
        /// Name of the analysis.
        name: &'static str,
        /// What is wrong with them.
        source: serde_json::Error,
    },
    /// A file for another program has no page.
    #[error("{name} is a file for another program and has no page")]
    NoPage {
        /// Name of the analysis.
        name: &'static str,
    },
    /// The result cannot be written as JSON.
    #[error("the result cannot be written as JSON: {0}")]
    Json(serde_json::Error),
    /// The output cannot be written.
    #[error("the output cannot be written: {0}")]
    Write(#[from] io::Error),
    /// The writer of a format for another program failed.
    #[cfg(feature = "export")]
    #[error(transparent)]
    Export(#[from] flopwatch_export::ExportError),
    /// This program was built without writers of other formats.
    #[cfg(not(feature = "export"))]
    #[error("this program writes no formats of other programs: run flopwatch")]
    NotBuilt,
}

type RunAnalysis = fn(&Inputs<'_>, Value) -> Result<Box<dyn Outcome>, AnalysisError>;

type WriteFile = fn(&Inputs<'_>, Value, &mut dyn Write) -> Result<(), AnalysisError>;

/// The function that computes the result and writes it.
#[derive(Debug, Clone, Copy)]
enum Runner {
    Analysis(RunAnalysis),
    File(WriteFile),
    Export(Export),
}

/// An analysis as a value: an entry of the catalogue.
#[derive(Debug)]
pub struct Definition {
    /// [`Analysis::NAME`].
    pub name: &'static str,
    /// [`Analysis::VERSION`].
    pub version: u32,
    /// [`Analysis::ABOUT`].
    pub about: &'static str,
    /// [`Analysis::TITLE`].
    pub title: &'static str,
    /// [`Analysis::GROUP`].
    pub group: Group,
    /// [`Analysis::INPUTS`].
    pub inputs: InputCount,
    /// [`Analysis::NEEDS`].
    pub needs: Needs,
    /// What comes of it.
    pub result: ResultType,
    parameters: fn(SchemaSettings) -> Schema,
    /// Parameters as its type reads them, defaults filled in.
    pub(crate) complete: fn(Value) -> serde_json::Result<Value>,
    maker: Runner,
}

impl Definition {
    /// Longest name in bytes.
    pub const LONGEST_NAME: usize = 64;

    /// The definition of `A`.
    pub const fn of<A: Analysis>() -> Self {
        Self {
            name: A::NAME,
            version: A::VERSION,
            about: A::ABOUT,
            title: A::TITLE,
            group: A::GROUP,
            inputs: A::INPUTS,
            needs: A::NEEDS,
            parameters: schema_of::<A::Params>,
            result: ResultType::Json {
                schema: schema_of::<A::Output>,
            },
            complete: complete::<A::Params>,
            maker: Runner::Analysis(run::<A>),
        }
    }

    /// The definition of the file of `F`.
    pub const fn of_file<F: FileAnalysis>() -> Self {
        Self {
            name: F::NAME,
            version: F::VERSION,
            about: F::ABOUT,
            title: F::TITLE,
            group: Group::Exports,
            inputs: F::INPUTS,
            needs: F::NEEDS,
            parameters: schema_of::<F::Params>,
            result: ResultType::File {
                media_type: F::MEDIA_TYPE,
                file_name: F::FILE_NAME,
                artifact: false,
                may_be_absent: F::MAY_BE_ABSENT,
            },
            complete: complete::<F::Params>,
            maker: Runner::File(write_file::<F>),
        }
    }

    /// The definition of a file for another program.
    pub(crate) const fn of_export(
        name: &'static str,
        title: &'static str,
        about: &'static str,
        export: Export,
        result: ResultType,
    ) -> Self {
        Self {
            name,
            version: crate::export::VERSION,
            about,
            title,
            group: Group::Exports,
            inputs: InputCount::One,
            needs: export.needs(),
            parameters: schema_of::<NoParameters>,
            result,
            complete: complete::<NoParameters>,
            maker: Runner::Export(export),
        }
    }

    /// Schema of the parameters (draft 2020-12): an object of plain properties.
    pub fn parameter_schema(&self) -> Schema {
        (self.parameters)(SchemaSettings::default())
    }

    /// The schema of each parameter by its name, in place of a reference what it refers to.
    pub fn parameter_schemas(&self) -> Map<String, Value> {
        let properties = Properties::of(&self.parameter_schema());
        let names = properties.names().into_iter();
        names
            .filter_map(|name| Some((name.clone(), properties.find(&name)?.schema().clone())))
            .collect()
    }

    /// Schema of a result in JSON (draft 2020-12); `None` of a file for another program.
    pub fn result_schema(&self) -> Option<Schema> {
        self.schema_with(SchemaSettings::default())
    }

    /// The same as readers find a result: what is always written is required, which
    /// [`Self::result_schema`] does not say of what may be null.
    pub fn written_schema(&self) -> Option<Schema> {
        self.schema_with(SchemaSettings::default().for_serialize())
    }

    fn schema_with(&self, settings: SchemaSettings) -> Option<Schema> {
        match self.result {
            ResultType::Json { schema } => Some(schema(settings)),
            ResultType::File { .. } => None,
        }
    }

    /// Media type of the result.
    pub const fn media_type(&self) -> &'static str {
        match self.result {
            ResultType::Json { .. } => "application/json",
            ResultType::File { media_type, .. } => media_type,
        }
    }

    /// What a file of the result is called.
    pub fn file_name(&self) -> String {
        match self.result {
            ResultType::Json { .. } => format!("{}.json", self.name),
            ResultType::File { file_name, .. } => file_name.to_owned(),
        }
    }

    /// The formats that its result can be written in.
    pub const fn formats(&self) -> &'static [Format] {
        match self.result {
            ResultType::Json { .. } => &Format::ALL,
            ResultType::File { .. } => &[Format::Json],
        }
    }

    /// Whether a result of so many bytes says that the capture holds nothing of the kind.
    pub const fn is_absent(&self, bytes: i64) -> bool {
        matches!(
            self.result,
            ResultType::File {
                may_be_absent: true,
                ..
            }
        ) && bytes == 0
    }

    /// How the result is shown as a table, where it is one.
    pub fn tabular(&self) -> Option<Tabular> {
        Tabular::of(&self.result_schema()?)
    }

    /// Runs it on `inputs` and writes the result to `out`, which holds a part of it after an error.
    pub(crate) fn run(
        &self,
        inputs: &[Input<'_>],
        parameters: &Parameters,
        format: Format,
        layout: Layout,
        out: &mut (dyn Write + Send),
    ) -> Result<Report, AnalysisError> {
        let wrong = || AnalysisError::Inputs {
            name: self.name,
            wanted: self.inputs.as_str(),
            found: inputs.len(),
        };
        let accepted = Inputs::new(inputs).filter(|_| self.inputs.accepts(inputs.len()));
        let inputs = accepted.ok_or_else(wrong)?;
        let parameters = parameters.to_value();
        match self.maker {
            Runner::Analysis(run) => {
                let outcome = run(&inputs, parameters.clone())?;
                let headings = inputs.all().iter();
                let headings = headings.map(|input| Heading::of(input.timeline, input.totals));
                write_as(outcome.as_ref(), &parameters, headings.collect(), format, layout, out)?;
                Ok(Report {
                    verdict: outcome.verdict().map(str::to_owned),
                    ..Report::default()
                })
            }
            Runner::Export(_) | Runner::File(_) if format != Format::Json => {
                Err(AnalysisError::NoPage { name: self.name })
            }
            Runner::File(write) => {
                let mut out = io::BufWriter::new(out);
                write(&inputs, parameters, &mut out)?;
                out.flush()?;
                Ok(Report::default())
            }
            Runner::Export(export) => export.write(inputs.first_input(), out),
        }
    }
}

fn schema_of<T: JsonSchema>(settings: SchemaSettings) -> Schema {
    settings.into_generator().into_root_schema_for::<T>()
}

fn complete<P: DeserializeOwned + Serialize>(given: Value) -> serde_json::Result<Value> {
    serde_json::to_value(serde_json::from_value::<P>(given)?)
}

fn write_file<F: FileAnalysis>(
    inputs: &Inputs<'_>,
    parameters: Value,
    out: &mut dyn Write,
) -> Result<(), AnalysisError> {
    let wrong = |source| AnalysisError::Parameters { name: F::NAME, source };
    let params: F::Params = serde_json::from_value(parameters).map_err(wrong)?;
    F::write(inputs, &params, out)
}

fn run<A: Analysis>(inputs: &Inputs<'_>, parameters: Value) -> Result<Box<dyn Outcome>, AnalysisError> {
    let wrong = |source| AnalysisError::Parameters { name: A::NAME, source };
    let params: A::Params = serde_json::from_value(parameters).map_err(wrong)?;
    Ok(Box::new(AnalysisOutcome::<A>(A::run(inputs, &params)?)))
}
