//! The environment of the workload: its own, plus what the session gave to the stub.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::copy::RECORDER;

/// What stands in the stub's environment because of how the stub was started, not because the
/// session needs it in the workload. These never reach the workload.
const OF_THE_STUB: &[&str] = &[
    "TMPDIR", "HOME", "PWD", "OLDPWD", "SHLVL", "_", "PATH", "USER", "LOGNAME", "SHELL", "TERM", "HOSTNAME", "LANG",
    "LANGUAGE",
];

/// Variables by which a profiler gets into a process. The session's own library overwrites them
/// when it is loaded, whatever the launcher does: a workload that sets one is not grafted.
const INJECTIONS: &[&str] = &["CUDA_INJECTION64_PATH", NVTX];

/// Names the library that NVTX loads.
const NVTX: &str = "NVTX_INJECTION64_PATH";
/// Names the library that the flight recorder loads behind itself.
const BEHIND_RECORDER: &str = "FLOPWATCH_NVTX_NEXT";
/// What the library that Nsight Systems preloads takes over, separated by commas. With the word
/// `NVTX` it sets [`NVTX`] in every program.
const PRELOADED: &str = "QUADD_INJECTION_PROXY";

/// The libraries that a program is loaded with before its own.
const PRELOAD: &str = "LD_PRELOAD";
/// Names of the variables that were added, for the fallback library: it takes them away again where
/// the profiler fails.
pub const GRAFTED: &str = "FLOPWATCH_GRAFTED";

/// Whether the workload brings another profiler along.
pub fn has_profiler(own: &[CString]) -> bool {
    own.iter().any(|entry| {
        let bytes = entry.as_bytes();
        name_of(bytes).is_some_and(|name| {
            INJECTIONS.iter().any(|known| known.as_bytes() == name)
                && bytes.len() > name.len() + 1
                && !names_recorder(bytes)
        })
    })
}

/// Whether an entry has NVTX load the flight recorder.
fn names_recorder(entry: &[u8]) -> bool {
    let path = entry
        .strip_prefix(NVTX.as_bytes())
        .and_then(|rest| rest.strip_prefix(b"="));
    path.is_some_and(|path| Path::new(OsStr::from_bytes(path)).file_name() == Some(OsStr::new(RECORDER)))
}

/// The session's entries for a workload whose NVTX loads the flight recorder: it loads the
/// profiler's library behind itself, so that both see every call.
fn behind_recorder(session: &[CString]) -> Vec<CString> {
    let entry = |name: &str, value: &[u8]| CString::new([name.as_bytes(), b"=", value].concat()).ok();
    let changed = session.iter().map(|own| {
        let bytes = own.as_bytes();
        let name = name_of(bytes).unwrap_or_default();
        let value = bytes.get(name.len() + 1..).unwrap_or_default();
        if name == NVTX.as_bytes() {
            return entry(BEHIND_RECORDER, value);
        }
        if name == PRELOADED.as_bytes() {
            let words: Vec<_> = value
                .split(|byte| *byte == b',')
                .filter(|word| *word != b"NVTX")
                .collect();
            return entry(PRELOADED, &words.join(&b','));
        }
        Some(own.clone())
    });
    changed.flatten().collect()
}

/// Why an environment file cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed;

/// Reads a NUL-separated environment as the stub writes it: every entry has a name and ends in NUL.
pub fn parse(bytes: &[u8]) -> Result<Vec<CString>, Malformed> {
    let Some(body) = bytes.strip_suffix(&[0]) else {
        return Err(Malformed);
    };
    body.split(|byte| *byte == 0)
        .map(|entry| {
            name_of(entry).ok_or(Malformed)?;
            CString::new(entry).map_err(|_inner_nul| Malformed)
        })
        .collect()
}

/// The name of an entry `NAME=value`; none when it has no name.
fn name_of(entry: &[u8]) -> Option<&[u8]> {
    let end = entry.iter().position(|byte| *byte == b'=').filter(|end| *end > 0)?;
    entry.get(..end)
}

