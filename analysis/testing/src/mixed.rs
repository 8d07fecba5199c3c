//! Random work of GPUs of several kinds, and its timeline.

use flopwatch_model::{Category, Timeline};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::Trace;

/// Kernels, collectives and copies on three streams: nested, touching, of no length, overlapping on
/// one stream.
pub fn work() -> impl Strategy<Value = Vec<(u64, u64, u32, usize)>> {
    vec((0_u64..120, 0_u64..30, 0_u32..3, 0_usize..3), 0..25)
}

/// The timeline of such pieces: each a start, a length, the place of its stream and that of its
/// kind.
pub fn timeline(pieces: &[(u64, u64, u32, usize)]) -> Timeline {
    let mut trace = Trace::new();
    let streams = [7, 8, 9].map(|stream| trace.stream(1, 0, stream));
    for (start, length, stream, kind) in pieces.iter().copied() {
        let (category, name) = [
            (Category::CudaKernel, "gemm"),
            (Category::CudaKernel, "ncclDevKernel_AllReduce"),
            (Category::CudaMemcpyH2d, "Memcpy HtoD"),
        ][kind];
        let stream = streams[usize::try_from(stream).unwrap()];
        trace.event(category, stream, name, start, start + length);
    }
    trace.build()
}
