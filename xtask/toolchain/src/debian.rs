//! Debian packages: installed from the machine's own sources, or only fetched from a private list
//! of sources.

use crate::cache::{Cache, file_hash, remove};
use crate::command::{Run, find_program};
use crate::progress::say;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// What building the workspace needs.
pub const BUILD: &[&str] = &[
    "build-essential",
    "ca-certificates",
    "cmake",
    "git",
    "pkg-config",
    "python3",
    "python3-venv",
];

/// What the importer and exporter of Nsight Systems load and a plain Debian may lack.
pub const NSYS_LIBRARIES: &[&str] = &["libpfm4", "libssh-4", "libstdc++6", "zlib1g"];

/// What the local cluster takes from Debian.
pub const CLUSTER: &[&str] = &[
    "ca-certificates",
    "conntrack",
    "containernetworking-plugins",
    "etcd-server",
    "iproute2",
    "iptables",
    "mmdebstrap",
    "openssl",
    "procps",
    "runc",
    "util-linux",
];

/// What the tests of the crates start: an init for containers, a compiler for musl, and promtool
/// (of Prometheus, which the tests in the cluster start, and Alertmanager).
pub const CRATE_TESTS: &[&str] = &[
    "hdf5-tools",
    "musl-tools",
    "prometheus",
    "prometheus-alertmanager",
    "tini",
];

/// What the viewer's tests open it in, and the font that their pictures were taken with.
pub const BROWSER: &[&str] = &["chromium", "fonts-dejavu-core"];

/// Installs those of the packages that are absent.
pub fn install(packages: &[&str]) -> Result<()> {
    if find_program("dpkg-query").is_none() || find_program("apt-get").is_none() {
        bail!(
            "this recipe installs packages with apt-get: run it on Debian or a derivative, or install by hand: {}",
            packages.join(" ")
        );
    }
    let missing = missing(packages);
    if missing.is_empty() {
        return Ok(());
    }
    if !nix::unistd::geteuid().is_root() {
        bail!(
            "these packages are missing; install them as root: apt-get install {}",
            missing.join(" ")
        );
    }
    say(format_args!("installing {}", missing.join(" ")));
    let attempt = || {
        apt_get()
            .args(["install", "-y", "--no-install-recommends"])
            .args(&missing)
            .quiet()
    };
    // The lists may be absent or old; updating them first costs more than the install.
    if attempt().is_err() {
        apt_get()
            .arg("update")
            .quiet()
            .context("cannot update the package lists")?;
        attempt().with_context(|| format!("cannot install {}", missing.join(" ")))?;
    }
    Ok(())
}

fn apt_get() -> Run {
    Run::new("apt-get")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(["-q", "-o", "DPkg::Lock::Timeout=300"])
}

fn missing<'a>(packages: &[&'a str]) -> Vec<&'a str> {
    packages.iter().copied().filter(|package| !installed(package)).collect()
}

fn installed(package: &str) -> bool {
    let state = Run::new("dpkg-query").args(["-W", "-f", "${Status}", package]).output();
    state.is_ok_and(|state| state == "install ok installed")
}

/// The release name of this Debian (`bookworm`), or an error that says what it is instead.
pub fn codename() -> Result<String> {
    let text = fs::read_to_string("/etc/os-release").context("cannot tell the distribution")?;
    parse_codename(&text).context("/etc/os-release names no Debian release (ID=debian, VERSION_CODENAME)")
}

fn parse_codename(os_release: &str) -> Option<String> {
    let field = |name: &str| {
        let line = os_release
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
        Some(line.trim_matches('"').to_owned())
    };
    (field("ID")? == "debian").then(|| field("VERSION_CODENAME"))?
}

/// One version of a package, and the SHA-256 of its file: whatever the archive's lists say, no
/// other is unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pinned {
    /// The package's name.
    pub name: &'static str,
    /// The whole version, revision and epoch included.
    pub version: &'static str,
    /// SHA-256 of the `.deb`, as hex.
    pub sha256: &'static str,
}

