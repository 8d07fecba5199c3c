//! Nsight Systems: the one on the machine, or Debian's (component non-free) in the cache folder.

use crate::cache::{Cache, remove};
use crate::command::{Run, find_program};
use crate::debian::{self, Pinned};
use crate::progress::say;
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The component of Debian that they are in.
const COMPONENT: &str = "non-free";
/// The layout that is made of the packages.
const LAYOUT: &str = "2";
/// Makes a report of a raw capture.
const IMPORTER: &str = "QdstrmImporter";

/// What a release of Debian has of it.
#[derive(Debug)]
pub struct Release {
    suite: &'static str,
    /// Importer and exporter, and what runs beside the workload.
    pub packages: [Pinned; 2],
}

const fn release(suite: &'static str, version: &'static str, host: &'static str, target: &'static str) -> Release {
    Release {
        suite,
        packages: [
            Pinned {
                name: "nsight-systems",
                version,
                sha256: host,
            },
            Pinned {
                name: "nsight-systems-target",
                version,
                sha256: target,
            },
        ],
    }
}

/// The release 2022.4, of Debian 12.
pub const BOOKWORM: Release = release(
    "bookworm",
    "2022.4.2.1~11.8.0-5~deb12u1",
    "3bfcdf9119a3aab3dadd6aa9faedb5407b71f6afaa678e98b54ab97d87627c2e",
    "420ab94d22cb8e30feaf88f0acb7735500ffd564e5a2027f09e87438ac11615e",
);

/// 2023.4; it runs on Debian 12 too.
const TRIXIE: Release = release(
    "trixie",
    "2023.4.4.54~12.4.1-2",
    "182afe148c6812f5db98e6f58c5cdcc5af4ba1a54be3c0a097f6227de042b485",
    "adc9a357a0d9a81617753925a856e8e9957af10c9addae1068c3ef9be1d2a766",
);

impl Release {
    /// That of this Debian.
    fn own() -> Result<&'static Self> {
        let suite = debian::codename()?;
        [&BOOKWORM, &TRIXIE]
            .into_iter()
            .find(|release| release.suite == suite)
            .with_context(|| format!("no version of it is pinned for Debian {suite}"))
    }

    fn pins(&self) -> Vec<&'static str> {
        let packages = self.packages.iter();
        packages.map(|package| package.sha256).chain([LAYOUT]).collect()
    }

    fn place(&self, cache: &Cache, name: &str) -> PathBuf {
        cache.place(name, &self.pins())
    }

    /// The installation in the cache, fetched when it is not there.
    fn fetched(&self, cache: &Cache, name: &str) -> Result<Nsys> {
        debian::install(debian::NSYS_LIBRARIES)?;
        let folder = cache.item(name, &self.pins(), |folder| {
            let names = self
                .packages
                .map(|package| format!("{} {}", package.name, package.version));
            say(format_args!(
                "fetching {} from Debian {} {COMPONENT}",
                names.join(", "),
                self.suite
            ));
            let unpacked = folder.join("unpacked");
            fs::create_dir_all(&unpacked)?;
            debian::unpack(cache, self.suite, COMPONENT, &self.packages, &unpacked)?;
            arrange(&unpacked, folder)?;
            remove(&unpacked)
        })?;
        let nsys = Nsys::in_folder(&folder).with_context(|| format!("{} holds no Nsight Systems", folder.display()))?;
        check_libraries(&nsys)?;
        Ok(nsys)
    }
}

/// The two halves of one version of Nsight Systems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nsys {
    /// `target-linux-x64`: what runs beside the workload; holds the program `nsys`.
    pub target: PathBuf,
    /// `host-linux-x64`: importer and exporter.
    pub host: PathBuf,
}

impl Nsys {
    /// The program itself.
    pub fn program(&self) -> PathBuf {
        self.target.join("nsys")
    }

