//! The root file systems that images stand on: small Debians, made by mmdebstrap.

use anyhow::{Context as _, Result};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::debian;
use flopwatch_toolchain::progress::{human, say};
use std::path::PathBuf;
use std::time::Instant;

/// A root file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rootfs {
    /// Debian's essential packages: glibc and a shell.
    Base,
    /// And what the importer of Nsight Systems loads.
    Importer,
}

/// Documentation that no container reads.
const EXCLUDED: &[&str] = &[
    "/usr/share/doc/*",
    "/usr/share/man/*",
    "/usr/share/info/*",
    "/usr/share/locale/*",
];

impl Rootfs {
    fn name(self) -> &'static str {
        match self {
            Self::Base => "rootfs-base",
            Self::Importer => "rootfs-importer",
        }
    }

    fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Base => &[],
            Self::Importer => debian::NSYS_LIBRARIES,
        }
    }

    /// The tar of the root file system, made if the cache lacks it.
    pub(crate) fn ensure(self, cache: &Cache) -> Result<PathBuf> {
        // The programs in the image are linked against this machine's glibc, so its own release
        // fits best.
        let suite = debian::codename().unwrap_or_else(|_| "bookworm".to_owned());
        let packages = self.packages().join(",");
        cache.item(self.name(), &[&suite, &packages, &EXCLUDED.join(",")], |path| {
            debian::install(&["mmdebstrap"])?;
            let begin = Instant::now();
            let mut run = Run::new("mmdebstrap")
                .env("SOURCE_DATE_EPOCH", "0")
                .args(["--quiet", "--variant=essential", "--format=tar"])
                // Device nodes come from the container runtime.
                .args(["--skip=output/dev"]);
            if !packages.is_empty() {
                run = run.arg(format!("--include={packages}"));
            }
            run = run.args(
                EXCLUDED
                    .iter()
                    .map(|pattern| format!("--dpkgopt=path-exclude={pattern}")),
            );
            run.arg(&suite)
                .arg(path)
                .quiet()
                .with_context(|| format!("cannot make {}", self.name()))?;
            say(format_args!("made {} in {}", self.name(), human(begin.elapsed())));
            Ok(())
        })
    }
}
