//! The command line that the options stand for.

use super::{NcuOptions, NcuSet, ReplayMode};
use crate::artifact::NCU_REPORT;
use crate::preparation::NCU_LOG;

impl NcuOptions {
    /// What stands between `ncu` and the program's command, with the report and the log in `folder`.
    pub fn arguments(&self, folder: &str) -> Vec<String> {
        let export = NCU_REPORT.trim_end_matches(".ncu-rep");
        let mut line: Vec<String> = vec![
            // A file in the image could ask for more than the session does.
            "--config-file".into(),
            "off".into(),
            "--log-file".into(),
            format!("{folder}/{NCU_LOG}"),
            "--force-overwrite".into(),
            "--export".into(),
            format!("{folder}/{export}"),
            "--target-processes".into(),
            "all".into(),
            "--set".into(),
            set(self.set).into(),
            "--replay-mode".into(),
            replay_mode(self.replay_mode).into(),
            "--launch-count".into(),
            self.launch_count.to_string(),
            "--launch-skip".into(),
            self.launch_skip.to_string(),
        ];
        if let Some(regex) = kernels(self) {
            line.extend(["--kernel-name-base".into(), "function".into()]);
            line.extend(["--kernel-name".into(), format!("regex:{regex}")]);
        }
        if !self.nvtx_include.is_empty() {
            line.push("--nvtx".into());
        }
        for range in &self.nvtx_include {
            line.extend(["--nvtx-include".into(), range.clone()]);
        }
        line
    }
}

/// The regular expression that a kernel's function name must hold; none where every kernel is profiled.
fn kernels(options: &NcuOptions) -> Option<String> {
    let names: Vec<String> = options
        .kernel_names
        .iter()
        .map(|name| name.replace('$', r"\$"))
        .collect();
    let any_of = (!names.is_empty()).then(|| format!("^({})$", names.join("|")));
    options.kernel_regex.clone().or(any_of)
}

const fn set(set: NcuSet) -> &'static str {
    match set {
        NcuSet::Basic => "basic",
        NcuSet::Detailed => "detailed",
        NcuSet::Full => "full",
        NcuSet::Roofline => "roofline",
    }
}

const fn replay_mode(mode: ReplayMode) -> &'static str {
    match mode {
        ReplayMode::Kernel => "kernel",
        ReplayMode::Application => "application",
        ReplayMode::Range => "range",
    }
}
