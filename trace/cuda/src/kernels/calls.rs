//! The calls, checked before they are made: this module alone makes them.

#![allow(
    unsafe_code,
    reason = "the kernels are C functions that take addresses; every call is proven to stay within its arrays"
)]

use std::ffi::c_int;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

use super::library::{Each3, In, Kernels, Keys, Ptr, Scan};
use crate::CudaError;
use crate::memory::{DeviceArray, Element, Memory};

/// The calls on one memory, checked: every array is as long as the call reads or writes.
///
/// Positions and orders must lie below the length of what they index. They are made by
/// [`Calls::sequence`], [`Calls::sort`] and [`Calls::select`] only, or checked by
/// [`Calls::positions`] on their way to the device.
pub(crate) struct Calls<'a, M: Memory> {
    kernels: &'a Kernels,
    memory: &'a M,
    count: u32,
    scratch: M::Array<u8>,
}

/// Indices on the device that all lie below `bound`.
pub(crate) struct Indices<M: Memory> {
    array: M::Array<u32>,
    bound: usize,
}

impl<M: Memory> Indices<M> {
    pub(crate) fn array(&self) -> &M::Array<u32> {
        &self.array
    }
}

fn input(array: &impl DeviceArray) -> In {
    with_exposed_provenance(usize::try_from(array.address()).unwrap_or_default())
}

fn output(array: &mut impl DeviceArray) -> Ptr {
    with_exposed_provenance_mut(usize::try_from(array.address()).unwrap_or_default())
}

impl<'a, M: Memory> Calls<'a, M> {
    /// Calls on up to `count` values at a time.
    pub(crate) fn new(kernels: &'a Kernels, memory: &'a M, count: usize) -> Result<Self, CudaError> {
        let count = u32::try_from(count).map_err(|_overflow| CudaError::TooMany { count })?;
        let scratch = memory.zeroed(kernels.scratch_bytes(count)?)?;
        Ok(Self {
            kernels,
            memory,
            count,
            scratch,
        })
    }

    fn stream(&self) -> Ptr {
        with_exposed_provenance_mut(self.memory.stream())
    }

    /// How many values a call takes whose arrays have these lengths: all the same, and no more than
    /// there is scratch for.
    fn length(&self, lengths: &[usize]) -> Result<u32, CudaError> {
        let first = lengths.first().copied().unwrap_or_default();
        if lengths.iter().any(|length| *length != first) {
            return Err(CudaError::Mismatch("arrays of different lengths"));
        }
        u32::try_from(first)
            .ok()
            .filter(|count| *count <= self.count)
            .ok_or(CudaError::TooMany { count: first })
    }

    /// 0, 1, 2, ...
    pub(crate) fn sequence(&self, count: usize) -> Result<Indices<M>, CudaError> {
        let mut array = self.memory.zeroed(count)?;
        let length = self.length(&[count])?;
        // SAFETY: writes `length` numbers, and the array has as many.
        let status = unsafe { (self.kernels.sequence)(output(&mut array), length, self.stream()) };
        self.kernels.check("sequence", status)?;
        Ok(Indices { array, bound: count })
    }

    /// Positions from the host.
    pub(crate) fn positions(&self, positions: &[u32], bound: usize) -> Result<Indices<M>, CudaError> {
        let inside = |at: &u32| usize::try_from(*at).is_ok_and(|at| at < bound);
        if !positions.iter().all(inside) {
            return Err(CudaError::Mismatch("a position beyond the table"));
        }
        Ok(Indices {
            array: self.memory.upload(positions)?,
            bound,
        })
    }

    /// Sort keys of the values in `order`.
    pub(crate) fn keys<T: Indexed>(
        &self,
        values: &M::Array<T>,
        order: &Indices<M>,
        falling: bool,
    ) -> Result<M::Array<u64>, CudaError> {
        let count = order.array.count();
        let mut keys = self.memory.zeroed(count)?;
        let length = self.length(&[count])?;
        bounded(values, order)?;
        let call = T::keys(self.kernels);
        // SAFETY: reads `length` indices and writes as many keys, both arrays have as many; every
        // index lies within `values`.
        let status = unsafe {
            call(
                input(values),
                input(&order.array),
                output(&mut keys),
                c_int::from(falling),
                length,
                self.stream(),
            )
        };
        self.kernels.check("keys", status)?;
        Ok(keys)
    }

