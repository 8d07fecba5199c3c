//! What this program is started as by itself: the children of its sandbox and of its looks into
//! containers, and the launcher.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;

use flopwatch_attach::reexec;

/// Does that, where the command line asks for it; nothing otherwise. To be called before any thread
/// exists.
pub fn run() -> Option<ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let name = arguments.first().and_then(|name| name.to_str())?;
    if reexec::SUBCOMMANDS.contains(&name) {
        return Some(reexec::child_main(&arguments));
    }
    if name != "launcher" {
        return None;
    }
    let arguments: Vec<CString> = arguments
        .into_iter()
        .filter_map(|argument| CString::new(argument.into_vec()).ok())
        .collect();
    let environment: Vec<CString> = std::env::vars_os()
        .filter_map(|(name, value)| CString::new([name.into_vec(), value.into_vec()].join(&b'=')).ok())
        .collect();
    let code = flopwatch_launcher::arguments::dispatch(&arguments, &environment);
    Some(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}
