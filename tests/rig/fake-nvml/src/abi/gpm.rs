//! The functions of GPU Performance Monitoring.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings as sys;
use sys::{nvmlDevice_t, nvmlGpmSample_t, nvmlReturn_t};

use super::{Answer, INVALID, code, of_device, put};
use crate::gpm::Sample;
use crate::library::{Library, Position};

const VERSION_MISMATCH: nvmlReturn_t = sys::nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;

// SAFETY (of the attributes below): as in the module above.

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmQueryDeviceSupport(
    device: nvmlDevice_t,
    support: *mut sys::nvmlGpmSupport_t,
) -> nvmlReturn_t {
    let found = of_device("nvmlGpmQueryDeviceSupport", device, |device| {
        Ok(device.gpm.is_some() || device.partitions.iter().any(|partition| partition.gpm.is_some()))
    });
    code(found.and_then(|found| {
        // SAFETY: nvml.h: `support` is null or the caller's struct, whose first field says its
        // version.
        let version = unsafe { support.as_ref() }.ok_or(INVALID)?.version;
        if version != sys::NVML_GPM_SUPPORT_VERSION {
            return Err(VERSION_MISMATCH);
        }
        let found = sys::nvmlGpmSupport_t {
            version,
            isSupportedDevice: c_uint::from(found),
        };
        // SAFETY: as above, and of this version, so as large as this struct.
        unsafe { put(support, found) }
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleAlloc(sample: *mut nvmlGpmSample_t) -> nvmlReturn_t {
    let mut library = Library::lock();
    let most = library.state("nvmlGpmSampleAlloc").map(|(state, _)| state.gpm_samples);
    let found = most.and_then(|most| library.samples.allocate(most));
    // SAFETY: nvml.h: `sample` is the caller's handle.
    code(found.and_then(|number| unsafe { put(sample, std::ptr::without_provenance_mut(number)) }))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlGpmSampleFree(sample: nvmlGpmSample_t) -> nvmlReturn_t {
    code(Library::lock().samples.free(sample.addr()))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlGpmSampleGet(device: nvmlDevice_t, sample: nvmlGpmSample_t) -> nvmlReturn_t {
    let take = || {
        let place = Position::of_handle(device)?;
        let mut library = Library::lock();
        let (state, _) = library.state("nvmlGpmSampleGet")?;
        let taken = Sample::of(state.unit(place)?, place)?;
        library.samples.fill(sample.addr(), taken)
    };
    code(take())
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlGpmMigSampleGet(device: nvmlDevice_t, instance: c_uint, sample: nvmlGpmSample_t) -> nvmlReturn_t {
    let take = || {
        let gpu = Position::of_handle(device)?;
        let mut library = Library::lock();
        let (state, _) = library.state("nvmlGpmMigSampleGet")?;
        let (place, _) = state.unit(gpu)?.device()?.partition_in(gpu.device, instance)?;
        let taken = Sample::of(state.unit(place)?, place)?;
        library.samples.fill(sample.addr(), taken)
    };
    code(take())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmMetricsGet(request: *mut sys::nvmlGpmMetricsGet_t) -> nvmlReturn_t {
    let answer = || -> Answer<()> {
        let mut library = Library::lock();
        library.state("nvmlGpmMetricsGet")?;
        // SAFETY: nvml.h: `request` is null or the caller's struct, which nobody else has while the
        // call lasts.
        let request = unsafe { request.as_mut() }.ok_or(INVALID)?;
        if request.version != sys::NVML_GPM_METRICS_GET_VERSION {
            return Err(VERSION_MISMATCH);
        }
        let first = library.samples.filled(request.sample1.addr())?;
        let second = library.samples.filled(request.sample2.addr())?;
        let count = usize::try_from(request.numMetrics).or(Err(INVALID))?;
        for metric in request.metrics.get_mut(..count).ok_or(INVALID)? {
            let value = first.until(second, metric.metricId);
            metric.nvmlReturn = value.err().unwrap_or(super::SUCCESS);
            metric.value = value.unwrap_or(f64::NAN);
        }
        Ok(())
    };
    code(answer())
}
