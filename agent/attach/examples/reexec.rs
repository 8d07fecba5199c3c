//! The smallest program that keeps the contract of `flopwatch_attach::reexec`: the tests start it in the agent's place.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    flopwatch_attach::reexec::child_main(&arguments)
}
