//! Versions of the profilers, which refuse reports of later versions than their own.

use std::fmt;
use std::sync::LazyLock;

use regex::bytes::Regex;

/// A version with four numbers, or three.
static VERSION_PATTERN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?-u)\b(20[12][0-9](?:\.[0-9]{1,4}){2,3})(?:-[0-9a-z]| \(build)").ok());

/// Year, release, patch and build, as in `2022.4.2.1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version([u32; 4]);

impl Version {
    /// Reads `2022.4.2.1` and what may follow it, such as `-df9881f`. What is missing at the end
    /// is 0.
    pub fn parse(text: &str) -> Option<Self> {
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let mut parts = text.get(..end)?.split('.');
        let mut version = [0; 4];
        for part in &mut version {
            match parts.next() {
                Some(digits) => *part = digits.parse().ok()?,
                None => break,
            }
        }
        (version.first()? > &2000).then_some(Self(version))
    }

    /// The first version in what a program says of itself, such as
    /// `NVIDIA Nsight Systems version 2022.4.2.1-df9881f`.
    pub fn message(bytes: &[u8]) -> Option<Self> {
        let found = VERSION_PATTERN.as_ref()?.captures(bytes)?.get(1)?;
        Self::parse(&String::from_utf8_lossy(found.as_bytes()))
    }

    /// Year and release.
    pub fn release(self) -> (u32, u32) {
        let [year, release, ..] = self.0;
        (year, release)
    }

    /// Whether a report of `other` may hold what this version does not know: builds of one patch
    /// read each other's reports.
    pub fn is_older_than(self, other: Self) -> bool {
        let release = |version: Self| {
            let [year, release, patch, _build] = version.0;
            (year, release, patch)
        };
        release(self) < release(other)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [year, release, patch, build] = self.0;
        write!(out, "{year}.{release}.{patch}.{build}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_tools_and_reports_say() {
        for (text, version) in [
            ("NVIDIA Nsight Systems version 2022.4.2.1-df9881f", Some("2022.4.2.1")),
            (
                "Version 2022.3.0.0 (build 31729285) (public-release)",
                Some("2022.3.0.0"),
            ),
            ("python 2023.1 of 2022-11-30", None),
        ] {
            let found = Version::message(text.as_bytes()).map(|version| version.to_string());
            assert_eq!(found.as_deref(), version, "{text}");
        }
    }

    #[test]
    fn a_release_and_a_patch_make_a_version_newer_and_a_build_does_not() {
        let version = |text| Version::parse(text).unwrap();
        let installed = version("2022.4.2.1-df9881f");
        for (report, newer) in [
            ("2022.4.2.99-abc", false),
            ("2022.4.3", true),
            ("2023.1.1.1", true),
            ("2020.5.1.85-5ee086b", false),
        ] {
            assert_eq!(installed.is_older_than(version(report)), newer, "{report}");
        }
        for text in ["1.", "", "x", "2024@4", "99999999999.1"] {
            assert!(
                Version::parse(text).is_none_or(|version| version == Version([2024, 0, 0, 0])),
                "{text}"
            );
        }
    }
}
