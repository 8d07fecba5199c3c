//! How admission, launcher and agent understand each other about a prepared pod.
//!
//! A pod opts in with the label [`PREPARE_LABEL`], whose words ([`PreparedFor`]) name what it is
//! prepared for. For Nsight Systems admission adds two volumes and the init containers that fill
//! the first, and wraps the command of each chosen container with the launcher
//! ([`PREPARED_ANNOTATION`]); for the others it sets variables. It writes down what each container
//! was prepared for in [`PREPARED_FOR_ANNOTATION`], and what it did not do in
//! [`UNPREPARED_ANNOTATION`]. The launcher waits in [`RUN_DIR`] for the agent of its node and
//! becomes the workload.

mod words;

pub use words::{PreparationWord, PreparedFor, UnknownWord};

/// Label by which a pod opts in; its value is read as [`PreparedFor`].
pub const PREPARE_LABEL: &str = "flopwatch.dev/prepare";

/// The word of that label that has the kernels of the CUDA tracer's programs recorded all the time.
pub const RECORDER_KERNELS: &str = "recorder-kernels";

/// Annotation set by a user on a pod with that word: how much of the time kernels are recorded, in percent, from 1 to 100. Default: all of it.
pub const RECORDER_KERNELS_PERCENT_ANNOTATION: &str = "flopwatch.dev/recorder-kernels-percent";

/// Annotation set by a user on a pod: names of the containers to prepare, comma-separated. Default: those that ask for
/// an `nvidia.com/*` resource or a resource claim, else all.
pub const PREPARE_CONTAINERS_ANNOTATION: &str = "flopwatch.dev/prepare-containers";
/// Annotation set by a user on a pod: categories to trace, comma-separated, fixed at the container's start.
pub const NSYS_TRACE_ANNOTATION: &str = "flopwatch.dev/nsys-trace";
/// Default of [`NSYS_TRACE_ANNOTATION`].
pub const NSYS_TRACE_DEFAULT: &str = "cuda,nvtx";
/// Annotation set by a user on a pod: `graph` (default) or `node`, fixed at the container's start.
pub const NSYS_CUDA_GRAPH_ANNOTATION: &str = "flopwatch.dev/nsys-cuda-graph-trace";
/// Annotation set by a user on a pod: with the value `true` it gets the files by which sessions sample metrics of GPUs
/// (`spec.profiler.nsys.gpuMetrics`), fixed at the pod's creation.
pub const NSYS_GPU_METRICS_ANNOTATION: &str = "flopwatch.dev/nsys-gpu-metrics";

/// Annotation set by a user on a pod: port of its profiler service of JAX (`jax.profiler.start_server(PORT)`), where it has several.
pub const JAX_PORT_ANNOTATION: &str = "flopwatch.dev/jax-port";
/// Annotation set by a user on a pod that is prepared for JAX: with the value `true` its compiler writes its programs to [`JAX_DIR`], where
/// captures with `spec.profiler.jax.dumps` take them from.
pub const JAX_DUMPS_ANNOTATION: &str = "flopwatch.dev/jax-dumps";
/// Annotation set by a user on a pod: the NVTX range that sessions with a capture range of trigger `Nvtx` record, as `name`,
/// `name@domain` or `name@*`; fixed at the container's start.
pub const NSYS_NVTX_CAPTURE_ANNOTATION: &str = "flopwatch.dev/nsys-nvtx-capture";

/// Annotation set by admission: names of the containers whose command the launcher starts, comma-separated.
pub const PREPARED_ANNOTATION: &str = "flopwatch.dev/prepared";
/// Annotation set by admission: what each container was prepared for, `name: words` on a line, such as `main: nsys.kineto`.
pub const PREPARED_FOR_ANNOTATION: &str = "flopwatch.dev/prepared-for";
/// Annotation set by admission: for each container that was to be prepared and was not, `name: why` on a line.
pub const UNPREPARED_ANNOTATION: &str = "flopwatch.dev/unprepared";
/// Annotation set by admission: version of Flopwatch that prepared the pod.
pub const PREPARED_VERSION_ANNOTATION: &str = "flopwatch.dev/prepared-version";

