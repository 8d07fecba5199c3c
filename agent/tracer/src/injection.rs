//! How CUDA begins with this library: the library that was there before is called first, then this
//! one takes its slot and starts its thread, which sleeps.
#![allow(unsafe_code, reason = "an entry point of another library")]

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use flopwatch_injected::{kernel, loader};

use crate::{service, tracer};

/// Names the library that the container would have loaded without us.
const NEXT: &CStr = c"FLOPWATCH_CUDA_NEXT";
/// What the driver looks for in such a library.
const ENTRY: &CStr = c"InitializeInjection";
/// What an entry point answers where all is well.
const WELL: c_int = 1;
/// Bytes of the thread's stack. CUPTI runs on it; what it does not touch costs nothing.
const STACK_BYTES: usize = 1 << 20;

static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// What CUDA calls when it begins.
pub fn initialize() -> c_int {
    // Whoever names this library as the next one would have it call itself for ever.
    if HAS_BEGUN.swap(true, Ordering::Relaxed) {
        return WELL;
    }
    let answer = call_next();
    if tracer::begin().is_some() {
        let before = kernel::block_signals();
        // Without its thread the library does nothing, which its slot says: nobody answers orders.
        loader::start_thread(service::main, STACK_BYTES);
        kernel::set_signals(before);
    }
    answer
}

/// Has the library begin that was there before, and gives its answer.
fn call_next() -> c_int {
    let entry = loader::variable(NEXT).and_then(|path| loader::symbol(path, ENTRY));
    // SAFETY: the driver takes a function of that name for one of that type.
    entry.map_or(WELL, |entry| unsafe {
        let entry: extern "C" fn() -> c_int = core::mem::transmute::<*mut c_void, _>(entry);
        entry()
    })
}
