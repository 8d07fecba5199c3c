//! Nsight Systems: the one on the machine, or Debian's (component non-free) in the cache folder.

use crate::cache::{Cache, remove};
use crate::command::{Run, find_program};
use crate::debian;
use crate::progress::say;
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The packages taken from Debian's non-free component, and the layout that is made of them.
const PACKAGES: &[&str] = &["nsight-systems", "nsight-systems-target"];
const LAYOUT: &str = "1";

/// The two halves of one version of Nsight Systems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Nsys {
    /// `target-linux-x64`: what runs beside the workload; holds the program `nsys`.
    pub(crate) target: PathBuf,
    /// `host-linux-x64`: importer and exporter.
    pub(crate) host: PathBuf,
}

impl Nsys {
    /// The program itself.
    pub(crate) fn program(&self) -> PathBuf {
        self.target.join("nsys")
    }

    /// How the agent and the tests are told where it is.
    pub(crate) fn environment(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("FLOPWATCH_NSYS".to_owned(), self.program().display().to_string()),
            ("FLOPWATCH_NSYS_HOST".to_owned(), self.host.display().to_string()),
        ])
    }

    fn complete(self) -> Option<Self> {
        (self.program().is_file() && self.host.join("QdstrmImporter").is_file()).then_some(self)
    }

    fn in_folder(folder: &Path) -> Option<Self> {
        Self {
            target: folder.join("target-linux-x64"),
            host: folder.join("host-linux-x64"),
        }
        .complete()
    }

    /// The installation that a program `nsys` on PATH belongs to: Debian's and NVIDIA's own layouts.
    fn of_program(program: &Path) -> Option<Self> {
        let real = program.canonicalize().ok()?;
        let target = real.parent()?;
        let beside = target.parent()?;
        Self::in_folder(beside).or_else(|| {
            Self {
                target: target.to_owned(),
                host: "/usr/lib/nsight-systems/host-linux-x64".into(),
            }
            .complete()
        })
    }
}

fn place(cache: &Cache) -> Result<PathBuf> {
    let pins: Vec<&str> = PACKAGES.iter().copied().chain([LAYOUT]).collect();
    Ok(cache.place(&format!("nsys-{}", debian::codename()?), &pins))
}

/// The Nsight Systems that is there already: `FLOPWATCH_NSYS` and `FLOPWATCH_NSYS_HOST`, PATH, the cache.
pub(crate) fn find(cache: &Cache) -> Result<Option<Nsys>> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    if let (Some(program), Some(host)) = (set("FLOPWATCH_NSYS"), set("FLOPWATCH_NSYS_HOST")) {
        let target = program.parent().map(Path::to_owned).unwrap_or_default();
        let told = Nsys { target, host };
        let explain = || {
            format!(
                "FLOPWATCH_NSYS={} and FLOPWATCH_NSYS_HOST name no Nsight Systems",
                program.display()
            )
        };
        return told.complete().with_context(explain).map(Some);
    }
    if let Some(found) = find_program("nsys").as_deref().and_then(Nsys::of_program) {
        return Ok(Some(found));
    }
    // Elsewhere than on Debian there is no package that could lie in the cache.
    Ok(place(cache).ok().and_then(|folder| Nsys::in_folder(&folder)))
}

/// Sees to it that an Nsight Systems is there, and gives it.
pub(crate) fn ensure(cache: &Cache) -> Result<Nsys> {
    if let Some(found) = find(cache)? {
        return Ok(found);
    }
    let suite = debian::codename()
        .context("Nsight Systems is not on PATH, and only Debian packages it; install it from NVIDIA")?;
    debian::install(debian::NSYS_LIBRARIES)?;
    let pins: Vec<&str> = PACKAGES.iter().copied().chain([LAYOUT]).collect();
    let folder = cache.item(&format!("nsys-{suite}"), &pins, |folder| {
        say(format_args!(
            "fetching {} from Debian {suite} non-free",
            PACKAGES.join(", ")
        ));
        let unpacked = folder.join("unpacked");
        fs::create_dir_all(&unpacked)?;
        debian::unpack(cache, &suite, "non-free", PACKAGES, &unpacked)?;
        arrange(&unpacked, folder)?;
        remove(&unpacked)
    })?;
    let nsys = Nsys::in_folder(&folder).with_context(|| format!("{} holds no Nsight Systems", folder.display()))?;
    check_libraries(&nsys)?;
    Ok(nsys)
}

