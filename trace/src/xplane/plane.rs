//! A plane: its tables of names, and its lines, as slices of the file.

use std::io::Read;

use hashbrown::HashMap;

use crate::gzip::Members;
use crate::wire::{Damage, Message, Value};

/// Bytes that a compressed text may have when it is inflated. Details of a kernel have a hundred.
const LONGEST_TEXT: u64 = 1 << 20;

/// `XEventMetadata`: what events of one kind have in common.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kind<'a> {
    pub(super) name: &'a [u8],
    message: Option<Message<'a>>,
}

impl<'a> Kind<'a> {
    /// Statistics of the event.
    pub(super) fn stats(&self) -> impl Iterator<Item = Result<Message<'a>, Damage>> + use<'a> {
        let fields = self.message.into_iter().flat_map(Message::fields);
        fields.filter_map(|field| match field {
            Ok((5, value)) => value.message().map(Ok),
            Ok(_) => None,
            Err(damage) => Some(Err(damage)),
        })
    }
}

/// `XPlane`: id 1, name 2, lines 3, kinds of events 4, names of statistics 5, statistics 6.
#[derive(Debug, Default)]
pub(super) struct Plane<'a> {
    pub(super) name: &'a [u8],
    pub(super) lines: Vec<Message<'a>>,
    kinds: HashMap<u64, Kind<'a>>,
    stat_names: HashMap<u64, &'a [u8]>,
    pub(super) stats: Vec<Message<'a>>,
}

/// Value of a statistic.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stat {
    Integer(u64),
    Double(f64),
    Text(Vec<u8>),
}

impl Stat {
    pub(super) fn integer(&self) -> Option<u64> {
        match self {
            Self::Integer(value) => Some(*value),
            Self::Double(_) | Self::Text(_) => None,
        }
    }
}

impl<'a> Plane<'a> {
    pub(super) fn read(message: Message<'a>) -> Result<Self, Damage> {
        let mut plane = Self::default();
        for field in message.fields() {
            let (number, value) = field?;
            match number {
                2 => plane.name = value.bytes().unwrap_or_default(),
                3 => plane.lines.extend(value.message()),
                4 => {
                    if let Some((id, Some(kind))) = entry(value)? {
                        plane.kinds.insert(id, read_kind(kind)?);
                    }
                }
                5 => {
                    if let Some((id, Some(stat))) = entry(value)? {
                        plane.stat_names.insert(id, text_of(stat, 2)?);
                    }
                }
                6 => plane.stats.extend(value.message()),
                _ => {}
            }
        }
        Ok(plane)
    }

    /// What the events of this id are.
    pub(super) fn kind(&self, id: u64) -> Option<&Kind<'a>> {
        self.kinds.get(&id)
    }

    /// All kinds of events, by name.
    pub(super) fn kinds(&self) -> Vec<&Kind<'a>> {
        let mut kinds: Vec<_> = self.kinds.values().collect();
        kinds.sort_unstable_by_key(|kind| kind.name);
        kinds
    }

    /// `XStat`: id 1, then one of double 2, unsigned 3, signed 4, text 5, bytes 6, id of a text 7,
    /// gzip of a text 8. Gives its name and, where `wanted` says so, its value.
    pub(super) fn stat(
        &self,
        message: Message<'a>,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<(&'a [u8], Stat)>, Damage> {
        let mut name: &[u8] = &[];
        let mut found = None;
        for field in message.fields() {
            let (number, value) = field?;
            match number {
                1 => {
                    let id = value.number().unwrap_or(0);
                    name = self.stat_names.get(&id).copied().unwrap_or_default();
                    if !wanted(name) {
                        return Ok(None);
                    }
                }
                2..=8 => found = Some((number, value)),
                _ => {}
            }
        }
        let stat = found.and_then(|(number, value)| self.value(number, value));
        Ok(stat.filter(|_| wanted(name)).map(|stat| (name, stat)))
    }

    fn value(&self, number: u64, value: Value<'a>) -> Option<Stat> {
        match (number, value) {
            (2, Value::Fixed(bits)) => Some(Stat::Double(f64::from_bits(bits))),
            (3 | 4, Value::Number(number)) => Some(Stat::Integer(number)),
            (5 | 6, Value::Bytes(text)) => Some(Stat::Text(text.bytes.to_vec())),
            (7, Value::Number(id)) => self.stat_names.get(&id).map(|text| Stat::Text(text.to_vec())),
            (8, Value::Bytes(packed)) => {
                let mut text = Vec::new();
                let inflate = Members::new(packed.bytes);
                inflate.take(LONGEST_TEXT).read_to_end(&mut text).ok()?;
                Some(Stat::Text(text))
            }
            _ => None,
        }
    }
}

/// Key and value of a map's entry.
fn entry(value: Value<'_>) -> Result<Option<(u64, Option<Message<'_>>)>, Damage> {
    let Some(message) = value.message() else {
        return Ok(None);
    };
    let mut key = 0;
    let mut inside = None;
    for field in message.fields() {
        match field? {
            (1, value) => key = value.number().unwrap_or(0),
            (2, value) => inside = value.message(),
            _ => {}
        }
    }
    Ok(Some((key, inside)))
}

fn text_of(message: Message<'_>, wanted: u64) -> Result<&[u8], Damage> {
    let mut text: &[u8] = &[];
    for field in message.fields() {
        let (number, value) = field?;
        if number == wanted {
            text = value.bytes().unwrap_or_default();
        }
    }
    Ok(text)
}

/// `XEventMetadata`: id 1, name 2, metadata 3, name to show 4, statistics 5.
fn read_kind(message: Message<'_>) -> Result<Kind<'_>, Damage> {
    let name = text_of(message, 2)?;
    let shown = text_of(message, 4)?;
    Ok(Kind {
        name: if shown.is_empty() { name } else { shown },
        message: Some(message),
    })
}
