//! Copies of large columns between the host and the device, by way of page-locked memory.
//!
//! The driver copies ordinary memory piece by piece with one thread. Here all threads fill or empty
//! one half of the page-locked memory, pages that were never touched included, while the device
//! copies the other half.

#![allow(
    unsafe_code,
    reason = "a copy that runs while the host goes on has no safe form; the memory must outlive it"
)]

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, PinnedHostSlice, result, sys};
use rayon::prelude::*;

/// Bytes of one half.
const HALF_BYTES: usize = 8 << 20;
/// Bytes that a thread copies at a time.
const COPY_BYTES: usize = 512 << 10;
/// Copies of fewer bytes are left to the driver.
pub(crate) const MIN_STAGED_BYTES: usize = 1 << 20;

/// Page-locked memory, and what was last put into the stream for each half of it.
#[derive(Debug)]
pub(crate) struct Staging {
    stream: Arc<CudaStream>,
    halves: [Half; 2],
}

#[derive(Debug)]
struct Half {
    // Dropped first: the memory waits for its own event alone.
    copied: CopyEvent,
    memory: PinnedHostSlice<u8>,
}

/// Comes when the copies of a half are done; waits for that when it goes.
#[derive(Debug)]
struct CopyEvent(CudaEvent);

impl Drop for CopyEvent {
    fn drop(&mut self) {
        // A context that is broken copies no more.
        self.0.synchronize().ok();
    }
}

impl Half {
    fn new(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        // SAFETY: bytes need no value before they are written; every copy reads only what was
        // written before.
        let mut memory = unsafe { context.alloc_pinned_with_flags::<u8>(HALF_BYTES, 0) }?;
        memory.as_mut_slice()?.fill(0);
        let copied = CopyEvent(context.new_event(Some(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING))?);
        Ok(Self { copied, memory })
    }

    /// The first `bytes` of it, once no copy reads or writes them any more.
    fn bytes(&mut self, bytes: usize) -> Result<&mut [u8], DriverError> {
        self.copied.0.synchronize()?;
        let all = self.memory.as_mut_slice()?;
        let end = bytes.min(all.len());
        Ok(all.split_at_mut(end).0)
    }
}

impl Staging {
    pub(crate) fn new(context: &Arc<CudaContext>, stream: &Arc<CudaStream>) -> Result<Self, DriverError> {
        Ok(Self {
            stream: Arc::clone(stream),
            halves: [Half::new(context)?, Half::new(context)?],
        })
    }

    /// Copies `bytes` to the device's `address`, in the stream's order.
    ///
    /// # Safety
    /// `address` must be memory of the device, as long as `bytes`, that is not freed outside of the
    /// stream's order.
    pub(crate) unsafe fn upload(&mut self, bytes: &[u8], address: sys::CUdeviceptr) -> Result<(), DriverError> {
        let mut to = address;
        let [mut next, mut other] = self.halves.each_mut();
        for chunk in bytes.chunks(HALF_BYTES) {
            let room = next.bytes(chunk.len())?;
            copy(room, chunk);
            // SAFETY: the chunk's place lies within the memory that the caller vouches for; the
            // half is not touched, freed or moved before its event has come.
            unsafe { result::memcpy_htod_async(to, room, self.stream.cu_stream()) }?;
            next.copied.0.record(&self.stream)?;
            to += u64::try_from(chunk.len()).unwrap_or_default();
            std::mem::swap(&mut next, &mut other);
        }
        Ok(())
    }

    /// Copies the device's memory at `address` to `bytes`, after all work that was put into the
    /// stream before.
    ///
    /// # Safety
    /// `address` must be memory of the device, as long as `bytes`.
    pub(crate) unsafe fn download(&mut self, bytes: &mut [u8], address: sys::CUdeviceptr) -> Result<(), DriverError> {
        let mut from = address;
        let mut waiting: Option<&mut [u8]> = None;
        let [mut next, mut other] = self.halves.each_mut();
        for chunk in bytes.chunks_mut(HALF_BYTES) {
            let room = next.bytes(chunk.len())?;
            // SAFETY: the chunk's place lies within the memory that the caller vouches for; the
            // half is not read, freed or moved before its event has come.
            unsafe { result::memcpy_dtoh_async(room, from, self.stream.cu_stream()) }?;
            next.copied.0.record(&self.stream)?;
            from += u64::try_from(chunk.len()).unwrap_or_default();
            std::mem::swap(&mut next, &mut other);
            if let Some(chunk) = waiting.replace(chunk) {
                copy(chunk, next.bytes(chunk.len())?);
            }
        }
        if let Some(chunk) = waiting {
            copy(chunk, other.bytes(chunk.len())?);
        }
        Ok(())
    }
}

/// Copies with all threads.
fn copy(to: &mut [u8], from: &[u8]) {
    let pieces = to.par_chunks_mut(COPY_BYTES).zip(from.par_chunks(COPY_BYTES));
    pieces.for_each(|(to, from)| {
        let length = to.len().min(from.len());
        to.split_at_mut(length).0.copy_from_slice(from.split_at(length).0);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_copied_also_those_of_the_last_piece() {
        let from: Vec<u8> = (0..=250).cycle().take(2 * COPY_BYTES + 7).collect();
        let mut to = vec![0; from.len()];
        copy(&mut to, &from);
        assert_eq!(to, from);
    }
}
