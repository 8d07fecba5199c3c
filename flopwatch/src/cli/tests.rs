use std::path::PathBuf;

use clap::CommandFactory;

use super::*;

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
fn what_stands_behind_the_dashes_is_the_command() {
    let cli = Cli::try_parse_from(["flopwatch", "record", "-d", "5", "--", "program", "--duration", "9"]).unwrap();
    let Command::Record(arguments) = cli.command else {
        panic!("not record")
    };
    assert_eq!(arguments.duration, Some(5));
    assert_eq!(arguments.command, ["program", "--duration", "9"]);
    assert!(Cli::try_parse_from(["flopwatch", "record", "-d", "0", "--", "program"]).is_err());
    assert!(Cli::try_parse_from(["flopwatch", "record"]).is_err());
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
            (arguments.json, arguments.output),
            (is_json, Some(PathBuf::from("out")))
        );
    }
}
