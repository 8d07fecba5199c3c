//! Compiles the library, which the crate carries in itself.

#[path = "../injected/build/library.rs"]
mod library;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let compiler = library::Compiler::new()?;
    let ring = compiler.layout("flopwatch_ring", "../../trace/ring/src")?;
    compiler.library("flopwatch_recorder", "libflopwatch-recorder.so", &[], &[ring])
}
