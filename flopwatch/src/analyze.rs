//! `analyze`: what it prints. The child that reads the captures writes the result as it was asked for; nothing of it is parsed here.

pub(crate) mod profile;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flopwatch_analysis::{Definition, Listing, Request, ResultType, catalogue};
use flopwatch_report::page::{self, Cell, Table, Unit};
use flopwatch_report::{Format, Page};
use serde_json::Value;

use crate::arguments::{AnalyzeArguments, ResultFormat};
use crate::source::{self, Source};

/// Longest result that is printed, in bytes; longer ones go to a file.
const MAX_RESULT_BYTES: u64 = 1 << 30;

/// Why nothing is printed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The list cannot be written as JSON.
    #[error("the list cannot be written: {0}")]
    Json(#[from] serde_json::Error),
    /// The result cannot be read.
    #[error("the result cannot be read: {0}")]
    Read(#[from] std::io::Error),
    /// The result is longer than what is printed.
    #[error("the result of {0} is longer than what is printed: name a file with --output")]
    TooLong(&'static str),
    /// A profile of operations that a program wrote cannot be shown.
    #[error("{}: {error}", file.display())]
    Profile {
        /// Path of the profile of operations.
        file: PathBuf,
        /// What is wrong with it.
        error: flopwatch_analysis::analyses::operations::profile::ProfileError,
    },
    /// The list is not written so.
    #[error("the list is written as a table, as JSON or as CSV")]
    List,
    /// The request is none, or the analysis fails.
    #[error(transparent)]
    Source(#[from] source::Error),
}

/// Runs what the command line asks for, and gives what to print.
pub async fn run(arguments: AnalyzeArguments, until: impl Future<Output = ()>) -> Result<String, Error> {
    let AnalyzeArguments {
        name,
        files,
        list,
        parameters,
        format,
        output,
        force,
        source,
    } = arguments;
    let name = match name {
        Some(name) if !list => name,
        one => return print_list(one.as_deref(), format.unwrap_or(ResultFormat::Table)),
    };
    let request = Request::from_words(&name, parameters.iter().map(String::as_str)).map_err(source::Error::from)?;
    let request = match format.map(ResultFormat::format) {
        None if request.format() != Format::Json => request,
        format => {
            let format = format.unwrap_or_else(|| usual(request.definition(), output.as_deref()));
            request.written_as(format).map_err(source::Error::from)?
        }
    };
    if let [file] = files.as_slice()
        && let Some(written) = profile::dashboard(&request, file, request.format())?
    {
        let Some(output) = output else {
            return Ok(String::from_utf8_lossy(&written).into_owned());
        };
        source::publish(written.as_slice(), &output, force)?;
        return Ok(format!("{}: a profile\n", output.display()));
    }
    let sources = files.into_iter().map(|file| source.clone().source(file, None));
    let sources: Vec<Source> = sources.collect();
    if let Some(output) = output.or_else(|| own_output(request.definition())) {
        let report = source::analyze_to(&sources, &request, &output, force, until).await?;
        let output = output.display();
        // Reports of kernels, profiles of memory and programs hold no events.
        return Ok(match report.total_events {
            0 => format!("{output}: written\n"),
            events => format!("{output}: {events} events read\n"),
        });
    }
    let (result, _) = source::analyze(&sources, &request, until).await?;
    read(result, request.definition().name)
}

/// How a result is written where nobody says it: as the name of its file says, or for a terminal.
pub(crate) fn usual(definition: &Definition, output: Option<&Path>) -> Format {
    let ending = output.and_then(Path::extension).and_then(|ending| ending.to_str());
    let wanted = match (output, ending) {
        (None, _) | (_, Some("txt")) => Format::Text,
        (_, Some("html" | "htm")) => Format::Html,
        (_, Some("csv")) => Format::Csv,
        _ => Format::Json,
    };
    if definition.formats().contains(&wanted) {
        wanted
    } else {
        Format::Json
    }
}

/// Where a file for another program goes that was not told where; `None` is standard output.
fn own_output(definition: &Definition) -> Option<PathBuf> {
    match definition.result {
        ResultType::Json { .. } => None,
        ResultType::File { file_name, .. } => Some(PathBuf::from(file_name)),
    }
}

pub(crate) fn read(result: File, name: &'static str) -> Result<String, Error> {
    if result.metadata()?.len() > MAX_RESULT_BYTES {
        return Err(Error::TooLong(name));
    }
    let mut text = String::new();
    result.take(MAX_RESULT_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The catalogue, or the entry of that name.
fn print_list(name: Option<&str>, format: ResultFormat) -> Result<String, Error> {
    let one = name.map(|name| Request::parse(name, &Value::Null).map(|request| vec![request.definition()]));
    let listed = one.transpose().map_err(source::Error::from)?;
    let listed = listed.unwrap_or_else(|| catalogue::CATALOGUE.to_vec());
    let heads = ["name", "version", "inputs", "parameters", "about"].map(|head| (head, Unit::None));
    let mut table = Table::new("", &heads);
    for definition in &listed {
        table.push(line(definition));
    }
    match format {
        ResultFormat::Json => {
            let listed: Vec<Listing> = listed.into_iter().map(Listing::of).collect();
            Ok(serde_json::to_string_pretty(&listed)? + "\n")
        }
        ResultFormat::Table => Ok(page::text::table(&table)),
        ResultFormat::Csv => {
            let mut page = Page::default();
            page.table(table);
            Ok(page::csv::render(&page))
        }
        ResultFormat::Html | ResultFormat::Page => Err(Error::List),
    }
}

fn line(definition: &Definition) -> [Cell; 5] {
    let parameters = definition.parameter_schema();
    let names = parameters.get("properties").and_then(Value::as_object);
    let names = names.into_iter().flat_map(|names| names.keys().map(String::as_str));
    [
        definition.name.into(),
        definition.version.into(),
        definition.inputs.as_str().into(),
        names.collect::<Vec<_>>().join(" ").into(),
        definition.about.into(),
    ]
}
