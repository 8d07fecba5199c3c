//! Memory that kernels work on.

use bytemuck::Pod;
use cudarc::driver::{DeviceRepr, ValidAsZeroBits};

use crate::CudaError;

/// A value of a column on the device.
pub trait Element: DeviceRepr + ValidAsZeroBits + Pod + Default + Send + Sync + 'static {}
impl Element for u8 {}
impl Element for u32 {}
impl Element for u64 {}

/// Values in a row in the device's memory, freed when dropped.
pub trait DeviceArray {
    /// How many values.
    fn count(&self) -> usize;
    /// Where they lie, as the kernels address them.
    fn address(&self) -> u64;
}

/// Allocates, copies, and names the stream that everything runs in.
///
/// # Safety
/// Every [`DeviceArray`] that it gives must be memory that the kernels may read and write at
/// `address()` for `count()` values of `T`, aligned for `T`, until it is dropped; copies and frees
/// must come after all work that was put into `stream()` before them.
#[allow(
    unsafe_code,
    reason = "kernels write to the addresses that an implementation gives; it must vouch for them"
)]
pub unsafe trait Memory {
    /// Values on the device.
    type Array<T: Element>: DeviceArray;

    /// Room for `count` values, all 0.
    fn zeroed<T: Element>(&self, count: usize) -> Result<Self::Array<T>, CudaError>;

    /// A copy of `values` on the device.
    fn upload<T: Element>(&self, values: &[T]) -> Result<Self::Array<T>, CudaError>;

    /// The first `count` values, once the work before is done.
    fn download<T: Element>(&self, array: &Self::Array<T>, count: usize) -> Result<Vec<T>, CudaError>;

    /// One array after the other.
    fn concatenate<T: Element>(&self, arrays: &[&Self::Array<T>]) -> Result<Self::Array<T>, CudaError>;

    /// The stream's handle, as the kernels take it; 0 for the default stream.
    fn stream(&self) -> usize;
}
