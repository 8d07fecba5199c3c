//! Values on their way from the child: numbers as memory has them, texts in UTF-8, lists behind
//! their length. Both ends are the same module on the same machine.
//!
//! Whoever takes them trusts nothing: all together have a bound, and memory is used only for what
//! came.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};

use bytemuck::Pod;
use flopwatch_model::{NameId, RowId, count};

/// Bytes of a list of numbers that are waited for at once.
const PIECE_BYTES: usize = 1 << 20;
/// Items of any other list for which there is room before they come.
const FIRST_ITEMS: usize = 1 << 10;

/// A value that goes over.
pub(super) trait Wire: Sized {
    /// Sends it.
    fn put(&self, to: &mut impl Write) -> io::Result<()>;

    /// Takes one.
    fn take(from: &mut Source<impl Read>) -> io::Result<Self>;

    /// Sends several, without their number.
    fn put_all(items: &[Self], to: &mut impl Write) -> io::Result<()> {
        items.iter().try_for_each(|item| item.put(to))
    }

    /// Takes so many.
    fn take_all(length: usize, from: &mut Source<impl Read>) -> io::Result<Vec<Self>> {
        let mut items = Vec::with_capacity(length.min(FIRST_ITEMS));
        for _ in 0..length {
            items.push(Self::take(from)?);
        }
        Ok(items)
    }
}

/// Where values come from.
pub(super) struct Source<R> {
    from: R,
    /// Bytes that may still come.
    left: u64,
}

impl<R: Read> Source<R> {
    pub(super) fn new(from: R, most_bytes: u64) -> Self {
        Self { from, left: most_bytes }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.left = self.left.checked_sub(count(bytes.len())).ok_or_else(too_much)?;
        self.from.read_exact(bytes)
    }

    fn numbers<T: Pod + Default>(&mut self, length: usize) -> io::Result<Vec<T>> {
        let bytes = length.checked_mul(size_of::<T>()).ok_or_else(too_much)?;
        if count(bytes) > self.left {
            return Err(too_much());
        }
        let mut items: Vec<T> = Vec::new();
        // Addresses alone: what does not come takes no memory.
        items.try_reserve_exact(length).map_err(io::Error::other)?;
        let piece = PIECE_BYTES / size_of::<T>();
        while items.len() < length {
            let held = items.len();
            items.resize(length.min(held.saturating_add(piece)), T::default());
            self.fill(bytemuck::cast_slice_mut(items.get_mut(held..).unwrap_or_default()))?;
        }
        Ok(items)
    }
}

/// What came makes no value.
pub(super) fn wrong(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn too_much() -> io::Error {
    wrong("more bytes than it may take of memory")
}

pub(super) fn put_length(length: usize, to: &mut impl Write) -> io::Result<()> {
    count(length).put(to)
}

pub(super) fn take_length(from: &mut Source<impl Read>) -> io::Result<usize> {
    usize::try_from(u64::take(from)?).map_err(|_too_long| too_much())
}

macro_rules! numbers {
    ($($number:ty),+) => {$(
        impl Wire for $number {
            fn put(&self, to: &mut impl Write) -> io::Result<()> {
                to.write_all(bytemuck::bytes_of(self))
            }

            fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
                let mut number = Self::default();
                from.fill(bytemuck::bytes_of_mut(&mut number))?;
                Ok(number)
            }

            fn put_all(items: &[Self], to: &mut impl Write) -> io::Result<()> {
                to.write_all(bytemuck::cast_slice(items))
            }

            fn take_all(length: usize, from: &mut Source<impl Read>) -> io::Result<Vec<Self>> {
                from.numbers(length)
            }
        }
    )+};
}

numbers!(u8, u32, u64, i64, f64, RowId, NameId);

impl Wire for String {
    fn put(&self, to: &mut impl Write) -> io::Result<()> {
        put_length(self.len(), to)?;
        to.write_all(self.as_bytes())
    }

    fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
        let length = take_length(from)?;
        Self::from_utf8(from.numbers(length)?).map_err(|_bytes| wrong("a text that is no UTF-8"))
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, to: &mut impl Write) -> io::Result<()> {
        put_length(self.len(), to)?;
        T::put_all(self, to)
    }

    fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
        let length = take_length(from)?;
        T::take_all(length, from)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            None => 0_u8.put(to),
            Some(value) => {
                1_u8.put(to)?;
                value.put(to)
            }
        }
    }

    fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
        match u8::take(from)? {
            0 => Ok(None),
            1 => T::take(from).map(Some),
            _ => Err(wrong("neither a value nor none")),
        }
    }
}

impl<T: Wire, E: Wire> Wire for Result<T, E> {
    fn put(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Ok(value) => {
                0_u8.put(to)?;
                value.put(to)
            }
            Err(error) => {
                1_u8.put(to)?;
                error.put(to)
            }
        }
    }

    fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
        match u8::take(from)? {
            0 => T::take(from).map(Ok),
            1 => E::take(from).map(Err),
            _ => Err(wrong("neither a result nor an error")),
        }
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, to: &mut impl Write) -> io::Result<()> {
        self.0.put(to)?;
        self.1.put(to)
    }

    fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

impl<T: Wire> Wire for [T; 3] {
    fn put(&self, to: &mut impl Write) -> io::Result<()> {
        T::put_all(self, to)
    }

    fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
        Ok([T::take(from)?, T::take(from)?, T::take(from)?])
    }
}

impl<K: Wire + Ord, V: Wire> Wire for BTreeMap<K, V> {
    fn put(&self, to: &mut impl Write) -> io::Result<()> {
        put_length(self.len(), to)?;
        self.iter().try_for_each(|(key, value)| {
            key.put(to)?;
            value.put(to)
        })
    }

    fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
        let length = take_length(from)?;
        (0..length).map(|_| <(K, V)>::take(from)).collect()
    }
}

impl<T: Wire + Ord> Wire for BTreeSet<T> {
    fn put(&self, to: &mut impl Write) -> io::Result<()> {
        put_length(self.len(), to)?;
        self.iter().try_for_each(|item| item.put(to))
    }

    fn take(from: &mut Source<impl Read>) -> io::Result<Self> {
        let length = take_length(from)?;
        (0..length).map(|_| T::take(from)).collect()
    }
}
