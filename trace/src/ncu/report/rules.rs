//! What NVIDIA's own rules said when the report was made: messages with what they are worth.

use crate::wire::{Damage, Message, Value};
use flopwatch_model::{FocusMetric, RuleKind, RuleResult, Scope, Speedup};

/// The messages of a rule's result. A rule that found nothing has none.
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
            messages.extend(item(value, &rule)?);
        }
    }
    Ok(())
}

/// The message of an item of a rule's body. An item without one is a table or a chart.
fn item(value: Value<'_>, rule: &RuleResult) -> Result<Option<RuleResult>, Damage> {
    let mut result = rule.clone();
    let mut is_message = false;
    for field in value.message().into_iter().flat_map(Message::fields) {
        match field? {
            (1, value) => {
                is_message = true;
                for field in value.message().into_iter().flat_map(Message::fields) {
                    match field? {
                        (1, value) => result.text = text(value),
                        (2, value) => result.kind = kind(value),
                        (4, value) => result.title = text(value),
                        _ => {}
                    }
                }
            }
            (8, value) => result.metrics.push(focus(value)?),
            (10, value) => result.speedup = speedup(value)?,
            _ => {}
        }
    }
    Ok(is_message.then_some(result))
}

const fn kind(value: Value<'_>) -> RuleKind {
    match value {
        Value::Number(2) => RuleKind::Warning,
        Value::Number(3) => RuleKind::Error,
        // Since 2024; older versions call what is one a warning.
        Value::Number(4) => RuleKind::Optimization,
        _ => RuleKind::Information,
    }
}

fn focus(value: Value<'_>) -> Result<FocusMetric, Damage> {
    let mut metric = FocusMetric::default();
    for field in value.message().into_iter().flat_map(Message::fields) {
        match field? {
            (2, value) => metric.name = text(value),
            (3, value) => metric.value = finite(value),
            (5, value) => metric.info = text(value),
            _ => {}
        }
    }
    Ok(metric)
}

fn speedup(value: Value<'_>) -> Result<Option<Speedup>, Damage> {
    let (mut scope, mut percent) = (Scope::Unknown, None);
    for field in value.message().into_iter().flat_map(Message::fields) {
        match field? {
            (1, Value::Number(1)) => scope = Scope::Local,
            (1, Value::Number(2)) => scope = Scope::Global,
            (2, value) => percent = finite(value),
            _ => {}
        }
    }
    Ok(percent.map(|percent| Speedup { percent, scope }))
}

fn finite(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Fixed(bits) => Some(f64::from_bits(bits)).filter(|number| number.is_finite()),
        Value::Number(_) | Value::Bytes(_) | Value::Fixed32(_) => None,
    }
}

pub(super) fn text(value: Value<'_>) -> String {
    String::from_utf8_lossy(value.bytes().unwrap_or_default()).into_owned()
}
