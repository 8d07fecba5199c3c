//! How people read a critical path.

use flopwatch_model::{approximate, ratio};
use flopwatch_report::page::{Bars, Page, Place, Series, Table, Unit};

use super::{CriticalPath, CriticalPathResult};
use crate::definition::Analysis;

pub(super) fn of(result: &CriticalPathResult) -> Page {
    let mut page = Page::new("Critical path", CriticalPath::ABOUT);
    page.not_captured.clone_from(&result.not_captured);
    let Some(verdict) = result.verdict else { return page };
    let mut text = match result.iteration {
        Some(number) => format!(
            "Iteration {number} {} of process {}",
            result.iteration_name, result.process
        ),
        None => format!("Process {}", result.process),
    };
    let verdict_text = format!(
        " is {} by {:.0} % of its critical path.",
        verdict.label(),
        result.verdict_ratio * 100.0
    );
    text.push_str(&verdict_text);
    for caution in &result.cautions {
        text.push(' ');
        text.push_str(caution);
    }
    page.text("Verdict", text);
    let span = result.end_ns.saturating_sub(result.start_ns);
    page.tiles([
        ("Verdict", verdict.label().into(), Unit::None),
        ("Critical path", result.path_ns.into(), Unit::Ns),
        ("From begin to end", span.into(), Unit::Ns),
        ("Not explained", ratio(result.unexplained_ns, span).into(), Unit::Ratio),
        ("GPU work alone", result.gpu_chain_ns.into(), Unit::Ns),
    ]);
    page.bars(Bars {
        title: "Parts of the path".to_owned(),
        unit: Unit::Ns,
        stacked: true,
        labels: vec!["Critical path".to_owned()],
        series: result
            .parts
            .iter()
            .map(|share| Series {
                name: share.part.label().to_owned(),
                values: vec![Some(approximate(share.time_ns.into()))],
            })
            .collect(),
    });
    let mut parts = Table::new(
        "Parts",
        &[("Part", Unit::None), ("Time", Unit::Ns), ("Of the path", Unit::Ratio)],
    );
    for share in &result.parts {
        parts.push([
            share.part.label().into(),
            share.time_ns.into(),
            share.of_path_ratio.into(),
        ]);
    }
    page.table(parts);
    let columns = [
        ("Name", Unit::None),
        ("Part", Unit::None),
        ("Segments", Unit::None),
        ("Time", Unit::Ns),
        ("Of the path", Unit::Ratio),
    ];
    let mut names = Table::new("What the path runs through", &columns);
    for name in &result.names {
        names.push([
            shown(&name.name).into(),
            name.part.label().into(),
            name.segments.into(),
            name.time_ns.into(),
            name.of_path_ratio.into(),
        ]);
    }
    page.table(names);
    let columns = [
        ("Part", Unit::None),
        ("Name", Unit::None),
        ("Begin", Unit::Instant),
        ("Time", Unit::Ns),
    ];
    let mut segments = Table::new("The path", &columns);
    segments.left_out = result.left_out;
    for row in &result.rows {
        let place = Place {
            input: 0,
            start_ns: row.start_ns,
            end_ns: row.end_ns,
            row: Some(row.row),
        };
        let cells = [
            row.part.label().into(),
            shown(&row.name).into(),
            row.start_ns.into(),
            row.time_ns.into(),
        ];
        segments.push_at(place, cells);
    }
    page.table(segments);
    page
}

fn shown(name: &str) -> &str {
    if name.is_empty() { "(program code)" } else { name }
}