    /// How the agent and the tests are told where it is.
    pub fn environment(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("FLOPWATCH_NSYS".to_owned(), self.program().display().to_string()),
            ("FLOPWATCH_NSYS_HOST".to_owned(), self.host.display().to_string()),
        ])
    }

    /// What importing needs of the host half, which is the smaller part of it: the most is a
    /// desktop program's.
    pub fn host_parts(&self) -> Result<HostParts> {
        let host = self.host.canonicalize().context("the host half of Nsight Systems")?;
        let mut parts = HostParts::default();
        let importer = self.host.join(IMPORTER);
        let message = Run::new("ldd").arg(&importer).output()?;
        parts.own.insert(IMPORTER.to_owned(), importer);
        for (name, path) in linked(&message) {
            let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
            if folder.as_ref() != Some(&host) {
                parts.libraries.insert(name, path);
                continue;
            }
            // A link to another file of the folder would lead nowhere without that.
            let real = path.canonicalize().ok().filter(|real| real.starts_with(&host));
            parts.own.insert(name, real.unwrap_or(path));
        }
        Ok(parts)
    }

    fn complete(self) -> Option<Self> {
        (self.program().is_file() && self.host.join(IMPORTER).is_file()).then_some(self)
    }

    fn in_folder(folder: &Path) -> Option<Self> {
        Self {
            target: folder.join("target-linux-x64"),
            host: folder.join("host-linux-x64"),
        }
        .complete()
    }

    /// The installation that a program `nsys` on PATH belongs to: Debian's and NVIDIA's own
    /// layouts.
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

/// The importer and the libraries that it is linked with, by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostParts {
    /// Files of the host half.
    pub own: BTreeMap<String, PathBuf>,
    /// Libraries of the machine.
    pub libraries: BTreeMap<String, PathBuf>,
}

/// Names and places of libraries in what ldd says.
fn linked(ldd: &str) -> BTreeMap<String, PathBuf> {
    let found = ldd.lines().filter_map(|line| {
        let (name, rest) = line.trim().split_once(" => ")?;
        let (path, _) = rest.rsplit_once(" (0x")?;
        Some((name.to_owned(), PathBuf::from(path)))
    });
    found.collect()
}

/// The name of this Debian's in the cache.
fn name(release: &Release) -> String {
    format!("nsys-{}", release.suite)
}

/// The name in the cache of the one that opens newer reports.
const NEWER: &str = "nsys-newer";
/// How tests are told of it.
const NEWER_PROGRAM: &str = "FLOPWATCH_NSYS_NEWER";

/// The Nsight Systems that is there already: `FLOPWATCH_NSYS` and `FLOPWATCH_NSYS_HOST`, PATH, the
/// cache.
pub fn find(cache: &Cache) -> Result<Option<Nsys>> {
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
    let own = Release::own().ok();
    Ok(own.and_then(|release| Nsys::in_folder(&release.place(cache, &name(release)))))
}

/// Sees to it that an Nsight Systems is there, and gives it.
pub fn ensure(cache: &Cache) -> Result<Nsys> {
    if let Some(found) = find(cache)? {
        return Ok(found);
    }
    let release = Release::own().context("Nsight Systems is not on PATH; install it from NVIDIA")?;
    release.fetched(cache, &name(release))
}

/// Sees to it that there is an Nsight Systems of 2023: it opens reports that one of 2022 cannot,
/// and brings the headers of NVTX that the recorder is held against.
pub fn ensure_newer(cache: &Cache) -> Result<()> {
    let own = ensure(cache)?;
    let message = Run::new(own.program()).arg("--version").output()?;
    if year(&message).is_some_and(|year| year >= 2023) {
        return Ok(());
    }
    TRIXIE.fetched(cache, NEWER).map(drop)
}

/// How tests are told where the newer one is, where it was fetched.
pub(crate) fn newer_environment(cache: &Cache) -> Option<(String, String)> {
    let newer = Nsys::in_folder(&TRIXIE.place(cache, NEWER))?;
    Some((NEWER_PROGRAM.to_owned(), newer.program().display().to_string()))
}

/// `NVIDIA Nsight Systems version 2022.4.2.1-df9881f`
fn year(message: &str) -> Option<u32> {
    message.split_once("version ")?.1.split('.').next()?.parse().ok()
}