    /// Sorts indices by the lowest `bits` of their keys, stable; gives the sorted keys too.
    pub(crate) fn sort(
        &mut self,
        keys: &M::Array<u64>,
        indices: &Indices<M>,
        bits: u32,
    ) -> Result<(M::Array<u64>, Indices<M>), CudaError> {
        let count = keys.count();
        let length = self.length(&[count, indices.array.count()])?;
        let mut sorted_keys = self.memory.zeroed(count)?;
        let mut array = self.memory.zeroed(count)?;
        let bits = c_int::try_from(bits.clamp(1, 64)).unwrap_or(64);
        let (scratch, bytes) = (output(&mut self.scratch), self.scratch.count());
        // SAFETY: all four arrays have `length` values, the outputs are their own; the scratch is
        // what the library asked for up to `self.count` values, and `length` is no larger.
        let status = unsafe {
            (self.kernels.sort)(
                scratch,
                bytes,
                input(keys),
                output(&mut sorted_keys),
                input(&indices.array),
                output(&mut array),
                0,
                bits,
                length,
                self.stream(),
            )
        };
        self.kernels.check("sort", status)?;
        let bound = indices.bound;
        Ok((sorted_keys, Indices { array, bound }))
    }

    /// `values[order[i]]`.
    pub(crate) fn gather<T: Indexed>(
        &self,
        values: &M::Array<T>,
        order: &Indices<M>,
    ) -> Result<M::Array<T>, CudaError> {
        let count = order.array.count();
        let mut gathered = self.memory.zeroed(count)?;
        let length = self.length(&[count])?;
        bounded(values, order)?;
        let call = T::gather(self.kernels);
        // SAFETY: reads `length` indices and writes as many values, both arrays have as many; every
        // index lies within `values`.
        let status = unsafe {
            call(
                input(values),
                input(&order.array),
                output(&mut gathered),
                length,
                self.stream(),
            )
        };
        self.kernels.check("gather", status)?;
        Ok(gathered)
    }

    /// The indices at `positions`.
    pub(crate) fn at(&self, indices: &Indices<M>, positions: &Indices<M>) -> Result<Indices<M>, CudaError> {
        let array = self.gather(&indices.array, positions)?;
        Ok(Indices {
            array,
            bound: indices.bound,
        })
    }

    /// `out[positions[i]] = values[i]`; positions are distinct.
    pub(crate) fn scatter(
        &self,
        values: &[u32],
        positions: &Indices<M>,
        out: &mut M::Array<u32>,
    ) -> Result<(), CudaError> {
        let length = self.length(&[values.len(), positions.array.count()])?;
        bounded(out, positions)?;
        let values = self.memory.upload(values)?;
        // SAFETY: reads `length` values and positions, both arrays have as many; every position
        // lies within `out`.
        let status = unsafe {
            (self.kernels.scatter)(
                input(&values),
                input(&positions.array),
                output(out),
                length,
                self.stream(),
            )
        };
        self.kernels.check("scatter", status)
    }

    /// Ends of events.
    pub(crate) fn ends(&self, start: &M::Array<u64>, duration: &M::Array<u64>) -> Result<M::Array<u64>, CudaError> {
        let count = start.count();
        let length = self.length(&[count, duration.count()])?;
        let mut ends = self.memory.zeroed(count)?;
        // SAFETY: three arrays of `length` values, the output is its own.
        let status =
            unsafe { (self.kernels.ends)(input(start), input(duration), output(&mut ends), length, self.stream()) };
        self.kernels.check("ends", status)?;
        Ok(ends)
    }

    /// Positions whose flag is set, in order: on the host and on the device.
    pub(crate) fn select(&mut self, flags: &M::Array<u8>) -> Result<(Vec<u32>, Indices<M>), CudaError> {
        let count = flags.count();
        let length = self.length(&[count])?;
        let mut positions = self.memory.zeroed(count)?;
        let mut selected = self.memory.zeroed::<u32>(1)?;
        let (scratch, bytes) = (output(&mut self.scratch), self.scratch.count());
        // SAFETY: reads `length` flags, writes at most as many positions and one number; the
        // scratch is as for `sort`.
        let status = unsafe {
            (self.kernels.select)(
                scratch,
                bytes,
                input(flags),
                output(&mut positions),
                output(&mut selected),
                length,
                self.stream(),
            )
        };
        self.kernels.check("select", status)?;
        let selected = self.memory.download(&selected, 1)?;
        let selected = selected
            .first()
            .and_then(|count| usize::try_from(*count).ok())
            .unwrap_or_default();
        // Cut to what was selected, so that the array's length is that of its meaning.
        let positions = self.memory.download(&positions, selected.min(count))?;
        let indices = self.positions(&positions, count)?;
        Ok((positions, indices))
    }

    /// Running maximum of `ends` within runs of equal `group`.
    pub(crate) fn reach(&mut self, group: &M::Array<u32>, ends: &M::Array<u64>) -> Result<M::Array<u64>, CudaError> {
        let count = ends.count();
        let length = self.length(&[count, group.count()])?;
        let mut reach = self.memory.zeroed(count)?;
        let (scratch, bytes) = (output(&mut self.scratch), self.scratch.count());
        // SAFETY: three arrays of `length` values, the output is its own; the scratch is as for
        // `sort`.
        let status = unsafe {
            (self.kernels.reach)(
                scratch,
                bytes,
                input(group),
                input(ends),
                output(&mut reach),
                length,
                self.stream(),
            )
        };
        self.kernels.check("reach", status)?;
        Ok(reach)
    }

