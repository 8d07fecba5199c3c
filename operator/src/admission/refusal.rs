//! Why a container is not prepared. The pod is admitted as it was, and says so in an annotation.

use flopwatch_api::preparation::{
    CUDA_BYTES_ANNOTATION, CUDA_INJECTION64_PATH, JAX_DUMPS_ANNOTATION, NCU_OPTIONS_ANNOTATION,
    NSYS_CUDA_GRAPH_ANNOTATION, NSYS_GPU_METRICS_ANNOTATION, NSYS_NVTX_CAPTURE_ANNOTATION, NSYS_TRACE_ANNOTATION,
    PREPARE_LABEL, RECORDER_BYTES_ANNOTATION, RECORDER_KERNELS_PERCENT_ANNOTATION, UnknownWord,
};
use flopwatch_api::profiler::TraceCategory;
use strum::IntoStaticStr;

use crate::admission::entrypoint::LookupError;

/// Why a container is not prepared.
#[derive(Clone, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Refusal {
    /// The label names a profiler that pods are not prepared for.
    UnknownProfiler(UnknownWord),
    /// The container sets a variable itself that preparation would set otherwise.
    VariableKept {
        /// Name of the variable.
        name: &'static str,
        /// The value that preparation would set.
        value: &'static str,
    },
    /// The label names two profilers of CUDA, of which a process takes one.
    TwoProfilers,
    /// The label names Nsight Compute in a pod that no session made: it starts the program itself,
    /// and slows it by far.
    NotASessionsPod,
    /// The label names Nsight Compute, and the cluster has no image of it.
    NoNcuImage,
    /// The annotation with the options of Nsight Compute cannot be read.
    NcuOptions(String),
    /// The pod runs on Windows.
    Windows,
    /// The pod asks for nodes of another architecture than that of the tools.
    Architecture(String),
    /// The pod shares the node's process namespace: a profile would hold the environments of the
    /// node's processes.
    HostPid,
    /// The annotation with the categories names one that does not exist.
    UnknownCategory(String),
    /// The annotation with the graph mode has a value that does not exist.
    UnknownGraphMode(String),
    /// The annotation with the wish for metrics of GPUs is neither `true` nor `false`.
    GpuMetrics(String),
    /// The annotation with the NVTX range to capture is no name of one.
    RangeName(String),
    /// The annotation with the wish for dumps of JAX's compiler is neither `true` nor `false`.
    JaxDumps(String),
    /// The pod's limit of ephemeral storage is too small for dumps of JAX's compiler.
    JaxStorage {
        /// Limit in bytes.
        limit: u128,
        /// Bytes that are needed.
        needed: u128,
    },
    /// The annotation with the size of the flight recorder's file is no quantity within the bounds.
    RecorderBytes(String),
    /// The container's memory limit is too small for the flight recorder's file.
    RecorderMemory {
        /// Limit in bytes.
        limit: u128,
        /// Bytes that are needed.
        needed: u128,
    },
    /// The label names Nsight Systems and the CUDA tracer, and the container has the tools of
    /// Nsight Systems.
    BesideNsys,
    /// The container has CUDA load another profiler, at this path, which has CUPTI all the time.
    OtherProfiler(String),
    /// The pod's runtime class, of this name, is a sandbox with a kernel of its own.
    Sandbox(String),
    /// The annotation with the size of the CUDA tracer's file is no quantity within the bounds.
    CudaBytes(String),
    /// The container's memory limit is too small for the CUDA tracer's file.
    CudaMemory {
        /// Limit in bytes.
        limit: u128,
        /// Bytes that are needed.
        needed: u128,
    },
    /// The annotation with the share of the time in which kernels are recorded is no share.
    KernelsPercent(String),
    /// The pod has a volume or an init container of one of our names that is not ours.
    NameTaken(String),
    /// The annotation names a container that the pod does not have.
    NoSuchContainer {
        /// Containers that it has.
        existing: String,
    },
    /// The annotation names an init container.
    InitContainer,
    /// The container mounts something where the tools go.
    PathTaken(String),
    /// The container has no command of its own, and entrypoints are not looked up.
    NoCommand,
    /// The container has no command of its own, and its image is not pinned: what the node runs may
    /// be another than what the registry shows.
    NotPinned,
    /// The container has no command of its own, and the entrypoint of its image could not be looked
    /// up.
    Lookup(LookupError),
    /// The image has neither entrypoint nor command.
    EmptyEntrypoint,
    /// The pod's limit of ephemeral storage does not hold the tools and a capture.
    EphemeralStorage {
        /// Limit in bytes.
        limit: u128,
        /// Bytes that are needed.
        needed: u128,
    },
    /// The container's memory limit is too small to copy the tools under it.
    Memory {
        /// Limit in bytes.
        limit: u128,
        /// Bytes that are needed.
        needed: u128,
    },
}

