//! `mcp`: sessions of a cluster for clients of the Model Context Protocol, which start this program
//! and speak with it on its standard streams. `flopwatch-mcp` has the protocol and the bounds of
//! answers; here are the tools. What they ask, they ask with the user's own rights.

mod arguments;
mod tools;

use std::io::Write as _;

use flopwatch_mcp::{ServeError, serve};
use tokio_util::sync::CancellationToken;

use self::tools::ClusterTools;
use crate::arguments::McpArguments;
use crate::cluster::Cluster;
use crate::error::Error;
use crate::follow::interrupted;

/// Serves the cluster's sessions until the client has gone or the user interrupts it.
pub async fn run(cluster: &Cluster, arguments: McpArguments) -> Result<(), Error> {
    let stop = CancellationToken::new();
    let asked = stop.clone();
    tokio::spawn(async move {
        interrupted().await;
        asked.cancel();
    });
    log(&format!(
        "serves sessions of namespace {} to a client of the Model Context Protocol on standard input and output",
        cluster.namespace
    ));
    let tools = ClusterTools::new(cluster.clone(), arguments.gateway);
    let served = serve(tools, stop).await;
    served.map_err(|error: ServeError| Error::Io(std::io::Error::other(error)))
}

/// Writes a line to standard error: standard output is the client's.
fn log(line: &str) {
    drop(writeln!(std::io::stderr(), "mcp: {line}"));
}