    /// The largest value; 0 of none.
    pub(crate) fn largest(&mut self, values: &M::Array<u64>) -> Result<u64, CudaError> {
        if values.count() == 0 {
            return Ok(0);
        }
        let mut largest = self.memory.zeroed::<u64>(1)?;
        self.scan("largest", self.kernels.largest, values, &mut largest)?;
        Ok(self.memory.download(&largest, 1)?.first().copied().unwrap_or_default())
    }

    /// The smallest value; the largest number of none.
    pub(crate) fn smallest(&mut self, values: &M::Array<u64>) -> Result<u64, CudaError> {
        if values.count() == 0 {
            return Ok(u64::MAX);
        }
        let mut smallest = self.memory.zeroed::<u64>(1)?;
        self.scan("smallest", self.kernels.smallest, values, &mut smallest)?;
        Ok(self.memory.download(&smallest, 1)?.first().copied().unwrap_or_default())
    }

    /// Running sum, modulo 2^64.
    pub(crate) fn sum(&mut self, values: &M::Array<u64>) -> Result<M::Array<u64>, CudaError> {
        let mut sums = self.memory.zeroed(values.count())?;
        self.scan("sum", self.kernels.sum, values, &mut sums)?;
        Ok(sums)
    }

    fn scan(
        &mut self,
        name: &'static str,
        call: Scan,
        values: &M::Array<u64>,
        out: &mut M::Array<u64>,
    ) -> Result<(), CudaError> {
        let length = self.length(&[values.count()])?;
        let (scratch, bytes) = (output(&mut self.scratch), self.scratch.count());
        // SAFETY: reads `length` values; writes one (`largest`) or as many (`sum`), which the two
        // callers allocated; the scratch is as for `sort`.
        let status = unsafe { call(scratch, bytes, input(values), output(out), length, self.stream()) };
        self.kernels.check(name, status)
    }

    /// Marks events that share time with another of their group.
    pub(crate) fn overlaps(
        &self,
        group: &M::Array<u32>,
        start: &M::Array<u64>,
        reach: &M::Array<u64>,
    ) -> Result<M::Array<u8>, CudaError> {
        let count = start.count();
        let length = self.length(&[count, group.count(), reach.count()])?;
        let mut flags = self.memory.zeroed(count)?;
        // SAFETY: four arrays of `length` values, the output is its own.
        let status = unsafe {
            (self.kernels.overlaps)(
                input(group),
                input(start),
                input(reach),
                output(&mut flags),
                length,
                self.stream(),
            )
        };
        self.kernels.check("overlaps", status)?;
        Ok(flags)
    }

    /// How much each event adds to the union of its group.
    pub(crate) fn covered(
        &self,
        group: &M::Array<u32>,
        start: &M::Array<u64>,
        ends: &M::Array<u64>,
        reach: &M::Array<u64>,
    ) -> Result<M::Array<u64>, CudaError> {
        let count = start.count();
        let length = self.length(&[count, group.count(), ends.count(), reach.count()])?;
        let mut covered = self.memory.zeroed(count)?;
        // SAFETY: five arrays of `length` values, the output is its own.
        let status = unsafe {
            (self.kernels.covered)(
                input(group),
                input(start),
                input(ends),
                input(reach),
                output(&mut covered),
                length,
                self.stream(),
            )
        };
        self.kernels.check("covered", status)?;
        Ok(covered)
    }

    /// Marks the first event of each group.
    pub(crate) fn heads(&self, group: &M::Array<u32>) -> Result<M::Array<u8>, CudaError> {
        let count = group.count();
        let length = self.length(&[count])?;
        let mut flags = self.memory.zeroed(count)?;
        // SAFETY: two arrays of `length` values, the output is its own.
        let status = unsafe { (self.kernels.heads)(input(group), output(&mut flags), length, self.stream()) };
        self.kernels.check("heads", status)?;
        Ok(flags)
    }

    /// How many low bits of the start differ from the event before in the group; 64 for the first
    /// of a group.
    pub(crate) fn differing(&self, group: &M::Array<u32>, start: &M::Array<u64>) -> Result<M::Array<u8>, CudaError> {
        let count = start.count();
        let length = self.length(&[count, group.count()])?;
        let mut bits = self.memory.zeroed(count)?;
        // SAFETY: three arrays of `length` values, the output is its own.
        let status =
            unsafe { (self.kernels.differing)(input(group), input(start), output(&mut bits), length, self.stream()) };
        self.kernels.check("differing", status)?;
        Ok(bits)
    }

