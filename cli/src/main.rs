//! `kubectl-flopwatch`: parses the command line and calls the library.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;
use flopwatch_cli::arguments::Cli;
use flopwatch_cli::{complete, run};

/// Name under which kubectl looks for a plugin's completion.
const COMPLETER: &str = "kubectl_complete-flopwatch";

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_default();
    let words: Vec<OsString> = words.collect();
    let to_complete = match words.split_first() {
        _ if Path::new(&program).file_stem().is_some_and(|name| name == COMPLETER) => Some(words.as_slice()),
        Some((first, rest)) if first == "__complete" => Some(rest),
        _ => None,
    };
    // One provider for every TLS connection: with two in the program rustls refuses to choose.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        return ExitCode::FAILURE;
    }
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            drop(writeln!(std::io::stderr(), "error: cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    if let Some(words) = to_complete {
        let text = runtime.block_on(complete::answer(words));
        drop(std::io::stdout().write_all(text.as_bytes()));
        return ExitCode::SUCCESS;
    }
    let cli = Cli::parse();
    let result = runtime.block_on(run::run(cli));
    // Tasks that still run, such as a connection that nobody reads, do not keep the program alive.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(
                std::io::stderr(),
                "error: {}",
                flopwatch_cli::print::plain(&error.to_string())
            ));
            ExitCode::from(error.exit_code())
        }
    }
}
