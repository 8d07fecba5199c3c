//! Writes the custom resource definitions: `cargo run -p flopwatch-api --example crds -- DIR`.
#![expect(clippy::print_stdout, reason = "a command-line tool")]

use std::error::Error;
use std::path::PathBuf;

use flopwatch_api::capture::Capture;
use flopwatch_api::schedule::ProfilingSchedule;
use flopwatch_api::session::ProfilingSession;
use kube::CustomResourceExt as _;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: crds DIR")?;
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder)?;
    for crd in [ProfilingSession::crd(), ProfilingSchedule::crd(), Capture::crd()] {
        let name = crd.metadata.name.clone().ok_or("a definition without a name")?;
        let path = folder.join(format!("{name}.yaml"));
        std::fs::write(&path, serde_saphyr::to_string(&crd)?)?;
        println!("{}", path.display());
    }
    Ok(())
}
