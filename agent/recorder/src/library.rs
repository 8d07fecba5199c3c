//! The root of the library that programs load: its entry points and what the compiler asks of a
//! root.
#![no_std]

mod attributes;
mod calls;
mod claim;
mod clock;
mod event;
mod file;
mod handles;
mod injection;
mod labels;
mod memory;
mod names;
mod recorder;
mod segment;
mod text;
mod thread;

use core::ffi::c_int;

use injection::{GetExportTable, Version, initialize};

/// Entry point that NVTX 3 looks for.
// SAFETY: the name is the one that NVTX asks the library for, and the signature is NVTX's.
#[unsafe(no_mangle)]
extern "C" fn InitializeInjectionNvtx2(get_export_table: Option<GetExportTable>) -> c_int {
    initialize(Version::Three, get_export_table)
}

/// Entry point that NVTX 2 (`libnvToolsExt`) looks for.
// SAFETY: the name is the one that NVTX asks the library for, and the signature is NVTX's.
#[unsafe(no_mangle)]
extern "C" fn InitializeInjectionNvtx(get_export_table: Option<GetExportTable>) -> c_int {
    initialize(Version::Two, get_export_table)
}

unsafe extern "C" {
    /// There is no such function: a library that could panic would refer to it, which a test looks
    /// for.
    safe fn flopwatch_recorder_panics() -> !;
}

/// Never runs, as nothing here panics; the compiler wants one.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    flopwatch_recorder_panics()
}