impl Refusal {
    /// Label value for metrics.
    pub fn as_str(&self) -> &'static str {
        self.into()
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownProfiler(unknown) => unknown.fmt(f),
            Self::VariableKept { name, value } => {
                write!(f, "the container sets {name} itself, and it is kept: remove it, or set it to {value}")
            }
            Self::TwoProfilers => write!(f, "label {PREPARE_LABEL} names nsys and ncu, and a process takes one of them: leave one out"),
            Self::NotASessionsPod => f.write_str("Nsight Compute starts the program itself, in pods that a session makes: name ncu in a session with spec.target.podTemplate or replicaOf, not in a label"),
            Self::NoNcuImage => f.write_str("the cluster has no image with Nsight Compute: its administrator names one (chart value images.ncu)"),
            Self::NcuOptions(error) => write!(f, "annotation {NCU_OPTIONS_ANNOTATION} cannot be read: {error}"),
            Self::Windows => f.write_str("the pod runs on Windows; Linux pods can be prepared"),
            Self::Architecture(arch) => write!(f, "the pod asks for {arch} nodes; amd64 pods can be prepared"),
            Self::HostPid => f.write_str("the pod has hostPID, so a profile would see every process of the node; remove hostPID"),
            Self::UnknownCategory(name) => {
                let known = TraceCategory::ALL.map(TraceCategory::as_str).join(", ");
                write!(f, "annotation {NSYS_TRACE_ANNOTATION} names {name:?}; there are {known}")
            }
            Self::UnknownGraphMode(value) => {
                write!(f, "annotation {NSYS_CUDA_GRAPH_ANNOTATION} is {value:?}; write graph or node")
            }
            Self::GpuMetrics(value) => {
                write!(f, "annotation {NSYS_GPU_METRICS_ANNOTATION} is {value:?}; write true or false")
            }
            Self::RangeName(value) => {
                write!(f, "annotation {NSYS_NVTX_CAPTURE_ANNOTATION} is {value:?}; write the NVTX range as name, name@domain or name@* with at most 127 printable ASCII characters")
            }
            Self::JaxDumps(value) => write!(f, "annotation {JAX_DUMPS_ANNOTATION} is {value:?}; write true or false"),
            Self::JaxStorage { limit, needed } => {
                write!(f, "the pod's ephemeral-storage limit of {limit} bytes is too small for dumps of JAX's compiler, for which {needed} are asked: raise it, or leave annotation {JAX_DUMPS_ANNOTATION} out")
            }
            Self::RecorderBytes(value) => write!(f, "annotation {RECORDER_BYTES_ANNOTATION} is {value:?}; write a size from 256Ki to 256Mi"),
            Self::RecorderMemory { limit, needed } => {
                write!(f, "the container's memory limit of {limit} bytes is too small for the flight recorder's file, which counts towards it: at least {needed} are asked; raise the limit, or make the file smaller with annotation {RECORDER_BYTES_ANNOTATION}")
            }
            Self::BesideNsys => write!(f, "label {PREPARE_LABEL} names nsys and cuda, and a process takes one profiler of CUDA: Nsight Systems has the container; leave nsys out to have cuda"),
            Self::OtherProfiler(path) => write!(f, "{CUDA_INJECTION64_PATH} of the container names {path}, a profiler that has CUPTI all the time, and a process takes one profiler of CUDA: remove the variable to have cuda"),
            Self::Sandbox(class) => write!(f, "the pod's runtime class is {class}, and the node's agent sees no program that runs behind a kernel of its own: take the node's usual runtime, or one whose name begins with nvidia"),
            Self::CudaBytes(value) => write!(f, "annotation {CUDA_BYTES_ANNOTATION} is {value:?}; write a size from 1Mi to 1Gi"),
            Self::CudaMemory { limit, needed } => {
                write!(f, "the container's memory limit of {limit} bytes is too small for the CUDA tracer's file, which counts towards it: at least {needed} are asked; raise the limit, or make the file smaller with annotation {CUDA_BYTES_ANNOTATION}")
            }
            Self::KernelsPercent(value) => write!(f, "annotation {RECORDER_KERNELS_PERCENT_ANNOTATION} is {value:?}; write a whole number from 1 to 100"),
            Self::NameTaken(name) => write!(f, "the pod already has a volume or an init container named {name}; rename it"),
            Self::NoSuchContainer { existing } => write!(f, "the pod has no such container; it has {existing}"),
            Self::InitContainer => f.write_str("init containers are not prepared"),
            Self::PathTaken(path) => write!(f, "the container mounts a volume at {path}; /flopwatch must be free"),
            Self::NoCommand => f.write_str("the container has no command: write the image's entrypoint as its command, or let admission look entrypoints up (--entrypoint-lookup)"),
            Self::NotPinned => f.write_str("the container has no command, and its image may differ between registry and node: write a command, pin the image by digest, or set imagePullPolicy: Always"),
            Self::Lookup(error) => write!(f, "the container has no command, and its image's entrypoint could not be looked up ({error}): write a command"),
            Self::EmptyEntrypoint => f.write_str("neither the container nor its image says what to run"),
            Self::EphemeralStorage { limit, needed } => {
                write!(f, "the pod's ephemeral-storage limit of {limit} bytes is too small for the tools and a capture, which need {needed} bytes: raise it")
            }
            Self::Memory { limit, needed } => {
                write!(f, "the memory limit of {limit} bytes is too small to copy the tools under, which needs {needed} bytes: raise it")
            }
        }
    }
}
