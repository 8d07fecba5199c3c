//! `mcp`: captures of this machine for clients of the Model Context Protocol, which start this
//! program and speak with it on its standard streams. `flopwatch-mcp` has the protocol and the
//! bounds of answers; here are the tools.

mod allowed;
mod arguments;
mod contents;
mod library;
mod listing;
mod tools;

use std::io::Write as _;

use flopwatch_mcp::{ServeError, serve};
use tokio_util::sync::CancellationToken;

use self::allowed::{Allowed, AllowedError};
use self::tools::FileTools;
use crate::arguments::{McpArguments, SourceArguments};

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What is to be served is not there.
    #[error(transparent)]
    Allowed(#[from] AllowedError),
    /// There is no folder for what is made of captures.
    #[error("no temporary folder can be made: {0}")]
    Folder(#[from] std::io::Error),
    /// The client and this program do not understand each other.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

/// Serves the captures that the command line allows until the client has gone or `stop` is
/// canceled.
pub async fn run(arguments: McpArguments, stop: CancellationToken) -> Result<(), Error> {
    let McpArguments { paths, source } = arguments;
    let allowed = Allowed::new(&paths)?;
    let log = Log { quiet: source.quiet };
    log.line(&format!(
        "serves captures of {} to a client of the Model Context Protocol on standard input and output",
        allowed.names().join(", ")
    ));
    // The steps of each capture are not told beside which capture it is.
    let reading = SourceArguments { quiet: true, ..source };
    Ok(serve(FileTools::new(allowed, reading, log)?, stop).await?)
}

/// Lines on standard error: standard output is the client's.
#[derive(Clone, Copy, Debug)]
struct Log {
    quiet: bool,
}

impl Log {
    fn line(self, text: &str) {
        if !self.quiet {
            // With standard error closed there is nobody to tell.
            drop(writeln!(std::io::stderr(), "flopwatch: mcp: {text}"));
        }
    }
}
