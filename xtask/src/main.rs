//! `cargo xtask`: the library's recipes on a command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    xtask::main()
}
