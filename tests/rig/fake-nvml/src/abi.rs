//! The functions of `nvml.h` that the wrapper looks up, and the only unsafe code of the crate.
#![allow(unsafe_code, reason = "C functions that write through their caller's pointers")]
#![allow(non_snake_case, reason = "the names are NVML's")]
#![allow(unreachable_pub, reason = "exported to the dynamic loader by name")]

mod gpm;

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nvml_wrapper_sys::bindings as sys;
use sys::{nvmlDevice_t, nvmlReturn_t};

use crate::library::{Library, Position, Unit, running, supported, supported_u32};
use crate::state::Device;

type Answer<T> = Result<T, nvmlReturn_t>;

const SUCCESS: nvmlReturn_t = sys::nvmlReturn_enum_NVML_SUCCESS;
const INVALID: nvmlReturn_t = sys::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
const NOT_SUPPORTED: nvmlReturn_t = sys::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED;
const TOO_SMALL: nvmlReturn_t = sys::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE;

/// Process samples get their time in steps of this many microseconds, as the driver's own sampling
/// does.
const SAMPLE_MICROSECONDS: u64 = 100_000;

fn code(answer: Answer<()>) -> nvmlReturn_t {
    answer.err().unwrap_or(SUCCESS)
}

/// # Safety
///
/// `to` is null or valid for a write of `T`.
unsafe fn put<T>(to: *mut T, value: T) -> Answer<()> {
    if to.is_null() {
        return Err(INVALID);
    }
    // SAFETY: not null, so valid for a write by this function's contract; `write` drops nothing.
    unsafe { to.write(value) };
    Ok(())
}

/// # Safety
///
/// `to` is null or valid for writes of `length` bytes.
unsafe fn put_text(to: *mut c_char, length: c_uint, text: &str) -> Answer<()> {
    let length = usize::try_from(length).or(Err(INVALID))?;
    if to.is_null() {
        return Err(INVALID);
    }
    if text.len() >= length {
        return Err(TOO_SMALL);
    }
    // SAFETY: `text.len() + 1 <= length` bytes are written, for which `to` is valid by this
    // function's contract; the source is Rust's own memory and cannot overlap with a buffer of the
    // caller.
    unsafe {
        text.as_ptr().cast::<c_char>().copy_to_nonoverlapping(to, text.len());
        to.add(text.len()).write(0);
    }
    Ok(())
}

/// Writes `items` and their number, or the number alone with `INSUFFICIENT_SIZE`.
///
/// # Safety
///
/// `count` is null or valid for reads and writes; `to` is null or valid for writes of `*count`
/// items.
unsafe fn put_all<T: Copy>(to: *mut T, count: *mut c_uint, items: &[T]) -> Answer<()> {
    if count.is_null() {
        return Err(INVALID);
    }
    // SAFETY: not null, so valid by this function's contract.
    let room = unsafe { count.read() };
    let found = c_uint::try_from(items.len()).or(Err(INVALID))?;
    // SAFETY: as above.
    unsafe { count.write(found) };
    if items.is_empty() {
        return Ok(());
    }
    if to.is_null() || room < found {
        return Err(TOO_SMALL);
    }
    // SAFETY: `to` is not null and valid for `room >= items.len()` items by this function's
    // contract; the source is Rust's own memory.
    unsafe { items.as_ptr().copy_to_nonoverlapping(to, items.len()) };
    Ok(())
}

