//! What the viewer's packages must be, byte for byte: `web/package-lock.json`.

use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::project;
use serde_json::Value;
use std::fs;

const FILE: &str = "web/package-lock.json";

/// Fails on a package that npm would take whatever it holds, and on one that is tied to the
/// registry of one machine.
pub(super) fn check() -> Result<()> {
    let text = fs::read_to_string(project::root()?.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    let loose = loose(&text).with_context(|| format!("{FILE} is no lock file of npm 7 or newer"))?;
    if loose.is_empty() {
        return Ok(());
    }
    bail!(
        "{FILE}: {}; lock it anew: in a folder with web/package.json and web/.npmrc alone, npm install --package-lock-only",
        loose.join(", ")
    )
}

/// Packages without a sum, and those with an address.
fn loose(lock: &str) -> Option<Vec<String>> {
    let lock: Value = serde_json::from_str(lock).ok()?;
    let mut loose = Vec::new();
    for (path, package) in lock.get("packages")?.as_object()? {
        // The first one is the viewer itself.
        if path.is_empty() {
            continue;
        }
        let sum = package.get("integrity").and_then(Value::as_str).unwrap_or_default();
        if !sum.starts_with("sha512-") {
            loose.push(format!("{path} has no integrity"));
        }
        if package.get("resolved").is_some() {
            loose.push(format!("{path} names its address"));
        }
    }
    Some(loose)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_of_the_viewer_is_locked_with_its_integrity() {
        check().unwrap();
        let text = fs::read_to_string(project::root().unwrap().join(FILE)).unwrap();
        assert!(
            text.matches("\"integrity\"").count() > 100,
            "the check looked at nothing"
        );
    }

    #[test]
    fn a_package_without_integrity_or_with_an_address_is_named() {
        let lock = r#"{"packages":{"":{"name":"viewer"},
            "node_modules/a":{"version":"1","integrity":"sha512-AA=="},
            "node_modules/b":{"version":"1"},
            "node_modules/c":{"version":"1","integrity":"sha1-AA=="},
            "node_modules/d":{"version":"1","integrity":"sha512-AA==","resolved":"http://127.0.0.1/d.tgz"}}}"#;
        assert_eq!(
            loose(lock).unwrap(),
            [
                "node_modules/b has no integrity",
                "node_modules/c has no integrity",
                "node_modules/d names its address"
            ]
        );
        assert_eq!(loose("{}"), None);
    }
}
