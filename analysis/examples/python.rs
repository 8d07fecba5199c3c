//! Writes the Python package's types of the catalogue to the file that is named: `cargo xtask codegen` runs it.

use std::io::{Error, Result};

fn main() -> Result<()> {
    let Some(path) = std::env::args_os().nth(1) else {
        return Err(Error::other("name the file to write"));
    };
    let text = flopwatch_analysis::python::python().map_err(Error::other)?;
    std::fs::write(path, text)
}
