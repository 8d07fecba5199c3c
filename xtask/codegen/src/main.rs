//! Writes one generated file: `cargo xtask codegen` runs it once for each.

use std::env::args_os;
use std::fs::write;

use anyhow::{Context, Result, bail};
use flopwatch_codegen::{endings, python, typescript};
use flopwatch_summary::json_schema;

fn main() -> Result<()> {
    let mut arguments = args_os().skip(1);
    let (Some(what), Some(path)) = (arguments.next(), arguments.next()) else {
        bail!("name what to write and the file to write it to");
    };
    let text = match what.to_str() {
        Some("summary-schema") => json_schema()?,
        Some("typescript") => typescript()?,
        Some("endings") => endings()?,
        Some("python") => python()?,
        _ => bail!(
            "there are summary-schema, typescript, endings and python, not {}",
            what.display()
        ),
    };
    write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}
