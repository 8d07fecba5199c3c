//! Which libcupti may be called: the one table of versions, and what follows from it before the
//! first call.

use core::ffi::CStr;

use flopwatch_tracer_file::process::Reason;

use crate::libraries::{Libraries, file_name};

/// What is known of releases of libcupti. The first row whose function a library exports is the
/// library's.
pub(crate) struct Rule {
    /// A function that this release has and the ones before it have not.
    pub(crate) function: &'static CStr,
    /// Major version of the driver that it is made for; `None` where the file's name says it.
    major: Option<u32>,
    /// Whether it may be called.
    pub(crate) is_allowed: bool,
}

/// The table. Where the functions come from: the exports of every wheel of libcupti from 11.8.87
/// to 13.5.25 (`shared/research/cupti.md`, A and B1).
pub(crate) const RULES: [Rule; 6] = [
    // 13.4 and 13.5: called without a driver, both refuse with 999.
    rule(c"cuptiGetCudaEventId", Some(13), true),
    // 13.3: as above. 13.3U1 mends a crash beside other versions of the driver (release notes).
    rule(c"cuptiActivityGetNextRecord_v2", Some(13), true),
    // 13.2: its first call recurses until the stack is full where the driver does not answer as it
    // likes (13.2.23, .75, .86: 9 of 9). No GPU has shown with which driver it does not.
    rule(c"cuptiActivityGetStructSize", Some(13), false),
    // 13.0 and 13.1: refuse with 999.
    rule(c"cuptiSubscribe_v2", Some(13), true),
    // 12.8 and 12.9: refuse with 15.
    rule(c"cuptiActivityEnableHWTrace", Some(12), true),
    // 11.8 to 12.6: refuse with 15.
    rule(c"cuptiSubscribe", None, true),
];

/// The API version of CUPTI 12.6, from which on nodes of graphs can be recorded: before, a program
/// that destroys a graph crashed (pytorch#150957).
pub(crate) const NODES_FROM: u32 = 24;

const fn rule(function: &'static CStr, major: Option<u32>, is_allowed: bool) -> Rule {
    Rule {
        function,
        major,
        is_allowed,
    }
}

/// Where the libcupti comes from that is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It is the program's: it is mapped already.
    Mapped,
    /// It is ours, of the driver's major version.
    Own,
}

/// Which libcupti is to be opened, of what the process has mapped.
pub(crate) fn choose(libraries: &Libraries) -> Result<Origin, Reason> {
    use flopwatch_tracer_file::process::Holder;
    if libraries.profiler != Holder::None {
        return Err(Reason::OtherProfiler);
    }
    if libraries.has_two {
        return Err(Reason::TwoCopies);
    }
    Ok(match libraries.cupti {
        Some(_) => Origin::Mapped,
        None => Origin::Own,
    })
}

/// The name of our copy for a driver.
pub(crate) const fn own_name(driver: u32) -> Option<&'static [u8]> {
    match driver / 1000 {
        11 => Some(b"/libcupti.so.11.8"),
        12 => Some(b"/libcupti.so.12"),
        13 => Some(b"/libcupti.so.13"),
        _ => None,
    }
}

/// Whether a library may be called with a driver, of its path and of which functions it exports.
pub(crate) fn check(driver: u32, path: &[u8], has: impl Fn(&CStr) -> bool) -> Result<(), Reason> {
    let rule = RULES
        .iter()
        .find(|rule| has(rule.function))
        .ok_or(Reason::MissingFunction)?;
    if !rule.is_allowed {
        return Err(Reason::ExcludedVersion);
    }
    if rule.major.unwrap_or_else(|| old_major(path)) == driver / 1000 {
        Ok(())
    } else {
        Err(Reason::OtherMajor)
    }
}

/// The major version of a release before 12.8, of its file's name: 11.8 has the soname
/// `libcupti.so.11.8`, and is called by its year in NVIDIA's toolkit.
fn old_major(path: &[u8]) -> u32 {
    let name = file_name(path);
    let is_eleven = name.starts_with(b"libcupti.so.11") || name.starts_with(b"libcupti.so.2022.3");
    if is_eleven { 11 } else { 12 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The functions of a release: every row from its own one on.
    fn of(first: usize) -> impl Fn(&CStr) -> bool {
        move |name| RULES[first..].iter().any(|rule| rule.function == name)
    }

    #[test]
    fn a_library_serves_the_driver_of_its_major_version_alone() {
        for (first, driver, path, expected) in [
            (0, 13_050, "/x/libcupti.so.13", Ok(())),
            (1, 13_000, "/x/libcupti.so.13", Ok(())),
            (3, 13_000, "/x/libcupti.so.2025.3.0", Ok(())),
            (3, 12_080, "/x/libcupti.so.13", Err(Reason::OtherMajor)),
            (4, 12_080, "/x/libcupti.so.12", Ok(())),
            (4, 13_000, "/x/libcupti.so.12", Err(Reason::OtherMajor)),
            (5, 12_020, "/x/libcupti.so.12", Ok(())),
            (5, 11_080, "/x/libcupti.so.11.8", Ok(())),
            (5, 11_080, "/x/libcupti.so.2022.3.0", Ok(())),
            (5, 12_080, "/x/libcupti.so.11.8", Err(Reason::OtherMajor)),
            (6, 12_080, "/x/libcupti.so.12", Err(Reason::MissingFunction)),
        ] {
            assert_eq!(
                check(driver, path.as_bytes(), of(first)),
                expected,
                "{first} {driver} {path}"
            );
        }
    }

    #[test]
    fn cupti_13_2_is_never_called() {
        assert_eq!(check(13_020, b"/x/libcupti.so.13", of(2)), Err(Reason::ExcludedVersion));
    }

    #[test]
    fn a_driver_without_a_copy_of_ours_has_none() {
        assert_eq!(own_name(13_020), Some(&b"/libcupti.so.13"[..]));
        assert_eq!(own_name(10_020), None);
        assert_eq!(own_name(14_000), None);
    }
}
