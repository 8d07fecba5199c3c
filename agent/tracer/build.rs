//! Compiles the library, which the crate carries in itself.

#[path = "../injected/build/library.rs"]
mod library;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let compiler = library::Compiler::new()?;
    let file = compiler.layout("flopwatch_tracer_file", "../../trace/tracer/src")?;
    // CUPTI keeps addresses of it for as long as the process runs.
    let stays = "-Wl,-z,nodelete";
    compiler.library("flopwatch_tracer", "libflopwatch_cuda.so", &[stays], &[file])
}
