//! Our own kernels under the machine's Nsight Compute.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use flopwatch_trace::ReadLimits;
use flopwatch_trace::ncu;
use serde::Serialize;

/// What ncu said of our kernels.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct CountersResult {
    /// The ncu that was found, and its version.
    pub(crate) ncu: Option<String>,
    /// Why there are no counters, in ncu's own words.
    pub(crate) unavailable: Option<String>,
    /// Metrics that the trace engine read back from the report, by kernel.
    pub(crate) kernels: BTreeMap<String, u64>,
}

/// Profiles one small run and reads the report back.
pub(crate) fn profile(output: &Path) -> Result<CountersResult> {
    let Some(ncu) = find() else {
        return Ok(CountersResult {
            unavailable: Some("no ncu on this machine".to_owned()),
            ..CountersResult::default()
        });
    };
    let version = Command::new(&ncu).arg("--version").output();
    let version = version.map(|message| last_line(&message.stdout)).unwrap_or_default();
    let mut result = CountersResult {
        ncu: Some(format!("{} {version}", ncu.display())),
        ..CountersResult::default()
    };
    let report = output.join("kernels.ncu-rep");
    let message = Command::new(&ncu)
        .args([
            "--set",
            "basic",
            "--launch-count",
            "20",
            "--force-overwrite",
            "--export",
        ])
        .arg(&report)
        .arg(std::env::current_exe()?)
        .args(["kernels", "1000000"])
        .output()?;
    if !message.status.success() || !report.exists() {
        let both = [message.stdout, message.stderr].concat();
        let text = String::from_utf8_lossy(&both);
        let reason = text
            .lines()
            .find(|line| line.contains("ERROR") || line.contains("LibraryNotLoaded"));
        result.unavailable = Some(reason.map_or_else(|| last_line(&both), str::to_owned));
        return Ok(result);
    }
    let read = ncu::read(&report, &ReadLimits::default());
    match read {
        Ok(capture) => {
            for launch in capture.profiles {
                let metrics = u64::try_from(launch.metrics.len()).unwrap_or(u64::MAX);
                *result.kernels.entry(launch.name).or_default() += metrics;
            }
        }
        Err(error) => result.unavailable = Some(error.to_string()),
    }
    if result.kernels.is_empty() && result.unavailable.is_none() {
        result.unavailable = Some("the report holds no kernels".to_owned());
    }
    Ok(result)
}

/// Environment variable that names the program, where it is not `ncu` on the PATH.
const NCU: &str = "FLOPWATCH_NCU";

/// The program that profiles.
pub(crate) fn find() -> Option<PathBuf> {
    let named = std::env::var_os(NCU).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("ncu"));
    named.into_iter().chain(on_path).find(|file| file.is_file())
}

fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .trim()
        .to_owned()
}
