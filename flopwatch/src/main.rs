//! `flopwatch`: parses the command line and calls the library.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use flopwatch::cli::{self, Cli};
use flopwatch::commands;
use flopwatch_pipeline::failure::chain;
use flopwatch_pipeline::reentry;

fn main() -> ExitCode {
    if let Some(code) = reentry::run() {
        return code;
    }
    let line: Vec<OsString> = std::env::args_os().collect();
    let outcome = match cli::child(&line) {
        Some(child) => commands::run_child(child),
        None => commands::run(Cli::parse_from(line).command),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            drop(writeln!(std::io::stderr(), "flopwatch: {}", chain(&*error)));
            ExitCode::FAILURE
        }
    }
}
