//! The fake NVML that tests load.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

/// Names the library in place of one that is built.
pub(crate) const LIBRARY: &str = "FLOPWATCH_FAKE_NVML_LIBRARY";

/// The library: the one that was named, or built once.
pub(crate) fn library() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    if let Some(path) = std::env::var_os(LIBRARY) {
        return path.into();
    }
    BUILT
        .get_or_init(|| {
            let built = Command::new(env!("CARGO"))
                .args([
                    "build",
                    "--quiet",
                    "--package",
                    "flopwatch-fake-nvml",
                    "--message-format",
                    "json",
                ])
                .current_dir(env!("CARGO_MANIFEST_DIR"))
                .output()
                .unwrap();
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            let messages = String::from_utf8(built.stdout).unwrap();
            let files = messages
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap());
            let file = files
                .filter_map(|message| message["filenames"].as_array().cloned())
                .flatten()
                .filter_map(|file| file.as_str().map(PathBuf::from))
                .find(|file| file.ends_with("libflopwatch_fake_nvml.so"));
            file.unwrap()
        })
        .clone()
}
