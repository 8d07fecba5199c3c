//! The driver that the program has loaded.
#![allow(unsafe_code, reason = "a function of another library")]

use core::ffi::{c_int, c_void};

use flopwatch_injected::loader::Library;

/// What `cuDriverGetVersion` says (13000 for CUDA 13.0); `None` where no driver is loaded, or it
/// does not say. It needs no initialised driver.
pub(crate) fn version() -> Option<u32> {
    let library = Library::loaded(c"libcuda.so.1")?;
    let address = library.find(c"cuDriverGetVersion")?;
    // SAFETY: the driver's function of that name has that signature, in every version.
    let ask: extern "C" fn(*mut c_int) -> c_int = unsafe { core::mem::transmute::<*mut c_void, _>(address) };
    let mut version = 0;
    let result = ask(&raw mut version);
    u32::try_from(version)
        .ok()
        .filter(|version| result == 0 && *version > 0)
}
