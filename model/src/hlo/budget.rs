//! Bounds the memory that a parsed HLO module takes: a field of two bytes in a message becomes an
//! instruction of hundreds of bytes, so that the size of the message is no bound.

use super::ReadError;
use crate::wire::{Message, Value};

/// Maximum size of a parsed module in memory, in bytes: 512 MiB.
const MAX_MODULE_BYTES: usize = 512 << 20;

/// Number of bytes of [`MAX_MODULE_BYTES`] that a module may still take.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { left: MAX_MODULE_BYTES }
    }

    /// Takes `bytes` from the budget. Fails where less is left.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), ReadError> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or(ReadError::TooLarge {
            limit: MAX_MODULE_BYTES,
        })?;
        Ok(())
    }

    /// Takes the size of a `T` from the budget. Fails where less is left.
    pub(super) fn one<T>(&mut self) -> Result<(), ReadError> {
        self.take(size_of::<T>())
    }

    /// The text of a field, with its bytes taken from the budget; empty where the field is of
    /// another type.
    pub(super) fn text(&mut self, value: Value<'_>) -> Result<String, ReadError> {
        let bytes = value.bytes().unwrap_or_default();
        self.take(bytes.len())?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Appends the integers of a repeated field, packed or not, to `numbers`, with their bytes
    /// taken from the budget.
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
