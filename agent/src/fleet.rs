//! A capture as rows of the fleet (`docs/fleet.md`): who it is by the agent's own word, what its transform measured, and how it ended. The agent's
//! node part (`node::fleet`) keeps the files and copies them to the object store.

#[cfg(feature = "node")]
mod identity;
#[cfg(feature = "node")]
mod rows;

use std::path::PathBuf;

#[cfg(feature = "node")]
pub use identity::{concluded, identity};
#[cfg(feature = "node")]
pub use rows::{Error, Refusal, described, take, write};
#[cfg(not(feature = "node"))]
pub use unwritten::{Error, write};

/// Name of the capture's row, as the agent hands it to the child, in the capture's folder.
#[cfg(feature = "node")]
pub(crate) const CAPTURE: &str = "fleet.json";

/// Name of the rows: as a child makes them in its folder, and as the agent keeps them in the capture's.
pub(crate) const ROWS: &str = "fleet.parquet";

/// Files of a transform that makes rows too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetFiles {
    /// The capture's row as JSON.
    pub capture: PathBuf,
    /// Where its rows go.
    pub rows: PathBuf,
}

/// What a program for one machine says in place of rows, which nodes alone ask for.
#[cfg(not(feature = "node"))]
mod unwritten {
    use flopwatch_model::Timeline;
    use flopwatch_summary::Summary;

    use super::FleetFiles;

    /// Why there are no rows.
    #[derive(Debug, thiserror::Error)]
    #[error("this program was built without the writer of {}", .0.display())]
    pub struct Error(std::path::PathBuf);

    /// Makes none.
    pub fn write(files: &FleetFiles, _timeline: &Timeline, _summary: &Summary) -> Result<(), Error> {
        Err(Error(files.rows.clone()))
    }
}
