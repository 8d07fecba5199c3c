//! Which files of Nsight Systems' target folder a container needs for what it traces: a third of
//! them.
//!
//! What is left out is named, so that files that another version adds come along. The tools were
//! tried without them: a category whose library is missing is not traced, and the program runs as
//! it would.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::Path;

/// Which NVIDIA driver the node has, as the kernel tells every container.
const DRIVER: &str = "/proc/driver/nvidia/version";
/// Most bytes of it that are read.
const DRIVER_BYTES: u64 = 4096;

/// What can be asked for beside the categories that need no file of their own.
const PARTS: [(&str, &[&str]); 5] = [
    ("cublas", &["libToolsInjectionCuBLAS"]),
    ("cuda", &[CUPTI, "CudaGpuInfoDumper"]),
    ("cudnn", &["libToolsInjectionCuDNN"]),
    ("gpu-metrics", &["GpuMetrics.config", "libnvperf_host.so", "nvgpucs"]),
    ("mpi", &["libToolsInjectionMPICH", "libToolsInjectionOpenMPI"]),
];
/// What is asked for and needs no file of its own.
const PLAIN: [&str; 2] = ["nvtx", "osrt"];
/// How the names begin of what no session asks for: libraries of other categories, counters of
/// network cards, headers, reports.
const NEVER: [&str; 11] = [
    "CollectX",
    "NvTraceFormat",
    "libLinuxKeyboard",
    "libToolsInjectionOpenSHMEM",
    "libToolsInjectionUCP",
    "nvtx",
    "python",
    "reports",
    "rules",
    "sqlite3",
    "vulkan-layers",
];
/// There is one for every version of CUDA.
const CUPTI: &str = "libcupti.so.";
/// How the name of a CUPTI's license ends, which begins with the CUPTI's own.
const LICENSE: &str = ".license.txt";

/// A version of CUDA: major, minor.
pub type Cuda = (u32, u32);

/// The newest CUDA that each branch of the driver serves, by the first branch that serves it.
///
/// Source: CUDA's release notes, "CUDA Toolkit and Minimum Required Driver Version".
const BRANCHES: [(u32, Cuda); 22] = [
    (410, (10, 0)),
    (418, (10, 1)),
    (440, (10, 2)),
    (450, (11, 0)),
    (455, (11, 1)),
    (460, (11, 2)),
    (465, (11, 3)),
    (470, (11, 4)),
    (495, (11, 5)),
    (510, (11, 6)),
    (515, (11, 7)),
    (520, (11, 8)),
    (525, (12, 0)),
    (530, (12, 1)),
    (535, (12, 2)),
    (545, (12, 3)),
    (550, (12, 4)),
    (555, (12, 5)),
    (560, (12, 6)),
    (570, (12, 8)),
    (575, (12, 9)),
    (580, (13, 0)),
];

/// What is known of the node's driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// There is none.
    Absent,
    /// It serves programs of this CUDA and of earlier ones. A container may bring a later one
    /// (`cuda-compat`), never an earlier.
    Serves(Cuda),
    /// There is one, and it says nothing that is understood.
    Unknown,
}

impl Driver {
    /// The driver of this node, by the text of `/proc/driver/nvidia/version`.
    pub fn of_node() -> Self {
        let read = fs::File::open(DRIVER).and_then(|file| {
            let mut text = String::new();
            io::Read::read_to_string(&mut io::Read::take(file, DRIVER_BYTES), &mut text)?;
            Ok(text)
        });
        match read {
            Ok(text) => Self::of_text(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::Absent,
            Err(_) => Self::Unknown,
        }
    }

    /// The driver that the kernel module's text names, such as
    /// `NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu ...`.
    fn of_text(text: &str) -> Self {
        let line = text.lines().find(|line| line.starts_with("NVRM version:"));
        let branch = line.into_iter().flat_map(str::split_whitespace).find_map(|word| {
            let (branch, rest) = word.split_once('.')?;
            let plain = rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            branch.parse::<u32>().ok().filter(|_| plain)
        });
        let served = branch.and_then(|branch| BRANCHES.iter().rev().find(|(first, _)| *first <= branch));
        served.map_or(Self::Unknown, |(_, cuda)| Self::Serves(*cuda))
    }
}

/// The CUDA with whose drivers CUPTIs of earlier major versions do not hold: with that of 13.0
/// those of 11.8 and 12.4 lost kernels, made captures that their own importer refuses, and stopped
/// programs (`docs/gpu-results.md`).
const STRICT: Cuda = (13, 0);

/// A CUPTI that is too old for the node's driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outdated {
    /// The newest that the tools have.
    pub cupti: Cuda,
    /// What the driver serves.
    pub driver: Cuda,
}

