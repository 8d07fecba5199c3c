//! For which drivers the CUDA tracer is open: those of which a GPU has shown that it works.

use flopwatch_tracer::proven::Unproven;

use super::probe::Look;
use crate::profilers::facts::Facts;

/// Whether the tracer is proven for a driver, of what `cuDriverGetVersion` says.
pub(super) type Check = fn(u32) -> Result<(), Unproven>;

/// The driver's generation, such as 13000 for CUDA 13.0: what the container's programs were told,
/// which may bring a driver of their own, else what NVML says of the node.
pub(super) fn generation(facts: &Facts) -> Option<u32> {
    let programs = facts.found.get::<Look>().map(Look::programs).unwrap_or_default();
    let told = programs.iter().map(|process| process.driver_version);
    told.filter(|driver| *driver != 0).max().or(facts.gpu.driver)
}

/// Why nothing shows that the tracer works with the container's driver; none where a GPU has.
pub(super) fn unproven(facts: &Facts, check: Check) -> Option<String> {
    match generation(facts) {
        Some(driver) => check(driver).err().map(|unproven| unproven.to_string()),
        None => Some(
            "which CUDA the node's driver serves is not known, for NVML does not say, so nothing shows that the CUDA tracer works \
             with it"
                .to_owned(),
        ),
    }
}
