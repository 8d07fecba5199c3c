//! `flopwatch-agent`: parses the command line and calls the library.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use flopwatch_agent::cli::Cli;
use flopwatch_agent::commands;
use flopwatch_pipeline::failure::chain;
use flopwatch_pipeline::reentry;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    if let Some(code) = reentry::run() {
        return code;
    }
    match commands::run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(std::io::stderr(), "flopwatch-agent: {}", chain(&*error)));
            ExitCode::FAILURE
        }
    }
}
