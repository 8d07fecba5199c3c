//! Prints the custom resource definitions.

use std::io::Write;

use flopwatch_api::capture::Capture;
use flopwatch_api::schedule::ProfilingSchedule;
use flopwatch_api::session::ProfilingSession;
use kube::CustomResourceExt as _;

/// Why the definitions could not be printed.
#[derive(Debug, thiserror::Error)]
pub enum CrdsError {
    /// The output is closed or full.
    #[error(transparent)]
    Write(#[from] std::io::Error),
    /// A definition cannot be shown as YAML.
    #[error(transparent)]
    Yaml(#[from] serde_saphyr::ser_error::Error),
}

/// Writes every definition as a YAML document. A reader that has seen enough ends it quietly.
pub fn print(output: &mut impl Write) -> Result<(), CrdsError> {
    for definition in [ProfilingSession::crd(), ProfilingSchedule::crd(), Capture::crd()] {
        match writeln!(output, "---\n{}", serde_saphyr::to_string(&definition)?.trim_end()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
    Ok(())
}
