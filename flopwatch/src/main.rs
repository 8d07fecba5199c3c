//! `flopwatch`: parses the command line and calls the library.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use flopwatch::cli::Cli;
use flopwatch::commands;
use flopwatch_pipeline::failure::chain;
use flopwatch_pipeline::reentry;

fn main() -> ExitCode {
    if let Some(code) = reentry::run() {
        return code;
    }
    match commands::run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            drop(writeln!(std::io::stderr(), "flopwatch: {}", chain(&*error)));
            ExitCode::FAILURE
        }
    }
}
