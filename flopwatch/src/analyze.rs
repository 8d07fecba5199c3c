//! `analyze`: what it prints. The child that reads the captures writes the result as it was asked
//! for; nothing of it is parsed here.

pub(crate) mod profile;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flopwatch_analysis::{Definition, Listing, Request, ResultType, catalogue};
use flopwatch_pipeline::analysis::Report;
use flopwatch_report::page::figure::count;
use flopwatch_report::page::{self, Cell, Table, Unit};
use flopwatch_report::{Format, Layout, Page, Tone};
use serde_json::Value;

use crate::arguments::{AnalyzeArguments, PrintArguments, ResultFormat};
use crate::cut;
use crate::source::{self, Source};

/// Longest result that is printed, in bytes; longer ones go to a file.
const MAX_RESULT_BYTES: u64 = 1 << 30;

/// Exit code where what `--fail-on` names was found.
const EXIT_CODE_FOUND: u8 = 3;

/// What a sentence beside a name has at least, in columns.
const MIN_SENTENCE: usize = 20;

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
    let print = arguments.print;
    let name = match arguments.name {
        Some(name) if !arguments.list => name,
        one => return print_list(one.as_deref(), &print),
    };
    let words = arguments.parameters.iter().map(String::as_str);
    let request = Request::from_words(&name, words).map_err(source::Error::from)?;
    // `-p format=` says it too.
    let request = if print.format.is_none() && request.format() != Format::Json {
        request
    } else {
        let format = format(&print, request.definition());
        request.written_as(format).map_err(source::Error::from)?
    };
    let request = request.laid_out(print.layout());
    let PrintArguments { output, force, .. } = print;
    if let [file] = arguments.files.as_slice()
        && let Some(written) = profile::dashboard(&request, file)?
    {
        let Some(output) = output else {
            return Ok(String::from_utf8_lossy(&written).into_owned());
        };
        source::publish(written.as_slice(), &output, force)?;
        return Ok(format!("{}: a profile\n", output.display()));
    }
    let files = arguments.files.into_iter();
    let sources: Vec<Source> = files.map(|file| arguments.source.clone().source(file, None)).collect();
    if let Some(output) = output.or_else(|| own_output(request.definition())) {
        let report = source::analyze_to(&sources, &request, &output, force, until).await?;
        cut::tell(cut::of_report(&sources, &report));
        let output = output.display();
        // Reports of kernels, profiles of memory and programs hold no events.
        return Ok(match report.total_events {
            0 => format!("{output}: written\n"),
            events => format!("{output}: {} read\n", count(events, "event", "events")),
        });
    }
    let (result, report) = source::analyze(&sources, &request, until).await?;
    cut::tell(cut::of_report(&sources, &report));
    read(result, request.definition().name)
}

/// What a command found that a pipeline reads the exit code of.
#[derive(Debug)]
pub struct Judged {
    /// What to print.
    pub text: String,
    /// Whether it is what `--fail-on` names.
    pub fails: bool,
}

impl Judged {
    /// What the finding means to a pipeline.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(if self.fails { EXIT_CODE_FOUND } else { 0 })
    }
}

/// Runs `request` as the command line says. Gives what to print, and what the child says; of a file
/// that was written `told` is printed.
pub(crate) async fn report_of(
    request: Request,
    sources: &[Source],
    print: &PrintArguments,
    told: impl FnOnce(&Report) -> String,
    until: impl Future<Output = ()>,
) -> Result<(String, Report), Error> {
    let format = format(print, request.definition());
    let request = request.written_as(format).map_err(source::Error::from)?;
    let request = request.laid_out(print.layout());
    let (text, report) = if let Some(output) = &print.output {
        let report = source::analyze_to(sources, &request, output, print.force, until).await?;
        (format!("{}: {}\n", output.display(), told(&report)), report)
    } else {
        let (result, report) = source::analyze(sources, &request, until).await?;
        (read(result, request.definition().name)?, report)
    };
    cut::tell(cut::of_report(sources, &report));
    Ok((text, report))
}

/// How a result is written: as the command line says, else as the name of its file ends, else for a
/// terminal.
pub(crate) fn format(print: &PrintArguments, definition: &Definition) -> Format {
    if let Some(asked) = print.format {
        return asked.format();
    }
    let of_file = |output: &PathBuf| of_name(output).unwrap_or(Format::Json);
    let wanted = print.output.as_ref().map_or(Format::Text, of_file);
    if definition.formats().contains(&wanted) {
        wanted
    } else {
        Format::Json
    }
}

/// The format that the ending of a file's name promises.
pub(crate) fn of_name(output: &Path) -> Option<Format> {
    match output.extension()?.to_str()? {
        "html" | "htm" => Some(Format::Html),
        "csv" => Some(Format::Csv),
        "txt" => Some(Format::Text),
        "json" => Some(Format::Json),
        _ => None,
    }
}

/// Where a file for another program goes that was not told where; `None` is standard output.
fn own_output(definition: &Definition) -> Option<PathBuf> {
    match definition.result {
        ResultType::Json { .. } => None,
        ResultType::File { file_name, .. } => Some(PathBuf::from(file_name)),
    }
}