/// What `ask` says about the unit of `handle`.
fn of_unit<T>(function: &str, handle: nvmlDevice_t, ask: impl FnOnce(Unit<'_>) -> Answer<T>) -> Answer<T> {
    let place = Position::of_handle(handle)?;
    let mut library = Library::lock();
    let (state, _) = library.state(function)?;
    ask(state.unit(place)?)
}

/// What `ask` says about the device of `handle`; an error of what is no whole device.
fn of_device<T>(function: &str, handle: nvmlDevice_t, ask: impl FnOnce(&Device) -> Answer<T>) -> Answer<T> {
    of_unit(function, handle, |unit| ask(unit.device()?))
}

// SAFETY (of the attributes below): the names are those of NVML, which a process loads this library
// in place of; the signatures are those of nvml.h as bindgen has them, so that a caller's pointers
// are what each function's helper asks for: null, or valid for what nvml.h says is written.

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> nvmlReturn_t {
    code(Library::lock().start())
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> nvmlReturn_t {
    nvmlInit_v2()
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> nvmlReturn_t {
    code(Library::lock().stop())
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(result: nvmlReturn_t) -> *const c_char {
    let text: &CStr = match result {
        SUCCESS => c"Success",
        sys::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED => c"Driver Not Loaded",
        sys::nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST => c"GPU is lost",
        NOT_SUPPORTED => c"Not Supported",
        INVALID => c"Invalid Argument",
        _ => c"Unknown Error",
    };
    text.as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(version: *mut c_char, length: c_uint) -> nvmlReturn_t {
    let mut library = Library::lock();
    let answer = library.state("nvmlSystemGetDriverVersion");
    // SAFETY: nvml.h: `version` has room for `length` bytes.
    code(answer.and_then(|(state, _)| unsafe { put_text(version, length, &state.driver_version) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> nvmlReturn_t {
    let mut library = Library::lock();
    let answer = library.state("nvmlDeviceGetCount_v2");
    let found = answer.and_then(|(state, _)| c_uint::try_from(state.devices.len()).or(Err(INVALID)));
    // SAFETY: nvml.h: `count` is the caller's `unsigned int`.
    code(found.and_then(|found| unsafe { put(count, found) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut nvmlDevice_t) -> nvmlReturn_t {
    let found = usize::try_from(index).or(Err(INVALID)).and_then(|index| {
        let place = Position {
            device: index,
            partition: None,
        };
        of_unit("nvmlDeviceGetHandleByIndex_v2", place.to_handle(), |_| {
            Ok(place.to_handle())
        })
    });
    // SAFETY: nvml.h: `device` is the caller's handle.
    code(found.and_then(|handle| unsafe { put(device, handle) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetIndex(device: nvmlDevice_t, index: *mut c_uint) -> nvmlReturn_t {
    let found = of_device("nvmlDeviceGetIndex", device, |_| {
        Position::of_handle(device).and_then(|place| c_uint::try_from(place.device).or(Err(INVALID)))
    });
    // SAFETY: nvml.h: `index` is the caller's `unsigned int`.
    code(found.and_then(|found| unsafe { put(index, found) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetName(device: nvmlDevice_t, name: *mut c_char, length: c_uint) -> nvmlReturn_t {
    let found = of_unit("nvmlDeviceGetName", device, |unit| {
        Ok(match unit {
            Unit::Device(device) => device.name.clone(),
            Unit::Partition(partition) => partition.name.clone(),
        })
    });
    // SAFETY: nvml.h: `name` has room for `length` bytes.
    code(found.and_then(|found| unsafe { put_text(name, length, &found) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUUID(device: nvmlDevice_t, uuid: *mut c_char, length: c_uint) -> nvmlReturn_t {
    let found = of_unit("nvmlDeviceGetUUID", device, |unit| {
        Ok(match unit {
            Unit::Device(device) => device.uuid.clone(),
            Unit::Partition(partition) => partition.uuid.clone(),
        })
    });
    // SAFETY: nvml.h: `uuid` has room for `length` bytes.
    code(found.and_then(|found| unsafe { put_text(uuid, length, &found) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(
    device: nvmlDevice_t,
    memory: *mut sys::nvmlMemory_v2_t,
) -> nvmlReturn_t {
    let found = of_unit("nvmlDeviceGetMemoryInfo_v2", device, |unit| {
        let (total, used) = match unit {
            Unit::Device(device) => (&device.memory_total_bytes, &device.memory_used_bytes),
            Unit::Partition(partition) => (&partition.memory_total_bytes, &partition.memory_used_bytes),
        };
        let (total, used) = (supported(total.as_ref())?, supported(used.as_ref())?);
        Ok((total, used.min(total)))
    });
    let size = c_uint::try_from(size_of::<sys::nvmlMemory_v2_t>()).unwrap_or(0);
    let version = size | (2 << 24);
    code(found.and_then(|(total, used)| {
        // SAFETY: nvml.h: `memory` is null or the caller's struct, whose first field says its
        // version.
        let asked = unsafe { memory.as_ref() }.ok_or(INVALID)?.version;
        if asked != version {
            return Err(sys::nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        }
        let found = sys::nvmlMemory_v2_t {
            version,
            total,
            reserved: 0,
            free: total - used,
            used,
        };
        // SAFETY: as above, and of this version, so as large as this struct.
        unsafe { put(memory, found) }
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUtilizationRates(
    device: nvmlDevice_t,
    utilization: *mut sys::nvmlUtilization_t,
) -> nvmlReturn_t {
    let found = of_device("nvmlDeviceGetUtilizationRates", device, |device| {
        Ok(sys::nvmlUtilization_t {
            gpu: supported_u32(device.utilization_percent.as_ref())?.min(100),
            memory: supported_u32(device.memory_utilization_percent.as_ref())?.min(100),
        })
    });
    // SAFETY: nvml.h: `utilization` is the caller's struct.
    code(found.and_then(|found| unsafe { put(utilization, found) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPowerUsage(device: nvmlDevice_t, milliwatts: *mut c_uint) -> nvmlReturn_t {
    let found = of_device("nvmlDeviceGetPowerUsage", device, |device| {
        supported_u32(device.power_milliwatts.as_ref())
    });
    // SAFETY: nvml.h: `milliwatts` is the caller's `unsigned int`.
    code(found.and_then(|found| unsafe { put(milliwatts, found) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetClockInfo(
    device: nvmlDevice_t,
    clock: sys::nvmlClockType_t,
    megahertz: *mut c_uint,
) -> nvmlReturn_t {
    let found = of_device("nvmlDeviceGetClockInfo", device, |device| match clock {
        sys::nvmlClockType_enum_NVML_CLOCK_SM => supported_u32(device.sm_clock_mhz.as_ref()),
        sys::nvmlClockType_enum_NVML_CLOCK_MEM => supported_u32(device.memory_clock_mhz.as_ref()),
        _ => Err(NOT_SUPPORTED),
    });
    // SAFETY: nvml.h: `megahertz` is the caller's `unsigned int`.
    code(found.and_then(|found| unsafe { put(megahertz, found) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTemperature(
    device: nvmlDevice_t,
    sensor: sys::nvmlTemperatureSensors_t,
    celsius: *mut c_uint,
) -> nvmlReturn_t {
    let found = of_device("nvmlDeviceGetTemperature", device, |device| match sensor {
        sys::nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU => supported_u32(device.temperature_celsius.as_ref()),
        _ => Err(INVALID),
    });
    // SAFETY: nvml.h: `celsius` is the caller's `unsigned int`.
    code(found.and_then(|found| unsafe { put(celsius, found) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCurrentClocksThrottleReasons(
    device: nvmlDevice_t,
    reasons: *mut c_ulonglong,
) -> nvmlReturn_t {
    let found = of_device("nvmlDeviceGetCurrentClocksThrottleReasons", device, |device| {
        supported_u32(device.throttle_reasons.as_ref()).map(c_ulonglong::from)
    });
    // SAFETY: nvml.h: `reasons` is the caller's `unsigned long long`.
    code(found.and_then(|found| unsafe { put(reasons, found) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPcieThroughput(
    device: nvmlDevice_t,
    counter: sys::nvmlPcieUtilCounter_t,
    kib_per_second: *mut c_uint,
) -> nvmlReturn_t {
    let found = of_device("nvmlDeviceGetPcieThroughput", device, |device| match counter {
        sys::nvmlPcieUtilCounter_enum_NVML_PCIE_UTIL_RX_BYTES => {
            supported_u32(device.pcie_receive_kib_per_second.as_ref())
        }
        sys::nvmlPcieUtilCounter_enum_NVML_PCIE_UTIL_TX_BYTES => {
            supported_u32(device.pcie_transmit_kib_per_second.as_ref())
        }
        _ => Err(INVALID),
    });
    // SAFETY: nvml.h: `kib_per_second` is the caller's `unsigned int`.
    code(found.and_then(|found| unsafe { put(kib_per_second, found) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    device: nvmlDevice_t,
    count: *mut c_uint,
    infos: *mut sys::nvmlProcessInfo_t,
) -> nvmlReturn_t {
    const NONE: c_uint = c_uint::MAX;
    /// `NVML_VALUE_NOT_AVAILABLE` as the field has it.
    const UNKNOWN: c_ulonglong = c_ulonglong::MAX;
    let collect = || {
        let place = Position::of_handle(device)?;
        let mut library = Library::lock();
        let (state, processes) = library.state("nvmlDeviceGetComputeRunningProcesses_v3")?;
        let instance = place
            .partition
            .and_then(|partition| c_uint::try_from(partition).ok())
            .unwrap_or(NONE);
        let found = running(state.unit(place)?, processes)
            .into_iter()
            .map(|running| sys::nvmlProcessInfo_t {
                pid: running.pid,
                usedGpuMemory: supported(running.process.memory_used_bytes.as_ref()).unwrap_or(UNKNOWN),
                gpuInstanceId: instance,
                computeInstanceId: instance,
            });
        Ok(found.collect::<Vec<_>>())
    };
    // SAFETY: nvml.h: `infos` has room for `*count` structs, or is null.
    code(collect().and_then(|found| unsafe { put_all(infos, count, &found) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetProcessUtilization(
    device: nvmlDevice_t,
    samples: *mut sys::nvmlProcessUtilizationSample_t,
    count: *mut c_uint,
    last_seen: c_ulonglong,
) -> nvmlReturn_t {
    let collect = || {
        let place = Position::of_handle(device)?;
        let mut library = Library::lock();
        let (state, processes) = library.state("nvmlDeviceGetProcessUtilization")?;
        let unit = Unit::Device(state.unit(place)?.device()?);
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO)
            .as_micros();
        let now = u64::try_from(since).unwrap_or(u64::MAX);
        let time = now - now % SAMPLE_MICROSECONDS;
        if time <= last_seen {
            return Err(sys::nvmlReturn_enum_NVML_ERROR_NOT_FOUND);
        }
        let mut found = Vec::new();
        for running in running(unit, processes) {
            let utilization = supported_u32(running.process.sm_utilization_percent.as_ref())?.min(100);
            found.push(sys::nvmlProcessUtilizationSample_t {
                pid: running.pid,
                timeStamp: time,
                smUtil: utilization,
                memUtil: 0,
                encUtil: 0,
                decUtil: 0,
            });
        }
        Ok(found)
    };
    // SAFETY: nvml.h: `samples` has room for `*count` structs, or is null.
    code(collect().and_then(|found| unsafe { put_all(samples, count, &found) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigMode(
    device: nvmlDevice_t,
    current: *mut c_uint,
    pending: *mut c_uint,
) -> nvmlReturn_t {
    let found = of_device("nvmlDeviceGetMigMode", device, |device| {
        Ok(c_uint::from(!device.partitions.is_empty()))
    });
    // SAFETY: nvml.h: both are the caller's `unsigned int`.
    code(found.and_then(|found| unsafe { put(current, found).and_then(|()| put(pending, found)) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMaxMigDeviceCount(device: nvmlDevice_t, count: *mut c_uint) -> nvmlReturn_t {
    let found = of_device("nvmlDeviceGetMaxMigDeviceCount", device, |device| {
        c_uint::try_from(device.partitions.len()).or(Err(INVALID))
    });
    // SAFETY: nvml.h: `count` is the caller's `unsigned int`.
    code(found.and_then(|found| unsafe { put(count, found) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    device: nvmlDevice_t,
    index: c_uint,
    partition: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    let found = of_device("nvmlDeviceGetMigDeviceHandleByIndex", device, |found| {
        let index = usize::try_from(index).or(Err(INVALID))?;
        found
            .partitions
            .get(index)
            .ok_or(sys::nvmlReturn_enum_NVML_ERROR_NOT_FOUND)?;
        Ok(Position {
            partition: Some(index),
            ..Position::of_handle(device)?
        }
        .to_handle())
    });
    // SAFETY: nvml.h: `partition` is the caller's handle.
    code(found.and_then(|found| unsafe { put(partition, found) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceIsMigDeviceHandle(device: nvmlDevice_t, is_partition: *mut c_uint) -> nvmlReturn_t {
    let found = of_unit("nvmlDeviceIsMigDeviceHandle", device, |unit| {
        Ok(c_uint::from(matches!(unit, Unit::Partition(_))))
    });
    // SAFETY: nvml.h: `is_partition` is the caller's `unsigned int`.
    code(found.and_then(|found| unsafe { put(is_partition, found) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetGpuInstanceId(device: nvmlDevice_t, id: *mut c_uint) -> nvmlReturn_t {
    let found = of_unit("nvmlDeviceGetGpuInstanceId", device, |unit| match unit {
        Unit::Device(_) => Err(NOT_SUPPORTED),
        Unit::Partition(partition) => partition.instance(Position::of_handle(device)?),
    });
    // SAFETY: nvml.h: `id` is the caller's `unsigned int`.
    code(found.and_then(|found| unsafe { put(id, found) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetCudaDriverVersion_v2(version: *mut c_int) -> nvmlReturn_t {
    let mut library = Library::lock();
    let answer = library.state("nvmlSystemGetCudaDriverVersion_v2").map(|_| 12_080);
    // SAFETY: nvml.h: `version` is the caller's `int`.
    code(answer.and_then(|found| unsafe { put(version, found) }))
}
