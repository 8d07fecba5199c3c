//! The events themselves, in pages and by time or category: for clients that have no reader of any
//! file.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use flopwatch_measures::record::{Cells, Field, Kind, fields};
use flopwatch_model::{Category, Needs, Timeline, count};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError};
use crate::input::Inputs;

/// Events in the order of their starts.
#[derive(Debug)]
pub struct EventsAnalysis;

/// Parameters of [`EventsAnalysis`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EventsParams {
    /// Only events that end behind this time, in ns from the session's start.
    pub from_ns: u64,
    /// Only events that start before this time, in ns from the session's start; 0 for no bound.
    pub to_ns: u64,
    /// Only events of this category, such as `cuda_kernel`; empty for all.
    #[schemars(length(max = 64))]
    pub category: String,
    /// So many of them come before this page: what the page before gave as `next`.
    pub after: u64,
    /// Most events on the page.
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: u32,
}

impl Default for EventsParams {
    fn default() -> Self {
        Self {
            from_ns: 0,
            to_ns: 0,
            category: String::new(),
            after: 0,
            limit: 10_000,
        }
    }
}

/// A page of events.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct EventPage {
    /// The session's identifier.
    pub session_id: String,
    /// Length of the window in ns.
    pub total_duration_ns: u64,
    /// Events of the capture.
    pub total_events: u64,
    /// Events that were asked for, on this page or not.
    pub matching_events: u64,
    /// Give it as `after` for the next page; null on the last.
    pub next: Option<u64>,
    /// The events in the order of their starts, equal ones in the order of categories.
    pub events: Vec<EventRecord>,
}

/// An event: what every event has, and the columns of its category beside these.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct EventRecord {
    /// Its category, such as `cuda_kernel`.
    pub category: &'static str,
    /// Name of the event.
    pub name: String,
    /// Start in ns from the session's start.
    pub start_ns: u64,
    /// Length in ns.
    pub duration_ns: u64,
    /// CUDA stream; 0 on the CPU.
    pub stream: u64,
    /// The further columns, by the names that the exported tables have.
    #[serde(flatten)]
    pub further: BTreeMap<&'static str, EventValue>,
}

/// A value of an event.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum EventValue {
    /// A whole number.
    Number(u64),
    /// A text.
    Text(String),
}

impl Analysis for EventsAnalysis {
    const NAME: &'static str = "events";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Events in the order of their starts, in pages, by time and category.";
    const TITLE: &'static str = "Events";
    const NEEDS: Needs = Needs::EVERYTHING;
    type Params = EventsParams;
    type Output = EventPage;

    fn run(inputs: &Inputs<'_>, params: &EventsParams) -> Result<EventPage, AnalysisError> {
        let timeline = inputs.first();
        let until = if params.to_ns == 0 { u64::MAX } else { params.to_ns };
        let mut lists = matching(timeline, params, until);
        let matching_events = lists.iter().map(|(_, positions)| count(positions.len())).sum();
        // The next event of each category, the earliest first.
        let mut next: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        for (list, (cells, positions)) in lists.iter_mut().enumerate() {
            positions.reverse();
            next.extend(start(cells, positions).map(|start| Reverse((start, list))));
        }
        let (mut passed, mut events) = (0, Vec::new());
        let columns = fields(timeline);
        let limit = usize::try_from(params.limit).unwrap_or(usize::MAX);
        while events.len() < limit
            && let Some(Reverse((_, list))) = next.pop()
            && let Some((cells, positions)) = lists.get_mut(list)
            && let Some(at) = positions.pop()
        {
            if passed >= params.after {
                events.push(record(&columns, cells, at));
            }
            passed += 1;
            next.extend(start(cells, positions).map(|start| Reverse((start, list))));
        }
        Ok(EventPage {
            session_id: timeline.session_id.clone(),
            total_duration_ns: timeline.capture.duration_ns,
            total_events: timeline.total_events(),
            matching_events,
            next: (passed < matching_events).then_some(passed.max(params.after)),
            events,
        })
    }
}

