use std::path::PathBuf;

use clap::CommandFactory;
use flopwatch_model::Category;

use super::*;
use crate::arguments::SourceArguments;

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn a_conversion_has_a_bound_in_time_and_overwrites_only_when_told() {
    let convert = |more: &[&str]| {
        let line = ["flopwatch", "convert", "in.sqlite", "out.h5"];
        match Cli::try_parse_from(line.iter().chain(more)).map(|cli| cli.command) {
            Ok(Command::Convert(arguments)) => Some(arguments),
            _ => None,
        }
    };
    let plain = convert(&[]).unwrap();
    assert_eq!(
        (plain.force, plain.source.timeout, plain.session_id),
        (false, 600, None)
    );
    assert!(convert(&["--force"]).unwrap().force);
    assert!(convert(&["--timeout", "0"]).is_none());
}

#[test]
fn what_stands_behind_the_options_is_the_command_with_dashes_or_without() {
    let cli = Cli::try_parse_from(["flopwatch", "record", "-d", "5", "--", "program", "--duration", "9"]).unwrap();
    let Command::Record(arguments) = cli.command else {
        panic!("not record")
    };
    assert_eq!(arguments.duration, Some(5));
    assert_eq!(arguments.command, ["program", "--duration", "9"]);
    let cli = Cli::try_parse_from(["flopwatch", "record", "-d", "5", "python3", "x.py", "-d", "9"]).unwrap();
    let Command::Record(arguments) = cli.command else {
        panic!("not record")
    };
    assert_eq!(arguments.duration, Some(5));
    assert_eq!(arguments.command, ["python3", "x.py", "-d", "9"]);
    assert!(Cli::try_parse_from(["flopwatch", "record", "--seconds", "5", "program"]).is_err());
    assert!(Cli::try_parse_from(["flopwatch", "record", "-d", "0", "--", "program"]).is_err());
    assert!(Cli::try_parse_from(["flopwatch", "record"]).is_err());
}

#[test]
fn what_a_recording_must_hold_is_what_nsight_systems_records() {
    let cli = parsed(&["record", "--require", "cuda_kernel,os_runtime", "program"], &[]).unwrap();
    let Command::Record(arguments) = cli.command else {
        panic!("not record")
    };
    assert_eq!(arguments.require, [Category::CudaKernel, Category::OsRuntime]);
    let refusal = parsed(&["record", "--require", "cpu_op", "program"], &[]).unwrap_err();
    assert!(refusal.contains("Nsight Systems records cuda_kernel, "), "{refusal}");
}

#[test]
fn several_captures_are_opened_at_once_and_read_as_convert_reads_them() {
    let cli = Cli::try_parse_from([
        "flopwatch",
        "open",
        "a.json",
        "b.json",
        "--timeout",
        "9",
        "--no-browser",
    ])
    .unwrap();
    let Command::Open(arguments) = cli.command else {
        panic!("not open")
    };
    assert_eq!(arguments.serve.paths, ["a.json", "b.json"].map(PathBuf::from));
    assert_eq!((arguments.serve.source.timeout, arguments.no_browser), (9, true));
    let cli = Cli::try_parse_from(["flopwatch", "serve"]).unwrap();
    let Command::Serve(arguments) = cli.command else {
        panic!("not serve")
    };
    assert!(arguments.paths.is_empty());
    assert_eq!(arguments.source.timeout, SourceArguments::default().timeout);
}

#[test]
fn reports_are_named_as_clients_know_them() {
    for (name, is_json) in [
        ("flame", true),
        ("timeline", false),
        ("hta", true),
        ("memory", false),
        ("compile", true),
    ] {
        let mut line = vec!["flopwatch", name, "trace.json", "-o", "out"];
        line.extend(is_json.then_some("--json"));
        let cli = Cli::try_parse_from(line).unwrap();
        let Command::Compat(
            CompatCommand::Flame(arguments)
            | CompatCommand::Timeline(arguments)
            | CompatCommand::Hta(arguments)
            | CompatCommand::Memory(arguments)
            | CompatCommand::Compile(arguments),
        ) = cli.command
        else {
            panic!("{name} is no report")
        };
        assert_eq!(
            (arguments.json, arguments.print.output),
            (is_json, Some(PathBuf::from("out")))
        );
    }
}

#[test]
fn a_report_of_the_earlier_suite_is_said_to_be_one_and_names_its_analysis() {
    let command = Cli::command();
    for name in ["timeline", "hta", "memory", "compile"] {
        let report = command.find_subcommand(name).unwrap();
        let about = report.get_about().unwrap().to_string();
        let analysis = format!("`analyze profiler-{name}` under its name in an earlier suite");
        assert!(about.contains(&analysis), "{name}: {about}");
    }
}

/// A command line of each command that prints a result.
const PRINTING: [&[&str]; 9] = [
    &["summary", "trace.json"],
    &["analyze", "summary", "trace.json"],
    &["diagnose", "trace.json"],
    &["compare", "before.json", "after.json"],
    &["flame", "trace.json"],
    &["timeline", "trace.json"],
    &["hta", "trace.json"],
    &["memory", "trace.json"],
    &["compile", "trace.json"],
];

fn parsed(line: &[&str], more: &[&str]) -> Result<Cli, String> {
    let words = ["flopwatch"].iter().chain(line).chain(more);
    Cli::try_parse_from(words).map_err(|error| error.to_string())
}

#[test]
fn every_command_that_prints_has_the_same_options() {
    for line in PRINTING {
        for format in ["table", "json", "csv", "html", "page"] {
            parsed(line, &["--format", format, "-o", "out", "--force", "--wide"]).unwrap();
        }
    }
}

#[test]
fn a_formats_name_is_no_file_and_is_told_the_option() {
    for line in PRINTING {
        let refusal = parsed(line, &["-o", "json"]).unwrap_err();
        assert!(refusal.contains("--format json writes it"), "{line:?}: {refusal}");
        parsed(line, &["-o", "./json"]).unwrap();
        parsed(line, &["-o", "json.json"]).unwrap();
    }
    let line = ["export", "trace.json", "--to", "csv"];
    let refusal = parsed(&line, &["--output", "parquet"]).unwrap_err();
    assert!(refusal.contains("--to parquet writes it"), "{refusal}");
}

#[test]
fn a_mistyped_command_is_told_what_is_meant_and_nothing_that_is_hidden() {
    let refusal = parsed(&["analyse"], &[]).unwrap_err();
    assert!(refusal.contains("'analyze'"), "{refusal}");
    let refusal = parsed(&["jobs"], &[]).unwrap_err();
    assert!(!refusal.contains("'job'"), "{refusal}");
}

#[test]
fn children_are_told_from_people() {
    let line = |words: &[&str]| words.iter().map(Into::into).collect::<Vec<OsString>>();
    assert!(child(&line(&["flopwatch", "job", "{}"])).is_some());
    for words in [
        &["flopwatch"][..],
        &["flopwatch", "summary", "job"],
        &["flopwatch", "jobs"],
    ] {
        assert!(child(&line(words)).is_none(), "{words:?}");
    }
}
