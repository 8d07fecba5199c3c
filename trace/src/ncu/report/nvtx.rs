//! Annotated ranges that were open when a launch was made.

use hashbrown::HashMap;

use super::rules::text;
use crate::wire::{Damage, Message, Value};
use flopwatch_model::OpenRange;

/// A domain of annotations.
#[derive(Debug, Default)]
struct Domain {
    name: String,
    /// Strings that were registered with it, by their handle.
    strings: HashMap<u64, String>,
}

/// The ranges of the state `value`: those on threads' stacks, then those that no thread owns.
pub(super) fn read(value: Value<'_>, ranges: &mut Vec<OpenRange>) -> Result<(), Damage> {
    let Some(state) = value.message() else { return Ok(()) };
    let mut domains: HashMap<u64, Domain> = HashMap::new();
    // What refers to domains may stand before them.
    for field in state.fields() {
        if let (1, value) = field? {
            let (id, found) = domain(value)?;
            domains.insert(id, found);
        }
    }
    for field in state.fields() {
        match field? {
            (2, value) => {
                let thread = number(value, 1)?;
                let thread = thread.map(|thread| u32::try_from(thread).unwrap_or(u32::MAX));
                for field in fields(value) {
                    if let (2, stack) = field? {
                        push(stack, 1, &domains, thread.or(Some(0)), ranges)?;
                    }
                }
            }
            (3, value) => push(value, 2, &domains, None, ranges)?,
            _ => {}
        }
    }
    Ok(())
}

fn fields(value: Value<'_>) -> impl Iterator<Item = Result<(u64, Value<'_>), Damage>> {
    value.message().into_iter().flat_map(Message::fields)
}

/// The last number in the field `wanted`.
fn number(value: Value<'_>, wanted: u64) -> Result<Option<u64>, Damage> {
    let mut found = None;
    for field in fields(value) {
        let (field, value) = field?;
        if field == wanted {
            found = value.number();
        }
    }
    Ok(found)
}

fn domain(value: Value<'_>) -> Result<(u64, Domain), Damage> {
    let mut domain = Domain::default();
    let id = number(value, 1)?.unwrap_or(0);
    for field in fields(value) {
        match field? {
            (2, value) => domain.name = text(value),
            (3, value) => {
                let handle = number(value, 1)?.unwrap_or(0);
                for field in fields(value) {
                    if let (2, value) = field? {
                        domain.strings.insert(handle, text(value));
                    }
                }
            }
            _ => {}
        }
    }
    Ok((id, domain))
}

/// Adds the ranges of a stack or a set; `name` is the field in which a range has its name.
fn push(
    value: Value<'_>,
    name: u64,
    domains: &HashMap<u64, Domain>,
    thread: Option<u32>,
    ranges: &mut Vec<OpenRange>,
) -> Result<(), Damage> {
    let domain = domains.get(&number(value, 1)?.unwrap_or(0));
    for field in fields(value) {
        let (3, range) = field? else { continue };
        let mut open = OpenRange {
            domain: domain.map_or_else(String::new, |domain| domain.name.clone()),
            thread,
            ..OpenRange::default()
        };
        let mut message = None;
        for field in fields(range) {
            let (field, value) = field?;
            if field == name {
                open.name = text(value);
            } else if field == name + 1 {
                message = Some(value);
            }
        }
        if open.name.is_empty()
            && let Some(attributes) = message
        {
            open.name = of_attributes(attributes, domain)?;
        }
        ranges.push(open);
    }
    Ok(())
}

/// The text of a range's attributes: its own, or that of a registered string.
fn of_attributes(value: Value<'_>, domain: Option<&Domain>) -> Result<String, Damage> {
    let mut found = String::new();
    for field in fields(value) {
        let (5, message) = field? else { continue };
        for field in fields(message) {
            match field? {
                (2, value) => found = text(value),
                (3, Value::Number(handle)) if found.is_empty() => {
                    let known = domain.and_then(|domain| domain.strings.get(&handle));
                    found = known.cloned().unwrap_or_default();
                }
                _ => {}
            }
        }
    }
    Ok(found)
}