/// Whether the stub's entry is to be left out.
fn is_of_the_stub(name: &[u8]) -> bool {
    name.starts_with(b"LC_") || OF_THE_STUB.iter().any(|own| own.as_bytes() == name)
}

/// The merged environment.
#[derive(Debug, PartialEq, Eq)]
pub struct Merged {
    /// The workload's own entries, in their order, then the session's.
    pub entries: Vec<CString>,
    /// Names that both have and that stayed as the workload set them.
    pub kept: Vec<String>,
    /// How many entries the session added or extended.
    pub added: usize,
}

/// Adds the session's entries to the workload's own. A variable that the workload has is never
/// replaced; `LD_PRELOAD` is extended behind the workload's own libraries, with `fallback` before
/// the profiler's and one more variable that tells it what was added.
pub fn merge(own: &[CString], session: &[CString], fallback: Option<&Path>) -> Merged {
    let chained;
    let session = if own.iter().any(|entry| names_recorder(entry.as_bytes())) {
        chained = behind_recorder(session);
        &chained
    } else {
        session
    };
    let fallback = fallback.map(|path| path.as_os_str().as_bytes());
    // A path with a separator in it cannot stand in a list.
    let fallback = fallback.filter(|path| !path.iter().any(|byte| b": =".contains(byte)));
    let mut guarded = false;
    let mut names: Vec<&[u8]> = vec![GRAFTED.as_bytes()];
    let mut merged = Merged {
        entries: own.to_vec(),
        kept: Vec::new(),
        added: 0,
    };
    for entry in session {
        let bytes = entry.as_bytes();
        let Some(name) = name_of(bytes) else { continue };
        if is_of_the_stub(name) {
            continue;
        }
        let mut entry = entry.clone();
        if name == PRELOAD.as_bytes()
            && let Some(fallback) = fallback
            && let Ok(extended) = CString::new(
                [
                    &b"LD_PRELOAD="[..],
                    fallback,
                    b":",
                    bytes.get(name.len() + 1..).unwrap_or_default(),
                ]
                .concat(),
            )
        {
            entry = extended;
            guarded = true;
        }
        let bytes = entry.as_bytes();
        let present = merged
            .entries
            .iter_mut()
            .find(|other| name_of(other.as_bytes()) == Some(name));
        match present {
            None => {
                names.push(name);
                merged.added += 1;
                merged.entries.push(entry);
            }
            Some(own) if *own == entry => {}
            Some(own) if name == PRELOAD.as_bytes() => {
                let value = bytes.get(name.len() + 1..).unwrap_or_default();
                let mut extended = own.as_bytes().to_vec();
                if !extended.ends_with(b"=") {
                    extended.push(b':');
                }
                extended.extend_from_slice(value);
                if let Ok(extended) = CString::new(extended) {
                    *own = extended;
                    merged.added += 1;
                }
            }
            Some(_) => merged.kept.push(String::from_utf8_lossy(name).into_owned()),
        }
    }
    if guarded && let Ok(list) = CString::new([GRAFTED.as_bytes(), b"=", &names.join(&b':')].concat()) {
        merged.entries.push(list);
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(list: &[&str]) -> Vec<CString> {
        list.iter().map(|entry| CString::new(*entry).unwrap()).collect()
    }

    #[test]
    fn the_session_adds_and_never_replaces() {
        let own = entries(&[
            "A=1",
            "odd entry",
            "LD_PRELOAD=/own.so",
            "CUDA_INJECTION64_PATH=/mine",
            "A=2",
        ]);
        let session = entries(&[
            "HOME=/x",
            "LC_ALL=C",
            "_=/nsys",
            "LD_PRELOAD=/p.so:/q.so",
            "CUDA_INJECTION64_PATH=/t",
            "NSYS_X=y=z",
        ]);
        let merged = merge(&own, &session, None);
        let expected = entries(&[
            "A=1",
            "odd entry",
            "LD_PRELOAD=/own.so:/p.so:/q.so",
            "CUDA_INJECTION64_PATH=/mine",
            "A=2",
            "NSYS_X=y=z",
        ]);
        assert_eq!(merged.entries, expected);
        assert_eq!(merged.kept, ["CUDA_INJECTION64_PATH"]);
        assert_eq!(merged.added, 2);
    }

    #[test]
    fn an_empty_preload_of_the_workload_is_filled_without_a_colon() {
        let merged = merge(&entries(&["LD_PRELOAD="]), &entries(&["LD_PRELOAD=/p.so"]), None);
        assert_eq!(merged.entries, entries(&["LD_PRELOAD=/p.so"]));
    }

    #[test]
    fn the_fallback_comes_before_the_profiler_and_is_told_what_was_added() {
        let session = entries(&["LD_PRELOAD=/p.so", "HOME=/x", "NSYS_X=1", "A=2"]);
        let merged = merge(
            &entries(&["LD_PRELOAD=/own.so", "A=1"]),
            &session,
            Some(Path::new("/t/f.so")),
        );
        assert_eq!(
            merged.entries,
            entries(&[
                "LD_PRELOAD=/own.so:/t/f.so:/p.so",
                "A=1",
                "NSYS_X=1",
                "FLOPWATCH_GRAFTED=FLOPWATCH_GRAFTED:NSYS_X"
            ])
        );
        let merged = merge(&[], &session, Some(Path::new("/a:b/f.so")));
        assert_eq!(merged.entries, entries(&["LD_PRELOAD=/p.so", "NSYS_X=1", "A=2"]));
    }

    #[test]
    fn the_recorder_of_a_workload_is_no_profiler_and_loads_the_sessions_library_behind_itself() {
        let recorder = "NVTX_INJECTION64_PATH=/flopwatch/tools/libflopwatch-recorder.so";
        let own = entries(&[recorder, "A=1"]);
        assert!(!has_profiler(&own));
        let session = entries(&[
            "NVTX_INJECTION64_PATH=/nsys/l.so",
            "QUADD_INJECTION_PROXY=Mmap,OSRT,NVTX",
            "B=2",
        ]);
        let merged = merge(&own, &session, None);
        let expected = [
            recorder,
            "A=1",
            "FLOPWATCH_NVTX_NEXT=/nsys/l.so",
            "QUADD_INJECTION_PROXY=Mmap,OSRT",
            "B=2",
        ];
        assert_eq!(
            (merged.entries, merged.kept.len(), merged.added),
            (entries(&expected), 0, 3)
        );
    }

    #[test]
    fn a_workload_without_home_and_tmpdir_stays_without_them() {
        let merged = merge(
            &[],
            &entries(&["HOME=/x", "TMPDIR=/y", "PATH=/z", "NVTX_INJECTION64_PATH=/t"]),
            None,
        );
        assert_eq!(merged.entries, entries(&["NVTX_INJECTION64_PATH=/t"]));
    }

    #[test]
    fn a_workload_with_an_injection_library_of_its_own_is_seen() {
        for (own, found) in [
            ("NVTX_INJECTION64_PATH=/x", true),
            ("CUDA_INJECTION64_PATH=", false),
            ("X=CUDA_INJECTION64_PATH", false),
        ] {
            assert_eq!(has_profiler(&entries(&[own])), found, "{own}");
        }
    }

    #[test]
    fn files_that_are_cut_empty_or_nameless_are_malformed() {
        for bytes in [&b""[..], b"A=1", b"A=1\0B", b"\0", b"=x\0", b"novalue\0", b"A=1\0\0"] {
            assert_eq!(parse(bytes), Err(Malformed), "{bytes:?}");
        }
        assert_eq!(parse(b"A=1\0B=\0"), Ok(entries(&["A=1", "B="])));
    }
}
