//! The command line with which Nsight Compute starts a container's program: a function of the
//! session's options.

use flopwatch_api::preparation::{LAUNCHER, RUN_DIR, TOOLS_DIR};
use flopwatch_api::profiler::NcuOptions;

/// Where Nsight Compute lies in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NcuTools {
    /// Reference of the image.
    pub image: String,
    /// Folder of one version in it, with `target` and `sections`.
    pub path: String,
    /// Bytes that it takes in the pod's ephemeral storage.
    pub bytes: u64,
}

impl NcuTools {
    /// The program in a container that the folder was copied into. It looks for its sections two
    /// folders above its own.
    fn program(&self) -> String {
        let folder = self.path.rsplit('/').next().unwrap_or_default();
        format!("{TOOLS_DIR}/{folder}/target/linux-desktop-glibc_2_11_3-x64/ncu")
    }

    /// What stands before the container's command. The kubelet expands `$(NAME)` in it, so every
    /// dollar is written twice.
    pub(super) fn prefix(&self, options: &NcuOptions) -> Vec<String> {
        let launcher = [LAUNCHER, "profile", "--"].map(str::to_owned);
        let folder = format!("{RUN_DIR}/out");
        let ncu = std::iter::once(self.program()).chain(options.arguments(&folder));
        launcher
            .into_iter()
            .chain(ncu.map(|word| word.replace('$', "$$")))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use flopwatch_api::preparation::NCU_LOG;
    use flopwatch_api::profiler::NcuSet;

    use super::*;

    fn options(text: &str) -> NcuOptions {
        serde_json::from_str(text).unwrap()
    }

    fn tools() -> NcuTools {
        NcuTools {
            image: "ncu:1".into(),
            path: "/opt/nvidia/nsight-compute/2024.1.1".into(),
            bytes: 1,
        }
    }

    #[test]
    fn the_defaults_are_a_bounded_profile_of_every_kernel() {
        let line = tools().prefix(&NcuOptions::default()).join(" ");
        assert_eq!(
            line,
            "/flopwatch/tools/launcher profile -- /flopwatch/tools/2024.1.1/target/linux-desktop-glibc_2_11_3-x64/ncu --config-file off \
             --log-file /flopwatch/run/out/ncu.log --force-overwrite --export /flopwatch/run/out/capture --target-processes all --set \
             basic --replay-mode kernel --launch-count 10 --launch-skip 0"
        );
    }

    #[test]
    fn the_kubelet_expands_nothing_of_what_the_user_wrote() {
        let words = tools().prefix(&options(r#"{"kernelRegex": "^a$(HOME)"}"#));
        assert!(words.contains(&"regex:^a$$(HOME)".to_owned()), "{words:?}");
        let words = tools().prefix(&options(r#"{"kernelNames": ["gemm", "a$1"]}"#));
        assert!(words.contains(&r"regex:^(gemm|a\$$1)$$".to_owned()), "{words:?}");
    }

    /// What the real program says of a command line, in its log and on its standard streams: on a
    /// machine without a driver it runs nothing.
    fn said(arguments: &[String], folder: &std::path::Path) -> Option<String> {
        let Some(program) = std::env::var_os("FLOPWATCH_NCU").filter(|program| !program.is_empty()) else {
            println!("skipped: FLOPWATCH_NCU names no ncu (cargo xtask setup fetches one)");
            return None;
        };
        let output = Command::new(program).args(arguments).arg("true").output().unwrap();
        let log = std::fs::read_to_string(folder.join(NCU_LOG)).unwrap_or_default();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Some(format!("{log}{}", text.concat()))
    }

    #[test]
    fn the_real_program_takes_every_option_and_refuses_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let sets = NcuSet::ALL.map(|set| NcuOptions {
            set,
            ..NcuOptions::default()
        });
        let others = [
            r#"{"kernelRegex": "^(a|b)$", "launchSkip": 3, "launchCount": 1000}"#,
            r#"{"kernelNames": ["gemm", "a$1"], "replayMode": "Application"}"#,
            r#"{"nvtxInclude": ["step/", "domain@range"], "replayMode": "Range"}"#,
        ];
        for options in sets.into_iter().chain(others.map(options)) {
            let Some(said) = said(&options.arguments(path), folder.path()) else {
                return;
            };
            // It gets as far as the program's end: neither its words for a wrong option nor for a
            // set that it does not know.
            let nothing = ["No kernels were profiled", "No ranges were profiled"];
            assert!(nothing.iter().any(|words| said.contains(words)), "{options:?}: {said}");
            assert!(!said.contains("No metrics to collect"), "{options:?}: {said}");
        }
        let wrong = said(&options(r#"{"kernelRegex": "["}"#).arguments(path), folder.path()).unwrap();
        assert!(wrong.contains("Invalid regex"), "{wrong}");
    }
}
