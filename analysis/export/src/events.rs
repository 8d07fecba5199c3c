//! The earliest events as JSON, for programs that ask for a few and have no reader of anything
//! else.

use std::io::{BufWriter, Write};

use flopwatch_measures::record::{Cells, Field, Kind};
use flopwatch_model::Timeline;

use crate::{ExportCounts, ExportError, MAX_EVENTS};

/// Writes the earliest events of `timeline`, [`MAX_EVENTS`] at most.
pub fn write<W: Write>(timeline: &Timeline, out: W) -> Result<ExportCounts, ExportError> {
    up_to(timeline, MAX_EVENTS, out)
}

fn up_to<W: Write>(timeline: &Timeline, max: u64, out: W) -> Result<ExportCounts, ExportError> {
    let mut out = BufWriter::new(out);
    let capture = &timeline.capture;
    out.write_all(b"{\"session_id\":")?;
    serde_json::to_writer(&mut out, &timeline.session_id)?;
    let (duration, total) = (capture.duration_ns, timeline.total_events());
    write!(
        out,
        ",\"total_duration_ns\":{duration},\"total_events\":{total},\"events\":["
    )?;
    let mut parts: Vec<(Cells<'_>, usize)> = capture
        .events
        .iter()
        .map(|(category, events)| {
            let cells = Cells {
                category: *category,
                events,
                rows: &capture.rows,
            };
            (cells, 0)
        })
        .collect();
    let fields = flopwatch_measures::record::fields(timeline);
    let mut exported = ExportCounts::default();
    while exported.events < max {
        // Each category is in order of start: the earliest of all is the first of one.
        let next = parts
            .iter_mut()
            .filter_map(|part| Some((part.0.number(Field::StartNs, part.1)?, part)))
            .min_by_key(|(start, _)| *start);
        let Some((_, (cells, at))) = next else { break };
        let separator: &[u8] = if exported.events == 0 { b"\n" } else { b",\n" };
        out.write_all(separator)?;
        event(&mut out, &fields, cells, *at)?;
        *at += 1;
        exported.events += 1;
    }
    out.write_all(b"\n]}\n")?;
    out.flush()?;
    Ok(exported)
}

fn event<W: Write>(out: &mut W, fields: &[Field], cells: &Cells<'_>, at: usize) -> Result<(), ExportError> {
    let mut separator = '{';
    for field in fields.iter().copied() {
        let name = field.name();
        if field.kind() == Kind::Text {
            let text = cells.text(field, at);
            if text.is_empty() && field.is_optional() {
                continue;
            }
            write!(out, "{separator}\"{name}\":")?;
            serde_json::to_writer(&mut *out, text)?;
        } else {
            // Every event has a stream, as in the timeline file: 0 on the CPU.
            let or = (field == Field::Stream).then_some(0);
            let Some(value) = cells.number(field, at).or(or) else {
                continue;
            };
            write!(out, "{separator}\"{name}\":{value}")?;
        }
        separator = ',';
    }
    Ok(out.write_all(b"}")?)
}

#[cfg(test)]
mod tests {
    use flopwatch_model::{Capture, Category, Event, Events, Row, Track};
    use serde_json::{Value, json};

    use super::*;

    fn timeline() -> Timeline {
        let events = |category: Category, starts: &[u64]| {
            let mut events = Events::new(category);
            events.names = vec!["say \"hello\"".to_owned()];
            for start_ns in starts {
                let event = Event {
                    start_ns: *start_ns,
                    duration_ns: 5,
                    ..Event::default()
                };
                let own: Vec<u64> = category.columns().iter().map(|_column| 7).collect();
                events.push(event, &own);
            }
            (category, events)
        };
        let row = Row {
            device: Some(0),
            context: Some(1),
            stream: Some(13),
            ..Row::of(1, Track::GpuStream)
        };
        Timeline {
            session_id: "0badcafe".to_owned(),
            capture: Capture {
                duration_ns: u64::MAX,
                rows: vec![row],
                events: [
                    events(Category::CudaKernel, &[10, 30]),
                    events(Category::CudaMemcpyH2d, &[20, 40]),
                ]
                .into(),
                ..Capture::default()
            },
            ..Timeline::default()
        }
    }

    fn document(max: u64) -> (u64, Value) {
        let mut bytes = Vec::new();
        let exported = up_to(&timeline(), max, &mut bytes).unwrap();
        (exported.events, serde_json::from_slice(&bytes).unwrap())
    }

    #[test]
    fn events_of_all_categories_are_in_order_of_their_start() {
        let (count, document) = document(9);
        assert_eq!(count, 4);
        assert_eq!(
            (
                &document["session_id"],
                &document["total_duration_ns"],
                &document["total_events"]
            ),
            (&json!("0badcafe"), &json!(u64::MAX), &json!(4))
        );
        let events = document["events"].as_array().unwrap();
        let starts: Vec<_> = events.iter().map(|event| event["start_ns"].as_u64().unwrap()).collect();
        assert_eq!(starts, [10, 20, 30, 40]);
        let second = &events[1];
        assert_eq!(
            (
                &second["category"],
                &second["name"],
                &second["duration_ns"],
                &second["stream"],
                &second["bytes"]
            ),
            (
                &json!("cuda_memcpy_h2d"),
                &json!("say \"hello\""),
                &json!(5),
                &json!(13),
                &json!(7)
            )
        );
        assert!(second.get("grid_x").is_none() && events[0]["grid_x"] == 7);
    }

    #[test]
    fn no_more_events_than_a_client_can_hold_are_written_and_the_rest_is_said() {
        let (count, document) = document(3);
        assert_eq!((count, document["events"].as_array().unwrap().len()), (3, 3));
        assert_eq!(document["total_events"], 4);
    }

    #[test]
    fn a_timeline_without_events_is_a_document_too() {
        let mut bytes = Vec::new();
        write(&Timeline::default(), &mut bytes).unwrap();
        let document: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(document["events"], json!([]));
    }
}
