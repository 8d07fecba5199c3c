//! Messages of NVIDIA's own rules in a report of Nsight Compute: their text, how much they matter,
//! the metrics that they point at, and the speed-up that they estimate.
//!
//! A report is a protobuf message, which has numbers and no names for its fields.

use crate::wire::{Damage, Message, Value};
use flopwatch_model::{FocusMetric, RuleKind, RuleResult, Scope, Speedup};

/// Adds the messages of a rule's result to `messages`. Field 1 is the rule's identifier, 2 its
/// name, 3 its body and 4 its section. A rule that found nothing adds no message.
pub(super) fn read(value: Value<'_>, messages: &mut Vec<RuleResult>) -> Result<(), Damage> {
    let Some(message) = value.message() else { return Ok(()) };
    let mut rule = RuleResult::default();
    let mut body = None;
    for field in message.fields() {
        match field? {
            (1, value) => rule.rule = text(value),
            (2, value) => rule.name = text(value),
            (3, value) => body = value.message(),
            (4, value) => rule.section = text(value),
            _ => {}
        }
    }
    for field in body.into_iter().flat_map(Message::fields) {
        if let (1, value) = field? {
            messages.extend(read_item(value, &rule)?);
        }
    }
    Ok(())
}

/// Reads the message of an item of a rule's body. Field 1 holds the message's text, kind and title,
/// 8 a metric and 10 the speed-up. An item without field 1 is a table or a chart, and gives none.
fn read_item(value: Value<'_>, rule: &RuleResult) -> Result<Option<RuleResult>, Damage> {
    let mut result = rule.clone();
    let mut is_message = false;
    for field in value.message().into_iter().flat_map(Message::fields) {
        match field? {
            (1, value) => {
                is_message = true;
                for field in value.message().into_iter().flat_map(Message::fields) {
                    match field? {
                        (1, value) => result.text = text(value),
                        (2, value) => result.kind = kind_of(value),
                        (4, value) => result.title = text(value),
                        _ => {}
                    }
                }
            }
            (8, value) => result.metrics.push(read_metric(value)?),
            (10, value) => result.speedup = read_speedup(value)?,
            _ => {}
        }
    }
    Ok(is_message.then_some(result))
}

/// How much a message matters.
const fn kind_of(value: Value<'_>) -> RuleKind {
    match value {
        Value::Number(2) => RuleKind::Warning,
        Value::Number(3) => RuleKind::Error,
        // Written since 2024: older versions call an optimization a warning.
        Value::Number(4) => RuleKind::Optimization,
        _ => RuleKind::Information,
    }
}

/// Reads a metric that a message points at. Field 2 is its name, 3 its value and 5 the note on it.
fn read_metric(value: Value<'_>) -> Result<FocusMetric, Damage> {
    let mut metric = FocusMetric::default();
    for field in value.message().into_iter().flat_map(Message::fields) {
        match field? {
            (2, value) => metric.name = text(value),
            (3, value) => metric.value = finite_double(value),
            (5, value) => metric.info = text(value),
            _ => {}
        }
    }
    Ok(metric)
}

/// Reads the speed-up that a message estimates. Field 1 is its scope and 2 its percent, without
/// which there is none.
fn read_speedup(value: Value<'_>) -> Result<Option<Speedup>, Damage> {
    let (mut scope, mut percent) = (Scope::Unknown, None);
    for field in value.message().into_iter().flat_map(Message::fields) {
        match field? {
            (1, Value::Number(1)) => scope = Scope::Local,
            (1, Value::Number(2)) => scope = Scope::Global,
            (2, value) => percent = finite_double(value),
            _ => {}
        }
    }
    Ok(percent.map(|percent| Speedup { percent, scope }))
}

/// The double that a value is; none where it is no double, or is infinite or no number.
fn finite_double(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Fixed(bits) => Some(f64::from_bits(bits)).filter(|number| number.is_finite()),
        Value::Number(_) | Value::Bytes(_) | Value::Fixed32(_) => None,
    }
}

/// The text of a value; empty where it is none.
pub(super) fn text(value: Value<'_>) -> String {
    String::from_utf8_lossy(value.bytes().unwrap_or_default()).into_owned()
}
