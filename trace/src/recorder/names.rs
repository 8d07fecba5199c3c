//! The tables of names, labels and domains.

use std::borrow::Cow;
use std::collections::BTreeMap;

use flopwatch_ring::header::{DOMAINS, DOMAINS_AT};
use flopwatch_ring::label::{self, OF_CATEGORY, OF_THREAD, of_key};
use flopwatch_ring::name::{CUT, LENGTH_AT, TEXT_AT, TEXT_BYTES};

use super::segments::Name;
use super::{Failure, Ring, half, word};
use crate::limits::ReadLimits;
use crate::redact;

/// The tables of a file.
pub(super) struct Tables<'a> {
    ring: &'a Ring,
    limits: &'a ReadLimits,
    string_bytes: u64,
    /// Secrets that were replaced.
    pub(super) redactions: u64,
    /// Names that are shorter than the program's.
    pub(super) cut: u64,
}

impl<'a> Tables<'a> {
    pub(super) fn new(ring: &'a Ring, limits: &'a ReadLimits) -> Self {
        Self {
            ring,
            limits,
            string_bytes: 0,
            redactions: 0,
            cut: 0,
        }
    }

    /// The text of a name, fit to be published; empty for none.
    pub(super) fn text(&mut self, name: &Name) -> Result<String, Failure> {
        let (raw, cut) = match name {
            Name::Text(text) => (text.as_slice(), false),
            Name::Number(number) => self.entry(*number),
        };
        self.cut += u64::from(cut);
        let whole = whole(raw);
        let length = u64::try_from(whole.len()).unwrap_or(u64::MAX);
        self.string_bytes = self.string_bytes.saturating_add(length);
        let limit = self.limits.max_string_bytes;
        if self.string_bytes > limit {
            let what = "bytes of strings";
            return Err(Failure::TooMany { what, limit });
        }
        let (clean, count) = publishable(whole);
        self.redactions = self.redactions.saturating_add(count);
        Ok(clean)
    }

    /// What the table of names holds at a number, and whether the text was longer.
    fn entry(&self, number: u16) -> (&'a [u8], bool) {
        let position = usize::from(number).checked_sub(1);
        let Some(at) = position.and_then(|position| self.ring.layout.name(position)) else {
            return (&[], false);
        };
        of_entry(self.ring.bytes.get(at..).unwrap_or_default())
    }

    /// Names of the domains by their numbers.
    pub(super) fn domains(&mut self) -> Result<BTreeMap<u8, String>, Failure> {
        let mut domains = BTreeMap::new();
        for domain in 1..DOMAINS {
            let number = half(&self.ring.bytes, DOMAINS_AT + domain * 4);
            if let (Ok(domain), Ok(number)) = (u8::try_from(domain), u16::try_from(number))
                && number != 0
            {
                domains.insert(domain, self.text(&Name::Number(number))?);
            }
        }
        Ok(domains)
    }

    /// Names of threads by their numbers, and of categories by domain and number.
    pub(super) fn labels(&mut self) -> Result<Labels, Failure> {
        let mut labels = Labels::default();
        for at in 0..label::ENTRIES {
            let at = label::TABLE_AT + at * label::BYTES;
            let (kind, domain, number) = of_key(word(&self.ring.bytes, at));
            let name = half(&self.ring.bytes, at + label::NAME_AT);
            let name = Name::Number(u16::try_from(name).unwrap_or(0));
            match kind {
                OF_THREAD => {
                    labels.threads.insert(number, self.text(&name)?);
                }
                OF_CATEGORY => {
                    labels.categories.insert((domain, number), self.text(&name)?);
                }
                _ => {}
            }
        }
        Ok(labels)
    }
}

/// What threads and categories are called.
#[derive(Debug, Default)]
pub(super) struct Labels {
    pub(super) threads: BTreeMap<u32, String>,
    pub(super) categories: BTreeMap<(u8, u32), String>,
}

/// The text that an entry of the table of names holds, and whether it was longer.
pub(super) fn of_entry(entry: &[u8]) -> (&[u8], bool) {
    let length_word = half(entry, LENGTH_AT);
    let length = usize::try_from(length_word & !CUT).map_or(TEXT_BYTES, |length| length.min(TEXT_BYTES));
    let text = entry.get(TEXT_AT..).and_then(|text| text.get(..length));
    (text.unwrap_or_default(), length_word & CUT != 0)
}

/// A text fit to be published, and how many secrets were replaced in it.
pub(super) fn publishable(raw: &[u8]) -> (String, u64) {
    let text = String::from_utf8_lossy(raw).replace('\0', "\u{fffd}");
    let (clean, count) = redact::redact(&text);
    match clean {
        Cow::Owned(clean) => (clean, count),
        Cow::Borrowed(_) => (text, count),
    }
}

/// A text less its last character, where that is not all there since the text was cut.
pub(super) fn whole(raw: &[u8]) -> &[u8] {
    match std::str::from_utf8(raw) {
        Err(error) if error.error_len().is_none() => raw.get(..error.valid_up_to()).unwrap_or_default(),
        _ => raw,
    }
}