/// Fetches packages of one suite and component without touching the machine's own sources, and
/// unpacks them into `into`.
pub fn unpack(cache: &Cache, suite: &str, component: &str, packages: &[Pinned], into: &Path) -> Result<()> {
    let apt = cache.root().join(format!("apt-{suite}-{component}"));
    let downloads = apt.join("downloads");
    // What an attempt that was cut off left is not taken for what is fetched now.
    remove(&downloads)?;
    for folder in ["lists/partial", "archives/partial", "downloads"] {
        fs::create_dir_all(apt.join(folder))?;
    }
    let sources = apt.join("flopwatch.sources");
    let text = format!(
        "Types: deb\nURIs: http://deb.debian.org/debian\nSuites: {suite}\nComponents: {component}\n\
         Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    );
    fs::write(&sources, text)?;
    let private = || {
        let option = |name: &str, path: &Path| format!("{name}={}", path.display());
        apt_get().args([
            "-o".to_owned(),
            option("Dir::Etc::SourceList", &sources),
            "-o".to_owned(),
            "Dir::Etc::SourceParts=/dev/null".to_owned(),
            "-o".to_owned(),
            option("Dir::State::Lists", &apt.join("lists")),
            "-o".to_owned(),
            option("Dir::Cache", &apt),
            // apt's own user cannot read a folder below a home; the download needs no separate
            // user.
            "-o".to_owned(),
            "APT::Sandbox::User=root".to_owned(),
        ])
    };
    private()
        .arg("update")
        .quiet()
        .with_context(|| format!("cannot read the package lists of {suite} {component}"))?;
    for package in packages {
        let wanted = format!("{}={}", package.name, package.version);
        private()
            .arg("download")
            .arg(&wanted)
            .dir(&downloads)
            .quiet()
            .with_context(|| {
                format!("Debian {suite} {component} gives no {wanted}: pin the version that it has, and its sum")
            })?;
    }
    for package in packages {
        let file = one_file(&downloads, package.name)?;
        check_sum(package, &file_hash(&file)?)?;
        Run::new("dpkg-deb").arg("-x").arg(&file).arg(into).quiet()?;
    }
    fs::remove_dir_all(&apt).with_context(|| format!("cannot remove {}", apt.display()))
}

/// The file that was fetched for a package: `name_version_architecture.deb`.
fn one_file(folder: &Path, name: &str) -> Result<PathBuf> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let file = entry.file_name();
        if file
            .to_str()
            .and_then(|file| file.split_once('_'))
            .is_some_and(|(of, _)| of == name)
        {
            return Ok(entry.path());
        }
    }
    bail!("apt-get fetched no file of {name}")
}

fn check_sum(package: &Pinned, found: &str) -> Result<()> {
    if found == package.sha256 {
        return Ok(());
    }
    bail!(
        "the file of {} {} has the SHA-256 {found} and not {}: nothing of it was unpacked",
        package.name,
        package.version,
        package.sha256
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_with_another_sum_is_not_unpacked() {
        let package = Pinned {
            name: "nsight-systems",
            version: "1",
            sha256: "00ff",
        };
        assert!(check_sum(&package, "00ff").is_ok());
        let error = check_sum(&package, "00fe").unwrap_err().to_string();
        assert!(error.contains("nsight-systems 1") && error.contains("00fe"), "{error}");
    }

    #[test]
    fn the_file_of_a_package_is_not_that_of_one_whose_name_begins_alike() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["nsight-systems-target_2_amd64.deb", "nsight-systems_1_amd64.deb"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = one_file(folder.path(), "nsight-systems").unwrap();
        assert!(found.ends_with("nsight-systems_1_amd64.deb"), "{}", found.display());
        assert!(one_file(folder.path(), "nsight").is_err());
    }

    #[test]
    fn only_a_debian_has_a_debian_release() {
        let cases = [
            ("ID=debian\nVERSION_CODENAME=bookworm\n", Some("bookworm")),
            ("VERSION_CODENAME=\"trixie\"\nID=\"debian\"\n", Some("trixie")),
            ("ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=jammy\n", None),
            ("ID=debian\n", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_codename(text).as_deref(), expected, "{text}");
        }
    }
}