fn read(result: File, name: &'static str) -> Result<String, Error> {
    if result.metadata()?.len() > MAX_RESULT_BYTES {
        return Err(Error::TooLong(name));
    }
    let mut text = String::new();
    result.take(MAX_RESULT_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The catalogue, or the entry of that name.
fn print_list(name: Option<&str>, print: &PrintArguments) -> Result<String, Error> {
    let one = name.map(|name| Request::parse(name, &Value::Null).map(|request| vec![request.definition()]));
    let listed = one.transpose().map_err(source::Error::from)?;
    let listed = listed.unwrap_or_else(|| catalogue::CATALOGUE.to_vec());
    let grouped = by_group(&listed);
    let heads = ["name", "version", "inputs", "parameters", "group", "about"].map(|head| (head, Unit::None));
    let mut table = Table::new("", &heads);
    for definition in &grouped {
        table.push(line(definition));
    }
    let of_output = || print.output.as_deref().map_or(Some(Format::Text), of_name);
    let format = print.format.map(ResultFormat::format).or_else(of_output);
    let text = match format.unwrap_or(Format::Json) {
        Format::Json => {
            let listed: Vec<Listing> = listed.into_iter().map(Listing::of).collect();
            serde_json::to_string_pretty(&listed)? + "\n"
        }
        Format::Text => match (name, print.layout()) {
            (
                None,
                layout @ Layout {
                    columns: Some(columns), ..
                },
            ) => short_list(&grouped, columns, layout),
            (_, layout) => page::text::table(&table, layout.wide(true)),
        },
        Format::Csv => {
            let mut page = Page::default();
            page.table(table);
            page::csv::render(&page)
        }
        Format::Html | Format::Page => return Err(Error::List),
    };
    let Some(output) = &print.output else {
        return Ok(text);
    };
    source::publish(text.as_bytes(), output, print.force)?;
    Ok(format!("{}: the list\n", output.display()))
}

/// The analyses by the questions that they answer, as the viewer lists them; those of one question
/// in published order.
fn by_group<'a>(listed: &[&'a Definition]) -> Vec<&'a Definition> {
    let mut grouped = listed.to_vec();
    grouped.sort_by_key(|definition| definition.group);
    grouped
}

/// The names for a terminal of so many columns, under the question of each group, each with what it
/// tells, which is a sentence and not cut.
fn short_list(listed: &[&Definition], columns: usize, layout: Layout) -> String {
    let names = listed.iter().map(|definition| definition.name.len());
    let indent = names.max().unwrap_or(0) + 2;
    let beside = Layout {
        columns: Some(columns.saturating_sub(indent).max(MIN_SENTENCE)),
        ..layout
    };
    let next = format!("\n{:indent$}", "");
    let mut out = String::new();
    let mut group = None;
    for definition in listed {
        if group != Some(definition.group) {
            group = Some(definition.group);
            let question = layout.wrapped(definition.group.question(), 0);
            let heading = format!("{}\n", layout.paint(Tone::Heading, &question));
            out.push_str(if out.is_empty() { "" } else { "\n" });
            out.push_str(&heading);
        }
        let about = beside.wrapped(definition.about, 0).replace('\n', &next);
        let line = format!("{:indent$}{about}\n", definition.name);
        out.push_str(&line);
    }
    out.push('\n');
    let more = "analyze NAME --list tells inputs and parameters, --wide those of all.";
    out.push_str(&layout.paint(Tone::Faint, &layout.wrapped(more, 0)));
    out.push('\n');
    out
}

fn line(definition: &Definition) -> [Cell; 6] {
    let parameters = definition.parameter_schema();
    let names = parameters.get("properties").and_then(Value::as_object);
    let names = names.into_iter().flat_map(|names| names.keys().map(String::as_str));
    [
        definition.name.into(),
        definition.version.into(),
        definition.inputs.as_str().into(),
        names.collect::<Vec<_>>().join(" ").into(),
        definition.group.question().into(),
        definition.about.into(),
    ]
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis::Group;

    use super::*;

    /// The list for a terminal of 72 columns.
    fn list() -> String {
        let layout = Layout {
            columns: Some(72),
            colors: false,
        };
        short_list(&by_group(catalogue::CATALOGUE), 72, layout)
    }

    #[test]
    fn the_list_fits_a_terminal_and_no_sentence_of_it_is_cut() {
        let text = list();
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for definition in catalogue::CATALOGUE {
            let sentence = words(definition.about);
            assert!(
                words(&text).windows(sentence.len()).any(|part| part == sentence),
                "{}",
                definition.name
            );
        }
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(72), "{longest:?}: {text}");
    }

    #[test]
    fn the_list_is_grouped_by_question_and_the_earlier_suites_names_have_a_group_of_their_own() {
        let text = list();
        let groups = text.split("\n\n").filter_map(|group| group.split_once('\n'));
        let groups: Vec<(&str, &str)> = groups.filter(|(_, names)| !names.is_empty()).collect();
        let questions: Vec<&str> = Group::ALL.iter().map(|group| group.question()).collect();
        assert_eq!(
            groups.iter().map(|(heading, _)| *heading).collect::<Vec<_>>(),
            questions
        );
        for (heading, names) in groups {
            let is_earlier = heading == Group::EarlierSuite.question();
            for name in names.lines().filter(|line| !line.starts_with(' ')) {
                assert_eq!(name.starts_with("profiler-"), is_earlier, "{heading}: {name}");
            }
        }
    }
}
