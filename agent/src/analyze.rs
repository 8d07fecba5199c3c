//! `analyze`: what it prints.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flopwatch_analysis::summary::Summary;
use flopwatch_analysis::{Definition, Listing, Request, ResultType, Tabular, catalogue, summary};
use serde_json::Value;

use crate::cli::{AnalyzeArguments, SummaryFormat};
use crate::source::{self, Source};

/// Longest result that is printed in another format than its own, in bytes.
const MAX_RESULT_BYTES: u64 = 1 << 30;
/// Rows per table of a summary that is printed for people.
const TOP: usize = 10;

/// Why nothing is printed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The result is no JSON, or a list cannot be written as JSON.
    #[error("the result cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// A table cannot be written.
    #[error("the table cannot be written: {0}")]
    Csv(#[from] csv::Error),
    /// The result cannot be read.
    #[error("the result cannot be read: {0}")]
    Read(#[from] std::io::Error),
    /// The result is a file for another program, or is JSON that is no table.
    #[error("the result of {name} is printed as {printed} alone")]
    Format {
        /// The analysis.
        name: &'static str,
        /// What it can be printed as.
        printed: &'static str,
    },
    /// The output is there, or cannot be written.
    #[error("{path}: {reason}")]
    Output {
        /// The output.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
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
        one => return print_list(one.as_deref(), format.unwrap_or_default()),
    };
    let request = Request::from_words(&name, parameters.iter().map(String::as_str)).map_err(source::Error::from)?;
    let definition = request.definition();
    let format = Format::of(definition, format)?;
    let sources = files.into_iter().map(|file| source.clone().source(file, None));
    let sources: Vec<Source> = sources.collect();
    if let (Format::Own, Some(output)) = (&format, own_output(definition, output.as_deref())) {
        let report = source::analyze_to(&sources, &request, &output, force, until).await?;
        return Ok(format!("{}: {} events read\n", output.display(), report.total_events));
    }
    if let Some(path) = output.as_ref().filter(|path| !force && path.symlink_metadata().is_ok()) {
        return Err(source::Error::Exists(path.clone()).into());
    }
    let (result, _) = source::analyze(&sources, &request, until).await?;
    let text = format.print(result)?;
    let Some(path) = output else { return Ok(text) };
    std::fs::write(&path, text).map_err(|error| Error::Output {
        reason: error.to_string(),
        path: path.clone(),
    })?;
    Ok(format!("{}\n", path.display()))
}

/// Where the bytes of a result go as they are; `None` is standard output.
fn own_output(definition: &Definition, output: Option<&Path>) -> Option<PathBuf> {
    let named = || match definition.result {
        ResultType::Json { .. } => None,
        ResultType::File { file_name, .. } => Some(PathBuf::from(file_name)),
    };
    output.map(Path::to_owned).or_else(named)
}

/// How a result is printed.
enum Format {
    /// As it is.
    Own,
    Table(Tabular),
    Csv(Tabular),
    SummaryTable,
    SummaryCsv,
}

impl Format {
    fn of(definition: &'static Definition, wanted: Option<SummaryFormat>) -> Result<Self, Error> {
        let name = definition.name;
        let tabular = definition.tabular();
        match (wanted, tabular) {
            (None | Some(SummaryFormat::Table), _) if name == summary::NAME => Ok(Self::SummaryTable),
            (Some(SummaryFormat::Csv), _) if name == summary::NAME => Ok(Self::SummaryCsv),
            (None | Some(SummaryFormat::Table), Some(table)) => Ok(Self::Table(table)),
            (Some(SummaryFormat::Csv), Some(table)) => Ok(Self::Csv(table)),
            (None, None) => Ok(Self::Own),
            (Some(SummaryFormat::Json), _) if definition.media_type() == "application/json" => Ok(Self::Own),
            (Some(_), None) if definition.media_type() == "application/json" => {
                Err(Error::Format { name, printed: "JSON" })
            }
            (Some(_), _) => Err(Error::Format {
                name,
                printed: "what it is",
            }),
        }
    }

    fn print(&self, result: File) -> Result<String, Error> {
        let mut reader = BufReader::new(result.take(MAX_RESULT_BYTES));
        let parse = |reader| serde_json::from_reader::<_, Value>(reader);
        let summary = |reader| serde_json::from_reader::<_, Summary>(reader);
        Ok(match self {
            Self::Own => {
                let mut text = String::new();
                reader.read_to_string(&mut text)?;
                text
            }
            Self::Table(table) => print_table(&heads(table), &table.cells(&parse(reader)?)),
            Self::Csv(table) => print_csv(&heads(table), &table.cells(&parse(reader)?))?,
            Self::SummaryTable => summary(reader)?.render(TOP),
            Self::SummaryCsv => summary(reader)?.to_csv(usize::MAX),
        })
    }
}

fn heads(table: &Tabular) -> Vec<String> {
    table.columns.iter().map(|column| column.name.clone()).collect()
}

/// The catalogue, or the entry of that name.
fn print_list(name: Option<&str>, format: SummaryFormat) -> Result<String, Error> {
    let one = name.map(|name| Request::parse(name, &Value::Null).map(|request| vec![request.definition()]));
    let listed = one.transpose().map_err(source::Error::from)?;
    let listed = listed.unwrap_or_else(|| catalogue::CATALOGUE.to_vec());
    let heads = ["name", "version", "inputs", "parameters", "about"].map(str::to_owned);
    let rows: Vec<Vec<String>> = listed.iter().map(|definition| line(definition)).collect();
    match format {
        SummaryFormat::Json => {
            let listed: Vec<Listing> = listed.into_iter().map(Listing::of).collect();
            Ok(serde_json::to_string_pretty(&listed)? + "\n")
        }
        SummaryFormat::Table => Ok(print_table(&heads, &rows)),
        SummaryFormat::Csv => print_csv(&heads, &rows),
    }
}

fn line(definition: &Definition) -> Vec<String> {
    let parameters = (definition.parameters)();
    let names = parameters.get("properties").and_then(Value::as_object);
    let names = names.into_iter().flat_map(|names| names.keys().map(String::as_str));
    vec![
        definition.name.to_owned(),
        definition.version.to_string(),
        definition.inputs.as_str().to_owned(),
        names.collect::<Vec<_>>().join(" "),
        definition.about.to_owned(),
    ]
}

/// Cells in columns. What a capture names is printed without control characters, which must not reach a terminal.
fn print_table(heads: &[String], rows: &[Vec<String>]) -> String {
    let clean = |cell: &String| {
        cell.chars()
            .map(|c| if c.is_control() { '\u{fffd}' } else { c })
            .collect()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(clean).collect()).collect();
    let wide = |text: &String| text.chars().count();
    let widths: Vec<usize> = (0..heads.len())
        .map(|at| {
            let cells = rows.iter().filter_map(|row| row.get(at)).map(wide);
            cells.chain(heads.get(at).map(wide)).max().unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    for row in std::iter::once(heads).chain(rows.iter().map(Vec::as_slice)) {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        let line: Vec<String> = cells.collect();
        out.push_str(line.join("  ").trim_end());
        out.push('\n');
    }
    out
}

fn print_csv(heads: &[String], rows: &[Vec<String>]) -> Result<String, Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(heads)?;
    for row in rows {
        writer.write_record(row)?;
    }
    let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