impl Outdated {
    /// Whether tools whose target folder has files of these names are too old for that driver.
    pub fn among<N: AsRef<OsStr>>(names: &[N], driver: Driver) -> Option<Self> {
        let cupti = names.iter().filter_map(|name| cupti(&text(name))).max()?;
        match driver {
            Driver::Serves(driver) if driver >= STRICT && cupti.0 < driver.0 => Some(Self { cupti, driver }),
            _ => None,
        }
    }
}

/// What a container needs of the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needed {
    /// None: everything.
    parts: Option<Vec<String>>,
    driver: Driver,
}

impl Needed {
    /// The whole folder.
    pub const fn everything() -> Self {
        Self {
            parts: None,
            driver: Driver::Unknown,
        }
    }

    /// What the named parts need, of categories of `nsys --trace` and `gpu-metrics`, separated by
    /// commas. Where one is not known, everything: whoever asks may be of a later version than
    /// this.
    pub fn of(parts: &str, driver: Driver) -> Self {
        let parts: Vec<String> = parts.split(',').map(|part| part.trim().to_owned()).collect();
        let known = |part: &String| {
            let mut names = PARTS.iter().map(|(name, _)| *name).chain(PLAIN);
            names.any(|name| name == part)
        };
        Self {
            parts: parts.iter().all(known).then_some(parts),
            driver,
        }
    }

    /// The names in a folder that are needed.
    pub fn among<'a, N: AsRef<OsStr>>(&self, names: &'a [N]) -> Vec<&'a N> {
        let Some(parts) = &self.parts else {
            return names.iter().collect();
        };
        let newest = names.iter().filter_map(|name| cupti(&text(name))).max();
        let is_needed = |name: &&N| {
            let name = text(name);
            let begins = |beginnings: &[&str]| beginnings.iter().any(|begin| name.starts_with(begin));
            let mut of_parts = PARTS.iter().filter(|(_, files)| begins(files)).peekable();
            if of_parts.peek().is_none() {
                return !begins(&NEVER);
            }
            of_parts.any(|(part, _)| parts.iter().any(|asked| asked == part)) && self.may_load(cupti(&name), newest)
        };
        names.iter().filter(is_needed).collect()
    }

    /// Whether the injection may load a CUPTI of that version. It takes that of the driver's CUDA,
    /// else the next later one, else the newest: tried with a driver of ours that says one version
    /// after the other, with 2022.4 and 2023.4.
    fn may_load(&self, version: Option<Cuda>, newest: Option<Cuda>) -> bool {
        match (version, self.driver) {
            (None, _) | (_, Driver::Unknown) => true,
            (version, Driver::Absent) => version == newest,
            (version, Driver::Serves(cuda)) => version == newest || version >= Some(cuda),
        }
    }
}

/// The version in the name of a CUPTI, or of its license. One that is named by its major version
/// alone is the newest of that.
fn cupti(name: &str) -> Option<Cuda> {
    let version = name.strip_prefix(CUPTI)?;
    let version = version.strip_suffix(LICENSE).unwrap_or(version);
    match version.split_once('.') {
        Some((major, minor)) => Some((major.parse().ok()?, minor.parse().ok()?)),
        None => Some((version.parse().ok()?, u32::MAX)),
    }
}

fn text<N: AsRef<OsStr>>(name: &N) -> Cow<'_, str> {
    name.as_ref().to_string_lossy()
}