    /// Marks values above `limit`.
    pub(crate) fn above(&self, values: &M::Array<u8>, limit: u8) -> Result<M::Array<u8>, CudaError> {
        let count = values.count();
        let length = self.length(&[count])?;
        let mut flags = self.memory.zeroed(count)?;
        // SAFETY: two arrays of `length` values, the output is its own.
        let status = unsafe { (self.kernels.above)(input(values), limit, output(&mut flags), length, self.stream()) };
        self.kernels.check("above", status)?;
        Ok(flags)
    }

    /// How often each of the 256 values occurs.
    pub(crate) fn histogram(&mut self, values: &M::Array<u8>) -> Result<Vec<u32>, CudaError> {
        let length = self.length(&[values.count()])?;
        let mut bins = self.memory.zeroed::<u32>(256)?;
        let (scratch, bytes) = (output(&mut self.scratch), self.scratch.count());
        // SAFETY: reads `length` values, writes 256 numbers; the scratch is as for `sort`.
        let status = unsafe {
            (self.kernels.histogram)(scratch, bytes, input(values), output(&mut bins), length, self.stream())
        };
        self.kernels.check("histogram", status)?;
        self.memory.download(&bins, 256)
    }

    /// For each run of values that a flag begins (the first value's is set), marks the first of its
    /// largest values; gives where the runs begin and where these values are.
    pub(crate) fn best(
        &mut self,
        flags: &M::Array<u8>,
        values: &M::Array<u64>,
    ) -> Result<(Vec<u32>, Indices<M>), CudaError> {
        let count = values.count();
        let length = self.length(&[count, flags.count()])?;
        let (starts, first) = self.select(flags)?;
        if starts.first().copied().unwrap_or(0) != 0 || (starts.is_empty() && count > 0) {
            return Err(CudaError::Mismatch("values before the first run"));
        }
        let mut number = self.memory.zeroed::<u32>(count)?;
        let (scratch, bytes) = (output(&mut self.scratch), self.scratch.count());
        // SAFETY: two arrays of `length` values, the output is its own; the scratch is as for
        // `sort`.
        let status =
            unsafe { (self.kernels.number)(scratch, bytes, input(flags), output(&mut number), length, self.stream()) };
        self.kernels.check("number", status)?;
        let reach = self.reach(&number, values)?;
        let runs = u32::try_from(starts.len()).unwrap_or(u32::MAX);
        let mut marks = self.memory.zeroed::<u8>(count)?;
        // SAFETY: arrays of `length` values but for `first`, which has `runs`: the positions of the
        // flags that `number` counts, the first of them at 0, so that every number lies between 1
        // and `runs`.
        let status = unsafe {
            (self.kernels.best)(
                input(&number),
                input(&first.array),
                input(values),
                input(&reach),
                output(&mut marks),
                runs,
                length,
                self.stream(),
            )
        };
        self.kernels.check("best", status)?;
        let (found, best) = self.select(&marks)?;
        if found.len() != starts.len() {
            return Err(CudaError::Mismatch("runs and their largest values"));
        }
        Ok((starts, best))
    }

    /// Running sum of one of the four 32-bit digits of the values, or of their squares.
    pub(crate) fn digit_sums(
        &mut self,
        values: &M::Array<u64>,
        digit: u32,
        square: bool,
    ) -> Result<M::Array<u64>, CudaError> {
        let count = values.count();
        let length = self.length(&[count])?;
        let mut digits = self.memory.zeroed(count)?;
        // SAFETY: two arrays of `length` values, the output is its own.
        let status = unsafe {
            (self.kernels.digit)(
                input(values),
                digit,
                c_int::from(square),
                output(&mut digits),
                length,
                self.stream(),
            )
        };
        self.kernels.check("digit", status)?;
        self.sum(&digits)
    }
}

/// Every index must lie within `values`.
fn bounded<M: Memory>(values: &impl DeviceArray, indices: &Indices<M>) -> Result<(), CudaError> {
    if indices.bound > values.count() {
        return Err(CudaError::Mismatch("an order of a longer table"));
    }
    Ok(())
}

/// Values that there are sort keys and gathers of.
pub(crate) trait Indexed: Element {
    fn keys(kernels: &Kernels) -> Keys;
    fn gather(kernels: &Kernels) -> Each3;
}

impl Indexed for u32 {
    fn keys(kernels: &Kernels) -> Keys {
        kernels.keys_u32
    }
    fn gather(kernels: &Kernels) -> Each3 {
        kernels.gather_u32
    }
}

impl Indexed for u64 {
    fn keys(kernels: &Kernels) -> Keys {
        kernels.keys_u64
    }
    fn gather(kernels: &Kernels) -> Each3 {
        kernels.gather_u64
    }
}
