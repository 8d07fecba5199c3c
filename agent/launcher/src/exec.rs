//! Replaces this process by another program: `execve` with the search that `execvp` does.

use std::convert::Infallible;
use std::ffi::CString;

use nix::errno::Errno;
use nix::unistd::execve;

/// What is searched when the environment has no PATH; glibc's own default.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// The files to try for `command`, in order: itself when it holds a slash, else one per entry of
/// PATH (an empty entry is the current folder).
pub fn candidates(command: &[u8], environment: &[CString]) -> Vec<CString> {
    if command.contains(&b'/') || command.is_empty() {
        return CString::new(command).into_iter().collect();
    }
    let path = environment
        .iter()
        .find_map(|entry| entry.as_bytes().strip_prefix(b"PATH="))
        .unwrap_or(DEFAULT_PATH);
    path.split(|byte| *byte == b':')
        .filter_map(|folder| {
            let mut file = if folder.is_empty() {
                b".".to_vec()
            } else {
                folder.to_vec()
            };
            file.push(b'/');
            file.extend_from_slice(command);
            CString::new(file).ok()
        })
        .collect()
}

/// Replaces this process. Returns only when that failed, with the error that a shell would report:
/// "not found" only when no candidate was anything else.
pub fn exec(arguments: &[CString], environment: &[CString]) -> Result<Infallible, Errno> {
    let Some(command) = arguments.first() else {
        return Err(Errno::ENOENT);
    };
    let mut outcome = Errno::ENOENT;
    for file in candidates(command.as_bytes(), environment) {
        let Err(error) = execve(&file, arguments, environment);
        match error {
            Errno::ENOENT | Errno::ENOTDIR => {}
            // A later entry may hold one that can be run.
            Errno::EACCES => outcome = error,
            _ => return Err(error),
        }
    }
    Err(outcome)
}

/// The exit code that a shell gives for a command that could not be run.
pub fn exit_code(error: Errno) -> i32 {
    if error == Errno::ENOENT { 127 } else { 126 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(list: &[&str]) -> Vec<CString> {
        list.iter().map(|entry| CString::new(*entry).unwrap()).collect()
    }

    #[test]
    fn a_command_is_searched_as_execvp_does() {
        let environment = strings(&["X=1", "PATH=/a::/b", "PATH=/late"]);
        assert_eq!(candidates(b"sh", &environment), strings(&["/a/sh", "./sh", "/b/sh"]));
        assert_eq!(candidates(b"./sh", &environment), strings(&["./sh"]));
        assert_eq!(candidates(b"sh", &[]), strings(&["/bin/sh", "/usr/bin/sh"]));
    }

    #[test]
    fn failures_report_what_a_shell_would() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tool");
        std::fs::write(&file, "not a program").unwrap();
        let path = CString::new(format!("PATH=/nowhere:{}", folder.path().display())).unwrap();
        let error = exec(&strings(&["tool"]), std::slice::from_ref(&path)).unwrap_err();
        assert_eq!((error, exit_code(error)), (Errno::EACCES, 126));
        let error = exec(&strings(&["absent"]), &[path]).unwrap_err();
        assert_eq!((error, exit_code(error)), (Errno::ENOENT, 127));
    }
}