/// Debian spreads the two halves; NVIDIA's own layout has them side by side, and they find each other only there.
fn arrange(unpacked: &Path, folder: &Path) -> Result<()> {
    let halves = [
        (
            "usr/lib/x86_64-linux-gnu/nsight-systems/target-linux-x64",
            "target-linux-x64",
        ),
        ("usr/lib/nsight-systems/host-linux-x64", "host-linux-x64"),
    ];
    for (from, to) in halves {
        fs::rename(unpacked.join(from), folder.join(to)).with_context(|| format!("Debian's packages lack {from}"))?;
    }
    // Debian replaced the bundled libssh by a relative link to its own, which does not survive the move.
    let libssh = folder.join("host-linux-x64/libssh.so");
    if libssh.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
        remove(&libssh)?;
        symlink("/usr/lib/x86_64-linux-gnu/libssh.so.4", &libssh)?;
    }
    Ok(())
}

fn check_libraries(nsys: &Nsys) -> Result<()> {
    for program in [
        nsys.program(),
        nsys.host.join("QdstrmImporter"),
        nsys.host.join("libexporter.so"),
    ] {
        if !program.exists() {
            continue;
        }
        let said = Run::new("ldd").arg(&program).output()?;
        let absent = missing_libraries(&said);
        if !absent.is_empty() {
            bail!(
                "{} needs libraries that this machine lacks: {}",
                program.display(),
                absent.join(", ")
            );
        }
    }
    Ok(())
}

fn missing_libraries(ldd: &str) -> Vec<&str> {
    let mut absent: Vec<&str> = ldd
        .lines()
        .filter_map(|line| line.trim().strip_suffix("=> not found").map(str::trim))
        .collect();
    absent.sort_unstable();
    absent.dedup();
    absent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_libraries_are_named_once() {
        let ldd = "\tlibc.so.6 => /lib/libc.so.6 (0x1)\n\tlibssh.so => not found\n\tlibssh.so => not found\n";
        assert_eq!(missing_libraries(ldd), ["libssh.so"]);
    }

    #[test]
    fn the_two_halves_end_up_side_by_side_under_the_names_they_insist_on() {
        let folder = tempfile::tempdir().unwrap();
        let unpacked = folder.path().join("unpacked");
        let target = unpacked.join("usr/lib/x86_64-linux-gnu/nsight-systems/target-linux-x64");
        let host = unpacked.join("usr/lib/nsight-systems/host-linux-x64");
        for (half, file) in [(&target, "nsys"), (&host, "QdstrmImporter")] {
            fs::create_dir_all(half).unwrap();
            fs::write(half.join(file), "").unwrap();
        }
        symlink("../../x86_64-linux-gnu/libssh.so.4", host.join("libssh.so")).unwrap();
        arrange(&unpacked, folder.path()).unwrap();
        let nsys = Nsys::in_folder(folder.path()).unwrap();
        assert_eq!(Nsys::of_program(&nsys.program()), Some(canonical(&nsys)));
        let link = fs::read_link(folder.path().join("host-linux-x64/libssh.so")).unwrap();
        assert_eq!(link, Path::new("/usr/lib/x86_64-linux-gnu/libssh.so.4"));
    }

    fn canonical(nsys: &Nsys) -> Nsys {
        Nsys {
            target: nsys.target.canonicalize().unwrap(),
            host: nsys.host.canonicalize().unwrap(),
        }
    }
}
