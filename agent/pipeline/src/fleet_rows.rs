//! Rows of the fleet beside the published files: where they go, and who writes them.
//!
//! A child makes them of the timeline that it has in memory. Their writer is the program's own: a
//! node's agent has one, and a program for one machine is never asked for rows.

use std::error::Error;
use std::path::PathBuf;

use flopwatch_model::Timeline;
use flopwatch_summary::Summary;
use serde::{Deserialize, Serialize};

/// Name of the rows: as a child makes them in its folder, and as the agent keeps them in the
/// capture's.
pub const ROWS: &str = "fleet.parquet";

/// Files of a transform that makes rows too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetFiles {
    /// The capture's row as JSON.
    pub capture: PathBuf,
    /// File that the rows are written to.
    pub rows: PathBuf,
}

/// Writes the rows of a timeline.
pub type WriteRows = fn(&FleetFiles, &Timeline, &Summary) -> Result<(), Box<dyn Error>>;