/// Annotation set by admission on a pod whose ephemeral storage is limited: bytes of it that captures of one container may
/// take that was prepared for a profiler which writes there, so that none gets its own pod evicted. Absent where nothing
/// limits the pod.
pub const CAPTURE_BYTES_ANNOTATION: &str = "flopwatch.dev/prepared-capture-bytes";

/// Annotation set by the operator on pods that a session made, with the value `true`: a container stays for its capture
/// when its program has ended. Without it a container ends as it would unprepared.
pub const HOLD_ANNOTATION: &str = "flopwatch.dev/hold";
/// Annotation set by the operator on pods that a session made: when its window opens, as in `spec.start`.
pub const START_ANNOTATION: &str = "flopwatch.dev/start";

/// Annotation set by the operator on copies of pods that a session made: the original, as `name/UID`.
pub const REPLICA_OF_ANNOTATION: &str = "flopwatch.dev/replica-of";

/// Annotation set by the operator on pods that a session made for Nsight Compute: its options as JSON
/// ([`NcuOptions`](crate::profiler::NcuOptions)).
pub const NCU_OPTIONS_ANNOTATION: &str = "flopwatch.dev/ncu-options";
/// Name of Nsight Compute's own log in a container, beside its report.
pub const NCU_LOG: &str = "ncu.log";

