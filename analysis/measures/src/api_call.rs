//! What calls of the CUDA and HIP runtimes and drivers are for, by their names.

use schemars::JsonSchema;
use serde::Serialize;

/// What a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApiCall {
    /// Launches a kernel or a graph.
    Launch,
    /// Copies.
    Copy,
    /// Sets memory.
    Set,
    /// Waits for work of the GPU.
    Synchronize,
    /// Gives out, takes back, maps or registers memory.
    Allocate,
    /// Loads code for the GPU.
    Module,
    /// Anything else: attributes, events, streams.
    Other,
}

/// Words that a call's name begins with, behind `cuda`, `cu` or `hip`; the first that fits decides.
pub const BEGINNINGS: &[(&str, ApiCall)] = &[
    ("Launch", ApiCall::Launch),
    ("GraphLaunch", ApiCall::Launch),
    ("ModuleLaunch", ApiCall::Launch),
    ("ExtLaunch", ApiCall::Launch),
    ("ExtModuleLaunch", ApiCall::Launch),
    ("Memcpy", ApiCall::Copy),
    ("Memset", ApiCall::Set),
    ("Malloc", ApiCall::Allocate),
    ("Free", ApiCall::Allocate),
    ("HostAlloc", ApiCall::Allocate),
    ("HostFree", ApiCall::Allocate),
    ("HostMalloc", ApiCall::Allocate),
    ("HostRegister", ApiCall::Allocate),
    ("HostUnregister", ApiCall::Allocate),
    ("MemAlloc", ApiCall::Allocate),
    ("MemFree", ApiCall::Allocate),
    ("MemHost", ApiCall::Allocate),
    ("MemCreate", ApiCall::Allocate),
    ("MemRelease", ApiCall::Allocate),
    ("MemMap", ApiCall::Allocate),
    ("MemUnmap", ApiCall::Allocate),
    ("MemSetAccess", ApiCall::Allocate),
    ("MemAddress", ApiCall::Allocate),
    ("MemPool", ApiCall::Allocate),
    ("ModuleLoad", ApiCall::Module),
    ("ModuleUnload", ApiCall::Module),
    ("LibraryLoad", ApiCall::Module),
    ("LibraryUnload", ApiCall::Module),
    ("Link", ApiCall::Module),
];

impl ApiCall {
    /// What the call of that name is for.
    pub fn of(name: &str) -> Self {
        let bare = ["cuda", "cu", "hip"]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix));
        let bare = bare.unwrap_or(name);
        let begins = BEGINNINGS.iter().find(|(word, _)| bare.starts_with(word));
        match begins {
            Some((_, call)) => *call,
            None if bare.contains("Synchronize") => Self::Synchronize,
            None => Self::Other,
        }
    }

    /// Whether the host may wait in such a call for work of the GPU that was launched before: in
    /// synchronisation, and in copies, which wait where they are not asynchronous or the host's
    /// memory is pageable.
    pub const fn may_wait(self) -> bool {
        matches!(self, Self::Synchronize | Self::Copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_known_by_their_names() {
        let cases = [
            ("cudaLaunchKernel_v7000", ApiCall::Launch),
            ("cuLaunchKernelEx", ApiCall::Launch),
            ("cudaGraphLaunch_v10000", ApiCall::Launch),
            ("hipExtModuleLaunchKernel", ApiCall::Launch),
            ("cudaMemcpyAsync_v3020", ApiCall::Copy),
            ("cuMemcpyHtoDAsync_v2", ApiCall::Copy),
            ("cudaMemsetAsync", ApiCall::Set),
            ("cudaStreamSynchronize_v3020", ApiCall::Synchronize),
            ("cuCtxSynchronize", ApiCall::Synchronize),
            ("cudaMalloc_v3020", ApiCall::Allocate),
            ("cuMemAlloc_v2", ApiCall::Allocate),
            ("cudaHostAlloc", ApiCall::Allocate),
            ("cuMemPoolCreate", ApiCall::Allocate),
            ("cuModuleLoadData", ApiCall::Module),
            ("cuLibraryLoadData", ApiCall::Module),
            ("cudaStreamWaitEvent", ApiCall::Other),
            ("cudaEventRecord", ApiCall::Other),
            ("", ApiCall::Other),
        ];
        for (name, expected) in cases {
            assert_eq!(ApiCall::of(name), expected, "{name}");
        }
    }
}
