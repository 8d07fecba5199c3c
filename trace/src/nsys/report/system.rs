//! The GPUs of the machines that were recorded.

use super::ReportError;
use super::container::message;
use super::layout::{DEVICE, DEVICES, MIG};
use super::rows::Rows;
use crate::wire::Message;

const SYSTEM: &str = "the description of the system";

/// A machine is known to have no more GPUs than this.
const MAX_GPUS: usize = 1 << 12;

/// The table of GPUs: each machine 1 has a description 2, and that a GPU 7 or more. What else it
/// says is passed over.
pub(super) fn gpus(system: &[u8], offset: u64) -> Result<Rows, ReportError> {
    let mut rows = Rows::new(&DEVICES);
    for machine in messages(message(system, offset), 1)? {
        for described in messages(machine, 2)? {
            for gpu in messages(described, 7)? {
                if rows.len() >= MAX_GPUS {
                    return Err(ReportError::TooMany {
                        what: "GPUs",
                        limit: u64::try_from(MAX_GPUS).unwrap_or(u64::MAX),
                    });
                }
                push(&mut rows, gpu)?;
            }
        }
    }
    Ok(rows)
}

/// Adds a GPU: its name 2, its UUID 5, and of a MIG instance which one it is 46.
fn push(rows: &mut Rows, gpu: Message<'_>) -> Result<(), ReportError> {
    let mut row = [0; 16];
    let (mut name, mut uuid, mut mig) = (&[][..], &[][..], None);
    for field in gpu.fields() {
        let (number, value) = field.map_err(ReportError::of(SYSTEM))?;
        match number {
            2 => name = value.bytes().unwrap_or_default(),
            5 => uuid = value.bytes().unwrap_or_default(),
            46 => mig = value.message(),
            number => DEVICE.set(number, value, &mut row),
        }
    }
    if let Some(mig) = mig {
        let numbers = row.get_mut(DEVICE.count()..).unwrap_or_default();
        MIG.fill(mig, numbers).map_err(ReportError::of(SYSTEM))?;
        // An absent number is 0, and so the first instance.
        for number in numbers.iter_mut().take(MIG.count()) {
            *number = number.saturating_add(1);
        }
    }
    let numbers = DEVICE.count().saturating_add(MIG.count());
    rows.push(row.get(..numbers).unwrap_or_default(), &[name, uuid]);
    Ok(())
}

/// The messages that are the fields `wanted`.
fn messages(of: Message<'_>, wanted: u64) -> Result<Vec<Message<'_>>, ReportError> {
    let mut found = Vec::new();
    for field in of.fields() {
        let (number, value) = field.map_err(ReportError::of(SYSTEM))?;
        found.extend(value.message().filter(|_| number == wanted));
    }
    Ok(found)
}
