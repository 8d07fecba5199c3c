//! Attach and detach cycles against running workloads while parts of the system are struck down at
//! random.
//!
//! Every cycle is one session with one profiler on one workload under one fault, drawn from the
//! seed and the cycle's number alone, so that a run can be repeated and taken up again. After each
//! cycle the workload must be the process that it was, and nothing of the capture may stay.

mod aftermath;
mod both;
mod cycle;
mod draw;
mod ends;
mod fault;
mod ground;
mod inspection;
mod launches;
mod ledger;
mod plan;
mod report;
mod run;
mod strike;

pub use both::Counted;
pub use fault::Fault;
pub use ground::Ground;
pub use ledger::{Ledger, Record};
pub use plan::{Draw, Plan};
pub use report::Report;
pub use run::{Options, run};
