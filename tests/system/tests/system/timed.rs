//! What holds a pace or a time to a bound. Other tests would take the machine's time, so these have
//! the cluster without them; each of them waits most of its own.

use tokio::sync::RwLock;

/// Held for writing by the test that counts how often flight recorders are read, for reading by
/// tests whose pods have one: an agent rests in proportion to what all of its node's took. Where
/// there are two nodes, that test has the recorders of the last, and the others those of the first.
static RECORDERS: RwLock<()> = RwLock::const_new(());

mod alerts;
mod dashboards;
mod overhead;
mod recorder;
