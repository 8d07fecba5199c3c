//! The root of the library that programs load: its entry point and what the compiler asks of a
//! root.
#![no_std]

mod buffers;
mod call_names;
mod callbacks;
mod convert;
mod cupti;
mod driver;
mod file;
mod injection;
mod kinds;
mod libraries;
mod names;
mod orders;
mod rules;
mod segments;
mod service;
mod session;
mod slot;
mod tracer;

use core::ffi::c_int;

/// Entry point that CUDA's driver looks for.
// SAFETY: the name is the one that the driver asks the library for, and the signature is the
// driver's.
#[unsafe(no_mangle)]
extern "C" fn InitializeInjection() -> c_int {
    injection::initialize()
}

unsafe extern "C" {
    /// There is no such function: a library that could panic would refer to it, which a test looks
    /// for.
    safe fn flopwatch_tracer_panics() -> !;
}

/// Never runs, as nothing here panics; the compiler wants one.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    flopwatch_tracer_panics()
}
