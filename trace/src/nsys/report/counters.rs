//! Samples of the GPUs' hardware counters, which are generic events of one source.

use hashbrown::HashMap;

use super::layout::METRICS;
use super::rows::Rows;
use super::session::{GenericField, GenericType, Session};

/// Name of the source.
const SOURCE: &[u8] = b"GpuMetrics";

/// The clock of the session among those of sources.
const SESSION_CLOCK: u64 = 3;

/// The kinds of generic events that are samples of counters.
#[derive(Debug)]
pub(super) struct Counters<'a> {
    types: HashMap<u64, &'a [GenericField]>,
    names: Vec<(u64, u64, Vec<u8>)>,
}

impl<'a> Counters<'a> {
    pub(super) fn new(session: &'a Session, strings: &Rows) -> Self {
        let name = |id: u64| text(strings, id);
        let sources = session.sources.iter();
        let of_counters = sources.filter(|source| source.clock == SESSION_CLOCK && name(source.name) == SOURCE);
        let domains: Vec<u64> = of_counters.map(|source| domain(source.id)).collect();
        let types = session.types.iter().filter(|kind| domains.contains(&domain(kind.id)));
        let mut counters = Self {
            types: HashMap::new(),
            names: Vec::new(),
        };
        for GenericType { id, fields } in types {
            counters.types.insert(*id, fields);
            let fields = (0_u64..).zip(fields);
            counters
                .names
                .extend(fields.map(|(at, field)| (*id, at, name(field.name).to_vec())));
        }
        counters
    }

    /// The fields of a sample of that kind; `None` where it is another kind of event.
    pub(super) fn fields(&self, kind: u64) -> Option<&'a [GenericField]> {
        self.types.get(&kind).copied()
    }

    /// The table of the counters' names.
    pub(super) fn names(&self) -> Rows {
        let mut rows = Rows::new(&METRICS);
        for (kind, metric, name) in &self.names {
            rows.push(&[*kind, *metric], &[name]);
        }
        rows
    }
}

/// What a type and its source have in common.
fn domain(id: u64) -> u64 {
    id >> 32
}

fn text(strings: &Rows, id: u64) -> &[u8] {
    let numbers = strings.text_numbers("value");
    let row = usize::try_from(id).ok();
    let number = numbers.zip(row).map(|(numbers, row)| numbers.get(row));
    number.map_or(&[], |number| strings.text(number))
}

impl GenericField {
    /// Its value in the data of an event, as the bits of a signed number; `None` where it is no
    /// integer, or not there.
    pub(super) fn value(self, data: &[u8]) -> Option<u64> {
        if self.is_float || !matches!(self.size, 1 | 2 | 4 | 8) {
            return None;
        }
        let begin = usize::try_from(self.offset).ok()?;
        let size = usize::try_from(self.size).ok()?;
        let stored = data.get(begin..begin.checked_add(size)?)?;
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(stored).for_each(|(into, from)| *into = *from);
        let value = u64::from_le_bytes(bytes);
        let spare = u32::try_from(64 - size * 8).ok()?;
        if self.is_signed {
            return Some(((value << spare).cast_signed() >> spare).cast_unsigned());
        }
        // Nothing counts so far.
        Some(value.min(i64::MAX.cast_unsigned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_wide_and_as_signed_as_their_field_says() {
        let data = [0xff, 0xff, 0xff, 0xff, 7, 0, 0, 0, 0xfe];
        let field = |offset, size, is_signed| GenericField {
            offset,
            size,
            is_signed,
            ..GenericField::default()
        };
        assert_eq!(field(0, 4, false).value(&data), Some(0xffff_ffff));
        assert_eq!(field(0, 4, true).value(&data), Some(u64::MAX));
        assert_eq!(field(8, 1, true).value(&data), Some((-2_i64).cast_unsigned()));
        assert_eq!(field(4, 2, false).value(&data), Some(7));
        assert_eq!(field(0, 8, false).value(&data), Some(0x7_ffff_ffff));
        for none in [field(8, 2, false), field(u64::MAX, 4, false), field(0, 3, false)] {
            assert_eq!(none.value(&data), None);
        }
        let float = GenericField {
            is_float: true,
            ..field(0, 4, false)
        };
        assert_eq!(float.value(&data), None);
    }
}