/// Names in a folder, in their order.
pub fn names(folder: &Path) -> io::Result<Vec<OsString>> {
    let entries = fs::read_dir(folder)?;
    let mut names = entries
        .map(|entry| Ok(entry?.file_name()))
        .collect::<io::Result<Vec<OsString>>>()?;
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As 2022.4 has them.
    fn folder() -> Vec<String> {
        let names = "CollectX CudaGpuInfoDumper GpuMetrics.config NvTraceFormat launcher libLauncher64.so \
                     libLinuxKeyboardInterceptorProxy.so libToolsInjection64.so libToolsInjectionCuBLAS64_10.so \
                     libToolsInjectionCuDNN64_8.so libToolsInjectionMPICH64.so libToolsInjectionMemoryAllocator.so \
                     libToolsInjectionOpenMPI64.so libToolsInjectionOpenSHMEM64.so libToolsInjectionProxy64.so \
                     libToolsInjectionUCP64.so libcupti.so.10.2 libcupti.so.11.2 libcupti.so.11.4 libcupti.so.11.8 \
                     libnvlog.so libnvperf_host.so nsys nsys-launcher nvgpucs nvlog.config.template nvtx python reports rules \
                     sqlite3 vulkan-layers";
        names.split_whitespace().map(str::to_owned).collect()
    }

    fn left_out(parts: &str, driver: Driver) -> String {
        let names = folder();
        let needed = Needed::of(parts, driver);
        let kept = needed.among(&names);
        let left = names.iter().filter(|name| !kept.contains(name));
        left.map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_cupti_of_an_earlier_major_version_is_too_old_for_drivers_of_cuda_13() {
        let names = ["nsys", "libcupti.so.11.8", "libcupti.so.12.4"];
        let found = |cuda| Outdated::among(&names, Driver::Serves(cuda));
        let (cupti, driver) = ((12, 4), (13, 0));
        assert_eq!(found((13, 0)), Some(Outdated { cupti, driver }));
        assert_eq!([found((12, 9)), found((12, 0))], [None, None]);
        assert_eq!(Outdated::among(&["libcupti.so.13.0"], Driver::Serves((13, 0))), None);
        assert_eq!(Outdated::among(&names, Driver::Absent), None);
        assert_eq!(Outdated::among(&["nsys"], Driver::Serves((13, 0))), None);
    }

    #[test]
    fn what_a_category_needs_comes_along_and_nothing_of_the_others() {
        let never = "CollectX NvTraceFormat libLinuxKeyboardInterceptorProxy.so libToolsInjectionOpenSHMEM64.so libToolsInjectionUCP64.so";
        let never: Vec<&str> = never
            .split(' ')
            .chain("nvtx python reports rules sqlite3 vulkan-layers".split(' '))
            .collect();
        let with = |others: &str| {
            let mut all: Vec<&str> = never.iter().copied().chain(others.split_whitespace()).collect();
            all.sort_unstable();
            all.join(" ")
        };
        let calls = "libToolsInjectionCuBLAS64_10.so libToolsInjectionCuDNN64_8.so";
        let mpi = "libToolsInjectionMPICH64.so libToolsInjectionOpenMPI64.so";
        let counters = "GpuMetrics.config libnvperf_host.so nvgpucs";
        let old = "libcupti.so.10.2 libcupti.so.11.2 libcupti.so.11.4";
        assert_eq!(
            left_out("cuda,nvtx", Driver::Serves((12, 2))),
            with(&format!("{calls} {mpi} {counters} {old}"))
        );
        assert_eq!(
            left_out("nvtx,osrt", Driver::Unknown),
            with(&format!(
                "CudaGpuInfoDumper {calls} {mpi} {counters} {old} libcupti.so.11.8"
            ))
        );
        assert_eq!(
            left_out("cuda, cublas,cudnn,mpi,gpu-metrics", Driver::Unknown),
            with("")
        );
    }

    #[test]
    fn the_libraries_that_a_driver_may_be_traced_by_come_along() {
        let kept = |driver| {
            let names = folder();
            let needed = Needed::of("cuda", driver);
            let kept = needed.among(&names);
            let cupti = kept.into_iter().filter_map(|name| name.strip_prefix(CUPTI));
            cupti.map(str::to_owned).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(kept(Driver::Absent), "11.8");
        assert_eq!(kept(Driver::Serves((11, 3))), "11.4 11.8");
        assert_eq!(kept(Driver::Serves((11, 4))), "11.4 11.8");
        assert_eq!(kept(Driver::Serves((12, 8))), "11.8");
        assert_eq!(kept(Driver::Unknown), "10.2 11.2 11.4 11.8");
    }

    #[test]
    fn everything_comes_along_where_something_unknown_is_asked_for() {
        assert_eq!(left_out("cuda,vulkan", Driver::Absent), "");
        assert_eq!(left_out("", Driver::Absent), "");
        let names = folder();
        assert_eq!(Needed::everything().among(&names).len(), names.len());
    }

    #[test]
    fn the_driver_is_read_from_what_either_kernel_module_says() {
        let module =
            |what: &str| format!("NVRM version: NVIDIA UNIX {what}  Release Build\nGCC version:  gcc version 12.2.0\n");
        let cases = [
            (module("x86_64 Kernel Module  535.129.03"), Driver::Serves((12, 2))),
            (
                module("Open Kernel Module for x86_64  580.65.06"),
                Driver::Serves((13, 0)),
            ),
            (module("x86_64 Kernel Module  470.256.02"), Driver::Serves((11, 4))),
            (module("x86_64 Kernel Module  390.157"), Driver::Unknown),
            (module("x86_64 Kernel Module"), Driver::Unknown),
            ("GCC version: 12.2.0".to_owned(), Driver::Unknown),
            (String::new(), Driver::Unknown),
        ];
        for (text, driver) in cases {
            assert_eq!(Driver::of_text(&text), driver, "{text}");
        }
    }
}
