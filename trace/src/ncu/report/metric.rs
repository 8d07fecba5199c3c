//! A metric of a result: the value of the launch, and those of its parts.

use crate::wire::{Damage, Message, Value};
use flopwatch_model::{Instances, MetricValue, ValueList, index};

/// A metric of a result.
#[derive(Debug, Default)]
pub(super) struct Metric<'a> {
    /// Id of its name.
    pub(super) name: u32,
    /// The launch's value.
    pub(super) value: Option<MetricValue>,
    /// Values beside that one, such as one per instruction, not read yet.
    parts: Vec<Value<'a>>,
}

impl<'a> Metric<'a> {
    pub(super) fn read(value: Value<'a>) -> Result<Self, Damage> {
        let mut metric = Self {
            name: u32::MAX,
            ..Self::default()
        };
        for field in value.message().into_iter().flat_map(Message::fields) {
            let (number, value) = field?;
            match number {
                1 => {
                    let id = value.number().and_then(|id| u32::try_from(id).ok());
                    metric.name = id.unwrap_or(u32::MAX);
                }
                2 => metric.value = number_or_text(value)?,
                3 => metric.parts.push(value),
                _ => {}
            }
        }
        Ok(metric)
    }

    pub(super) fn is_named(&self, strings: &[&[u8]], name: &[u8]) -> bool {
        strings.get(index(self.name)).is_some_and(|known| *known == name)
    }

    /// How many values it has beside the launch's.
    pub(super) fn parts(&self) -> u64 {
        u64::try_from(self.parts.len()).unwrap_or(u64::MAX)
    }

    /// Those values. A part without a value is left out; keys that not all parts have are none.
    pub(super) fn instances(&self) -> Result<Instances, Damage> {
        let (mut keys, mut values) = (
            Vec::with_capacity(self.parts.len()),
            Vec::with_capacity(self.parts.len()),
        );
        for part in &self.parts {
            let (mut key, mut found) = (None, None);
            for field in part.message().into_iter().flat_map(Message::fields) {
                match field? {
                    (1, value) => key = number_or_text(value)?,
                    (2, value) => found = number_or_text(value)?,
                    _ => {}
                }
            }
            if let Some(value) = found {
                keys.extend(key);
                values.push(value);
            }
        }
        if keys.len() != values.len() {
            keys.clear();
        }
        Ok(Instances {
            keys: list(keys),
            values: list(values),
        })
    }
}

/// Values of one type: whole numbers, numbers, or else words.
fn list(values: Vec<MetricValue>) -> ValueList {
    let integers = values.iter().map(|value| match value {
        MetricValue::Integer(number) => Some(*number),
        MetricValue::Number(_) | MetricValue::Text(_) => None,
    });
    if let Some(integers) = integers.collect() {
        return ValueList::Integers(integers);
    }
    if let Some(numbers) = values.iter().map(MetricValue::number).collect() {
        return ValueList::Numbers(numbers);
    }
    let words = values.into_iter().map(|value| match value {
        MetricValue::Text(text) => text,
        MetricValue::Integer(number) => number.to_string(),
        MetricValue::Number(number) => number.to_string(),
    });
    ValueList::Texts(words.collect())
}

fn number_or_text(value: Value<'_>) -> Result<Option<MetricValue>, Damage> {
    let mut found = None;
    for field in value.message().into_iter().flat_map(Message::fields) {
        found = match field? {
            (1, Value::Bytes(text)) => Some(MetricValue::Text(String::from_utf8_lossy(text.bytes).into_owned())),
            (2, Value::Fixed32(bits)) => Some(MetricValue::Number(f32::from_bits(bits).into())),
            (3, Value::Fixed(bits)) => Some(MetricValue::Number(f64::from_bits(bits))),
            (4 | 5, Value::Number(number)) => Some(MetricValue::Integer(number)),
            _ => found,
        };
    }
    Ok(found)
}
