//! Sections of a report: their names, and the roofline charts that they define.
//!
//! A report holds the sections that it was made with, so that the formulas of its own version are
//! at hand (`ProfilerSection.proto`).

use super::rules::text;
use crate::wire::{Damage, Message, Value};
use flopwatch_model::{RooflineChart, RooflineSide, RooflineValue};

/// Most containers in containers of a section's body.
const MAX_NESTED: usize = 8;

/// What a section is called in NVIDIA's files; its charts go to `charts`.
pub(super) fn read(value: Value<'_>, charts: &mut Vec<RooflineChart>) -> Result<String, Damage> {
    let mut name = String::new();
    let before = charts.len();
    for field in fields(value) {
        match field? {
            (1, value) => name = text(value),
            (5, body) => items(body, charts, MAX_NESTED)?,
            _ => {}
        }
    }
    for chart in charts.iter_mut().skip(before) {
        chart.section.clone_from(&name);
    }
    Ok(name)
}

fn fields(value: Value<'_>) -> impl Iterator<Item = Result<(u64, Value<'_>), Damage>> {
    value.message().into_iter().flat_map(Message::fields)
}

/// The items of a body, or of a container in it.
fn items(value: Value<'_>, charts: &mut Vec<RooflineChart>, nested: usize) -> Result<(), Damage> {
    for item in fields(value) {
        let (1, item) = item? else { continue };
        for field in fields(item) {
            match field? {
                (5, container) if nested > 0 => items(container, charts, nested - 1)?,
                (6, found) => charts.push(chart(found)?),
                _ => {}
            }
        }
    }
    Ok(())
}

fn chart(value: Value<'_>) -> Result<RooflineChart, Damage> {
    let mut chart = RooflineChart::default();
    for field in fields(value) {
        match field? {
            (4, roof) => chart.roofs.push(side(roof)?),
            (5, point) => chart.points.push(side(point)?),
            _ => {}
        }
    }
    Ok(chart)
}

fn side(found: Value<'_>) -> Result<RooflineSide, Damage> {
    let mut side = RooflineSide::default();
    for field in fields(found) {
        match field? {
            (1, work) => side.work = value(work)?,
            (2, traffic) => side.traffic = value(traffic)?,
            (3, options) => side.label = first_text(options)?,
            _ => {}
        }
    }
    Ok(side)
}

fn value(found: Value<'_>) -> Result<RooflineValue, Damage> {
    let mut value = RooflineValue::default();
    for field in fields(found) {
        match field? {
            (1, Value::Fixed(bits)) => value = RooflineValue::Constant(f64::from_bits(bits)),
            (2, metric) => value = RooflineValue::Metric(first_text(metric)?),
            (3, expression) => {
                let (mut metrics, mut clock) = (Vec::new(), String::new());
                for field in fields(expression) {
                    match field? {
                        (1, metric) => metrics.push(first_text(metric)?),
                        (2, metric) => clock = first_text(metric)?,
                        _ => {}
                    }
                }
                value = RooflineValue::PerCycle { metrics, clock };
            }
            _ => {}
        }
    }
    Ok(value)
}

/// Field 1, where names and labels are.
fn first_text(value: Value<'_>) -> Result<String, Damage> {
    let mut found = String::new();
    for field in fields(value) {
        if let (1, value) = field? {
            found = text(value);
        }
    }
    Ok(found)
}
