//! Writes the JSON schema of the summary artifact to the file that is named: `cargo xtask codegen` runs it.

use std::io::{Error, Result};

fn main() -> Result<()> {
    let Some(path) = std::env::args_os().nth(1) else {
        return Err(Error::other("name the file to write"));
    };
    let schema = flopwatch_analysis::summary::json_schema().map_err(Error::other)?;
    std::fs::write(path, schema)
}
