//! An object store that the release is given, and a node that is taken away. Each waits most of its
//! time for what the other leaves alone: so they are one group, and take turns at the release and
//! its second node.

use tokio::sync::Mutex;

/// Held while the release is installed anew, and while a node is away whose agent it would take.
static RELEASE: Mutex<()> = Mutex::const_new(());

mod copies;
mod fleet;
mod lost_node;
