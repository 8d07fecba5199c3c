//! Whether a profiling window harmed its target, decided from the rates of a counter of the
//! target's own work.
//!
//! [`bins()`] turns samples of the counter into rates, [`Arms::of`] sorts them into before, during
//! and after, and [`decide()`] gives the slowdown with its 95 % interval and a verdict.
//! [`AbortRule`] ends a window while it runs. Nothing here does I/O or reads a clock: times are
//! nanoseconds of whichever clock the caller's samples carry.
//!
//! A slowdown is the additional time that a unit of work takes: at 20 % (2,000 basis points) a step
//! of 1 s takes 1.2 s, and the rate falls to 1/1.2 = 83 %. It is positive where the window made the
//! target slower.

mod abort;
mod amortised;
mod arms;
mod autocorrelation;
mod bins;
mod curve;
mod decide;
mod drift;
mod estimate;
mod mann_whitney;
mod null_distribution;
mod number;
mod sample;
mod shift;
mod stall;

pub use abort::{Abort, AbortRule};
pub use amortised::{Amortised, PastWindow, amortised};
pub use arms::{Arms, Times};
pub use bins::{Bin, Binning, Measure, bins};
pub use decide::{Budget, Decision, Reason, Verdict, compare, decide};
pub use drift::Drift;
pub use estimate::{Estimate, EstimateError, MINIMUM_BINS, estimate, rough_estimate};
pub use mann_whitney::{Alternative, MannWhitney, mann_whitney};
pub use sample::Sample;
pub use shift::{Shift, hodges_lehmann, shift};
pub use stall::stall_milliseconds;
