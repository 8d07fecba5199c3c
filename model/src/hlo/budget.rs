//! How much a message may become: a field of two bytes must not become an instruction of hundreds without end.

use super::ReadError;
use crate::wire::{Message, Value};

/// Bytes that a module may take in memory.
const LIMIT: usize = 512 << 20;

/// What is left of that.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { left: LIMIT }
    }

    /// Takes so many bytes.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), ReadError> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or(ReadError::TooLarge { limit: LIMIT })?;
        Ok(())
    }

    /// Takes room for a `T`.
    pub(super) fn one<T>(&mut self) -> Result<(), ReadError> {
        self.take(size_of::<T>())
    }

    /// A field of text; empty of another type of field.
    pub(super) fn text(&mut self, value: Value<'_>) -> Result<String, ReadError> {
        let bytes = value.bytes().unwrap_or_default();
        self.take(bytes.len())?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Integers of a repeated field, packed or one by one, behind those that are there.
    pub(super) fn numbers(&mut self, value: Value<'_>, numbers: &mut Vec<u64>) -> Result<(), ReadError> {
        if let Some(number) = value.number() {
            self.one::<u64>()?;
            numbers.push(number);
        }
        let packed = value.message().map(Message::packed);
        for number in packed.into_iter().flatten() {
            self.one::<u64>()?;
            numbers.push(number?);
        }
        Ok(())
    }
}