/// Name of the volume with the launcher and the tools, read-only in the workload.
pub const TOOLS_VOLUME: &str = "flopwatch-tools";
/// Name of the volume with the profiler where images are mounted instead of copied: [`TOOLS_VOLUME`] is then the launcher's image.
pub const PROFILER_VOLUME: &str = "flopwatch-profiler";
/// Folder of the launcher's image that is mounted at [`TOOLS_DIR`] then; in it is a folder to mount the profiler at.
pub const TOOLS_IN_IMAGE: &str = "usr/lib/flopwatch/tools";
/// Where [`TOOLS_VOLUME`] is mounted.
pub const TOOLS_DIR: &str = "/flopwatch/tools";
/// The launcher within the container.
pub const LAUNCHER: &str = "/flopwatch/tools/launcher";
/// The command line of Nsight Systems within the container. The folder must keep this name or it refuses to start.
pub const NSYS: &str = "/flopwatch/tools/target-linux-x64/nsys";
/// Prefix of the per-container volumes in which launcher, profiler and agent meet; the container's index follows.
pub const RUN_VOLUME_PREFIX: &str = "flopwatch-run-";
/// Where the container's own run volume is mounted.
pub const RUN_DIR: &str = "/flopwatch/run";
/// Prefix of the volumes mounted at `/tmp` in containers with a read-only root and nothing there; Nsight Systems
/// writes its injection's configuration to `/tmp` whatever `TMPDIR` says.
pub const TMP_VOLUME_PREFIX: &str = "flopwatch-tmp-";
/// Prefix of the per-container volumes for the dumps of JAX's compiler; the container's index follows.
pub const JAX_VOLUME_PREFIX: &str = "flopwatch-jax-";
/// Where the container's own volume for dumps is mounted.
pub const JAX_DIR: &str = "/flopwatch/jax";
/// Variable of a program: where JAX writes what it hands to the compiler.
pub const JAX_DUMP_IR_TO: &str = "JAX_DUMP_IR_TO";
/// Variable of a program: flags of XLA.
pub const XLA_FLAGS: &str = "XLA_FLAGS";
/// The flag among [`XLA_FLAGS`] that says where XLA writes its programs; a path follows, and of several the last one counts.
pub const XLA_DUMP_TO: &str = "--xla_dump_to=";
/// Annotation set by a user on a pod that is prepared for the flight recorder: size of each container's file, such as `16Mi`.
pub const RECORDER_BYTES_ANNOTATION: &str = "flopwatch.dev/recorder-bytes";
/// Prefix of the per-container volumes for the flight recorder's file, in memory; the container's index follows.
pub const RECORDER_VOLUME_PREFIX: &str = "flopwatch-recorder-";
/// Where the container's own volume for the recorder's file is mounted.
pub const RECORDER_DIR: &str = "/flopwatch/recorder";
/// Name of the recorder's file there.
pub const RECORDER_FILE: &str = "recorder.ring";
/// The recorder's library within the container.
pub const RECORDER_LIBRARY: &str = "/flopwatch/tools/libflopwatch-recorder.so";
/// Variable of a program: the library that NVTX loads.
pub const NVTX_INJECTION64_PATH: &str = "NVTX_INJECTION64_PATH";
/// Variable of a program: the folder of the recorder's file.
pub const FLOPWATCH_RECORDER_DIR: &str = "FLOPWATCH_RECORDER_DIR";
/// Variable of a program: bytes of the recorder's file.
pub const FLOPWATCH_RECORDER_BYTES: &str = "FLOPWATCH_RECORDER_BYTES";
/// Bytes of the recorder's file where nothing else is said.
pub const RECORDER_BYTES_DEFAULT: u64 = 8 << 20;
/// Least and most bytes of the recorder's file.
pub const RECORDER_BYTES: std::ops::RangeInclusive<u64> = 256 << 10..=256 << 20;
/// Annotation set by a user on a pod that is prepared for the CUDA tracer: size of each container's file, such as `16Mi`.
pub const CUDA_BYTES_ANNOTATION: &str = "flopwatch.dev/cuda-bytes";
/// Prefix of the per-container volumes for the CUDA tracer's file, in memory; the container's index follows.
pub const CUDA_VOLUME_PREFIX: &str = "flopwatch-cuda-";
/// Where the container's own volume for the tracer's file is mounted.
pub const CUDA_DIR: &str = "/flopwatch/cuda";
/// Name of the tracer's file there.
pub const CUDA_FILE: &str = "cuda.trace";
/// The tracer's library within the container.
pub const CUDA_LIBRARY: &str = "/flopwatch/tools/libflopwatch_cuda.so";
/// Folder below [`TOOLS_DIR`] with copies of libcupti, each by the name that the tracer's library looks for.
pub const CUPTI_FOLDER: &str = "cupti";
/// The same folder within the container.
pub const CUPTI_DIR: &str = "/flopwatch/tools/cupti";
/// Variable of a program: the library that CUDA loads.
pub const CUDA_INJECTION64_PATH: &str = "CUDA_INJECTION64_PATH";
/// Variable of a program: the folder of the tracer's file.
pub const FLOPWATCH_CUDA_DIR: &str = "FLOPWATCH_CUDA_DIR";
/// Variable of a program: bytes of the tracer's file.
pub const FLOPWATCH_CUDA_BYTES: &str = "FLOPWATCH_CUDA_BYTES";
/// Variable of a program: the folder with copies of libcupti.
pub const FLOPWATCH_CUDA_CUPTI: &str = "FLOPWATCH_CUDA_CUPTI";
/// Variable of a program: the library that the tracer's library calls first.
pub const FLOPWATCH_CUDA_NEXT: &str = "FLOPWATCH_CUDA_NEXT";
/// Bytes of the tracer's file where nothing else is said.
pub const CUDA_BYTES_DEFAULT: u64 = 64 << 20;
/// Least and most bytes of the tracer's file, which is a power of two.
pub const CUDA_BYTES: std::ops::RangeInclusive<u64> = 1 << 20..=1 << 30;
/// Name of the init container that installs the launcher.
pub const LAUNCHER_INIT_CONTAINER: &str = "flopwatch-launcher";
/// Name of the init container that copies the tools out of the tools image.
pub const TOOLS_INIT_CONTAINER: &str = "flopwatch-tools";

/// The profiler's session in a prepared container; each container has its own session folder, so one name serves all.
pub const NSYS_SESSION: &str = "flopwatch";

/// Splits a comma-separated annotation; blanks around names and empty names are dropped.
pub fn split_names(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_at_commas_and_trimmed() {
        assert_eq!(split_names(" a, b ,,c").collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(split_names("").count(), 0);
    }
}
