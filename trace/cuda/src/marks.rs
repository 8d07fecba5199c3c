//! Marks in CUDA streams of another library of this process, such as PyTorch: the time between two
//! marks is measured by the GPU.

#![allow(
    unsafe_code,
    reason = "the streams belong to another library; the driver's calls on them have no safe form"
)]

use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;

use crate::{CudaError, Gpu};

/// Records marks in streams of one device. Clones share the device's free events.
#[derive(Debug, Clone)]
pub struct Marks {
    device: Arc<Device>,
}

#[derive(Debug)]
struct Device {
    /// The device's primary context, in which CUDA's runtime works, and with it PyTorch and CuPy.
    /// It is never released, since marks may outlive everything else.
    context: sys::CUcontext,
    /// `cuEventElapsedTime` of all drivers; its second version came with that of CUDA 12.8.
    elapsed: Elapsed,
    /// CUDA events whose mark was dropped, for reuse.
    free: Mutex<Vec<Event>>,
}

type Elapsed = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> sys::CUresult;

// SAFETY: the driver takes a context from any thread.
unsafe impl Send for Device {}
// SAFETY: as above; its calls are safe to make from several threads.
unsafe impl Sync for Device {}

#[derive(Debug, Clone, Copy)]
struct Event(sys::CUevent);

// SAFETY: the driver takes an event from any thread.
unsafe impl Send for Event {}
// SAFETY: as above; its calls are safe to make from several threads.
unsafe impl Sync for Event {}

/// A recorded point in a stream. Its CUDA event is reused once the mark is dropped.
#[derive(Debug)]
pub struct Mark {
    device: Arc<Device>,
    event: Event,
}

impl Drop for Mark {
    fn drop(&mut self) {
        let mut free = self.device.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(self.event);
    }
}

/// Makes a context the thread's current one until it is dropped, which restores the one before.
struct ContextGuard;

impl ContextGuard {
    fn new(context: sys::CUcontext) -> Option<Self> {
        // SAFETY: the context is retained for good.
        let pushed = unsafe { sys::cuCtxPushCurrent_v2(context) };
        (pushed == sys::CUresult::CUDA_SUCCESS).then_some(Self)
    }
}

impl Drop for ContextGuard {
    fn drop(&mut self) {
        let mut popped = std::ptr::null_mut();
        // SAFETY: writes one handle to the address of a local; what is popped was pushed before.
        unsafe { sys::cuCtxPopCurrent_v2(&raw mut popped) };
    }
}

/// Sets the thread's capture mode to relaxed until it is dropped: otherwise the thread's calls of
/// the driver would invalidate a capture of a stream into a graph that another thread has under
/// way.
struct CaptureModeGuard(sys::CUstreamCaptureMode);

impl CaptureModeGuard {
    fn new() -> Option<Self> {
        let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: reads and writes one value at the address of a local.
        let exchanged = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) };
        (exchanged == sys::CUresult::CUDA_SUCCESS).then_some(Self(mode))
    }
}

impl Drop for CaptureModeGuard {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut self.0) };
    }
}

impl Marks {
    /// Marks of the device with this ordinal among those that the process may use. Creates the
    /// device's primary context where no library has.
    ///
    /// # Errors
    /// Where there is no driver, or it has no such device.
    pub fn of(ordinal: u32) -> Result<Self, CudaError> {
        Gpu::driver_version()?;
        let failed = |result: sys::CUresult| match result {
            sys::CUresult::CUDA_SUCCESS => Ok(()),
            error => Err(CudaError::Driver {
                action: "mark its streams",
                reason: format!("{error:?}"),
            }),
        };
        let ordinal = i32::try_from(ordinal).map_err(|_large| CudaError::NoGpu)?;
        let (mut device, mut context) = (0, std::ptr::null_mut());
        // SAFETY: may be called again and again; the two others write to the addresses of locals.
        unsafe {
            failed(sys::cuInit(0))?;
            failed(sys::cuDeviceGet(&raw mut device, ordinal))?;
            failed(sys::cuDevicePrimaryCtxRetain(&raw mut context, device))?;
        }
        // SAFETY: the driver is there, as it gave its version, and stays loaded; the function has
        // that signature.
        let elapsed = unsafe { sys::culib().get::<Elapsed>(b"cuEventElapsedTime\0") };
        let elapsed = *elapsed.map_err(|error| CudaError::Driver {
            action: "time its streams",
            reason: error.to_string(),
        })?;
        let device = Arc::new(Device {
            context,
            elapsed,
            free: Mutex::default(),
        });
        Ok(Self { device })
    }

    /// Records a mark after the work that was submitted to the stream so far. `None` while the
    /// stream is captured into a graph, of which the mark would become a part, and where the driver
    /// refuses.
    ///
    /// # Safety
    /// `stream` must be the handle of a stream of this device's primary context that is not
    /// destroyed meanwhile, or 0.
    pub unsafe fn mark(&self, stream: usize) -> Option<Mark> {
        let stream: sys::CUstream = std::ptr::with_exposed_provenance_mut(stream);
        let _current = ContextGuard::new(self.device.context)?;
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the caller vouches for the stream; writes one value to the address of a local.
        let asked = unsafe { sys::cuStreamIsCapturing(stream, &raw mut status) };
        if asked != sys::CUresult::CUDA_SUCCESS || status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE {
            return None;
        }
        let mark = Mark {
            event: self.device.event()?,
            device: Arc::clone(&self.device),
        };
        // SAFETY: the event is of this context, and no other mark has it.
        let recorded = unsafe { sys::cuEventRecord(mark.event.0, stream) };
        (recorded == sys::CUresult::CUDA_SUCCESS).then_some(mark)
    }
}

impl Device {
    /// A CUDA event that no mark uses, from those dropped or a new one.
    fn event(&self) -> Option<Event> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if free.is_some() {
            return free;
        }
        let mut event = std::ptr::null_mut();
        // SAFETY: writes one handle to the address of a local; the context is current.
        let made = unsafe { sys::cuEventCreate(&raw mut event, 0) };
        (made == sys::CUresult::CUDA_SUCCESS).then_some(Event(event))
    }
}

impl Mark {
    /// Time in ms from this mark to a later one of the same device. `None` while the GPU has not
    /// reached the later one, and where the driver fails.
    pub fn elapsed_ms(&self, later: &Self) -> Option<f64> {
        if !Arc::ptr_eq(&self.device, &later.device) {
            return None;
        }
        let _current = ContextGuard::new(self.device.context)?;
        let _relaxed = CaptureModeGuard::new()?;
        // SAFETY: both events are of the current context and alive.
        if unsafe { sys::cuEventQuery(later.event.0) } != sys::CUresult::CUDA_SUCCESS {
            return None;
        }
        let mut elapsed = 0.0;
        // SAFETY: as above; writes one number to the address of a local.
        let asked = unsafe { (self.device.elapsed)(&raw mut elapsed, self.event.0, later.event.0) };
        (asked == sys::CUresult::CUDA_SUCCESS).then_some(f64::from(elapsed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_driver_there_are_no_marks() {
        if Gpu::driver_version().is_err() {
            assert_eq!(Marks::of(0).unwrap_err(), CudaError::NoDriver);
        } else {
            assert!(Marks::of(u32::MAX).is_err());
        }
    }
}