/// Debian spreads the two halves; NVIDIA's own layout has them side by side, and they find each
/// other only there.
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
    // Debian replaced the bundled libssh by a relative link to its own, which does not survive the
    // move.
    let libssh = folder.join("host-linux-x64/libssh.so");
    if libssh.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
        remove(&libssh)?;
        symlink("/usr/lib/x86_64-linux-gnu/libssh.so.4", &libssh)?;
    }
    link_modules(folder)
}

/// `nsys stats` of 2023 looks for the modules of its reports beside the importer, where Debian took
/// them away.
fn link_modules(folder: &Path) -> Result<()> {
    let modules = "python/lib";
    let (there, here) = (
        folder.join("target-linux-x64").join(modules),
        folder.join("host-linux-x64").join(modules),
    );
    if !here.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(&there).with_context(|| format!("cannot read {}", there.display()))? {
        let name = entry?.file_name();
        if !here.join(&name).exists() {
            symlink(
                Path::new("../../../target-linux-x64").join(modules).join(&name),
                here.join(&name),
            )?;
        }
    }
    Ok(())
}

fn check_libraries(nsys: &Nsys) -> Result<()> {
    for program in [
        nsys.program(),
        nsys.host.join(IMPORTER),
        nsys.host.join("libexporter.so"),
    ] {
        if !program.exists() {
            continue;
        }
        // A library of the importer's need not say where the others are: the program that loads it
        // does.
        let message = Run::new("ldd")
            .arg(&program)
            .env("LD_LIBRARY_PATH", &nsys.host)
            .output()?;
        let absent = missing_libraries(&message);
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
    fn libraries_are_read_from_what_ldd_says() {
        let message = "\tlinux-vdso.so.1 (0x1)\n\tlibssh.so => /opt/a b/libssh.so (0x2)\n\tlibx.so => not found\n";
        let found: Vec<_> = linked(message).into_iter().collect();
        assert_eq!(found, [("libssh.so".to_owned(), PathBuf::from("/opt/a b/libssh.so"))]);
    }

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
        for (half, file) in [(&target, "nsys"), (&host, IMPORTER)] {
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

    #[test]
    fn modules_that_are_beside_the_program_alone_are_found_beside_the_importer() {
        let folder = tempfile::tempdir().unwrap();
        let modules = |half: &str| folder.path().join(half).join("python/lib");
        for (half, file, text) in [
            ("target-linux-x64", "nsysstats.py", "stats"),
            ("target-linux-x64", "kernel_helper.py", "theirs"),
            ("host-linux-x64", "kernel_helper.py", "ours"),
        ] {
            fs::create_dir_all(modules(half)).unwrap();
            fs::write(modules(half).join(file), text).unwrap();
        }
        link_modules(folder.path()).unwrap();
        let read = |file: &str| fs::read_to_string(modules("host-linux-x64").join(file)).unwrap();
        assert_eq!(
            (read("nsysstats.py"), read("kernel_helper.py")),
            ("stats".to_owned(), "ours".to_owned())
        );
    }

    #[test]
    fn the_year_is_read_from_what_nsys_says() {
        assert_eq!(year("NVIDIA Nsight Systems version 2022.4.2.1-df9881f\n"), Some(2022));
        assert_eq!(
            year("NVIDIA Nsight Systems version 2023.4.4.54-234433681190v0\n"),
            Some(2023)
        );
        assert_eq!(year("nonsense"), None);
    }

    #[test]
    fn every_package_of_nsight_systems_is_pinned_by_version_and_sum() {
        for release in [&BOOKWORM, &TRIXIE] {
            let [host, target] = &release.packages;
            assert_eq!(host.version, target.version, "the halves belong together");
            for package in &release.packages {
                assert!(package.version.starts_with("202"), "{package:?}");
                let hex = package.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
                assert!(package.sha256.len() == 64 && hex, "{package:?}");
            }
        }
        assert_ne!(BOOKWORM.pins(), TRIXIE.pins());
    }

    fn canonical(nsys: &Nsys) -> Nsys {
        Nsys {
            target: nsys.target.canonicalize().unwrap(),
            host: nsys.host.canonicalize().unwrap(),
        }
    }
}