/// Of each category the places of the events that were asked for.
fn matching<'a>(timeline: &'a Timeline, params: &EventsParams, until: u64) -> Vec<(Cells<'a>, Vec<usize>)> {
    let wanted = |category: &Category| params.category.is_empty() || category.name() == params.category;
    let lists = timeline.capture.events.iter().filter(|(category, _)| wanted(category));
    let positions = lists.map(|(category, events)| {
        let cells = Cells {
            category: *category,
            events,
            rows: &timeline.capture.rows,
        };
        // Sorted by start.
        let behind = events.start_ns.partition_point(|start| *start < until);
        let positions = (0..behind).filter(|at| params.from_ns == 0 || events.end_ns(*at) > params.from_ns);
        (cells, positions.collect())
    });
    positions.collect()
}

/// When the next event of a list starts.
fn start(cells: &Cells<'_>, positions: &[usize]) -> Option<u64> {
    cells.number(Field::StartNs, *positions.last()?)
}

fn record(columns: &[Field], cells: &Cells<'_>, at: usize) -> EventRecord {
    let number = |field| cells.number(field, at).unwrap_or(0);
    let mut further = BTreeMap::new();
    for field in columns.iter().copied() {
        if matches!(
            field,
            Field::Category | Field::Name | Field::StartNs | Field::DurationNs | Field::Stream
        ) {
            continue;
        }
        let value = if field.kind() == Kind::Text {
            let text = cells.text(field, at);
            let is_said = !(text.is_empty() && field.is_optional());
            is_said.then(|| EventValue::Text(text.to_owned()))
        } else {
            cells.number(field, at).map(EventValue::Number)
        };
        further.extend(value.map(|value| (field.name(), value)));
    }
    EventRecord {
        category: cells.category.name(),
        name: cells.text(Field::Name, at).to_owned(),
        start_ns: number(Field::StartNs),
        duration_ns: number(Field::DurationNs),
        stream: number(Field::Stream),
        further,
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_model::{Event, Events};

    use super::*;
    use crate::input::Input;

    fn timeline() -> Timeline {
        let mut timeline = Timeline::default();
        for (category, starts) in [
            (Category::CudaKernel, [10, 30, 50]),
            (Category::CudaMemcpyH2d, [20, 30, 60]),
        ] {
            let mut events = Events::new(category);
            events.names.push("work".to_owned());
            for start_ns in starts {
                let event = Event {
                    start_ns,
                    duration_ns: 5,
                    ..Event::default()
                };
                events.push(event, &[7]);
            }
            timeline.capture.events.insert(category, events);
        }
        timeline
    }

    fn page(params: &EventsParams) -> EventPage {
        let timeline = timeline();
        let inputs = [Input::whole(&timeline)];
        EventsAnalysis::run(&Inputs::new(&inputs).unwrap(), params).unwrap()
    }

    fn starts(page: &EventPage) -> Vec<u64> {
        page.events.iter().map(|event| event.start_ns).collect()
    }

    #[test]
    fn pages_follow_one_another_until_the_last() {
        let (mut seen, mut after) = (Vec::new(), Some(0));
        while let Some(from) = after {
            let page = page(&EventsParams {
                after: from,
                limit: 4,
                ..EventsParams::default()
            });
            assert_eq!((page.total_events, page.matching_events), (6, 6));
            seen.extend(starts(&page));
            after = page.next;
        }
        assert_eq!(seen, [10, 20, 30, 30, 50, 60]);
    }

    #[test]
    fn a_range_has_what_runs_in_it() {
        let range = |from_ns, to_ns, category: &str| {
            let page = page(&EventsParams {
                from_ns,
                to_ns,
                category: category.to_owned(),
                ..EventsParams::default()
            });
            assert_eq!(page.matching_events, count(page.events.len()));
            starts(&page)
        };
        assert_eq!(range(14, 31, ""), [10, 20, 30, 30]);
        assert_eq!(range(15, 30, ""), [20]);
        assert_eq!(range(0, 0, "cuda_kernel"), [10, 30, 50]);
        assert!(range(0, 0, "cuda_kernels").is_empty());
    }

    #[test]
    fn an_event_has_the_columns_of_its_category() {
        let page = page(&EventsParams::default());
        let value = serde_json::to_value(&page.events).unwrap();
        assert_eq!(
            (&value[0]["grid_x"], &value[0]["category"]),
            (&7.into(), &"cuda_kernel".into())
        );
        assert!(value[1].get("grid_x").is_none() && value[1]["bytes"] == 7);
    }
}
