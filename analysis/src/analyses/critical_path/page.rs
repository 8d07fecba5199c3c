//! How people read a critical path.

use flopwatch_model::{approximate, ratio};
use flopwatch_report::page::{Bars, Page, Series, Table, Tile, TimelineLocation, Unit};

use super::{CriticalPath, CriticalPathResult};
use crate::definition::Analysis;

pub(super) fn of(result: &CriticalPathResult) -> Page {
    let mut page = Page::of(CriticalPath::TITLE, CriticalPath::ABOUT, &result.not_captured);
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
        Tile::new("Verdict", verdict.label()),
        Tile::figure("Critical path", Unit::Ns, result.path_ns),
        Tile::figure("From begin to end", Unit::Ns, span),
        Tile::figure("Not explained", Unit::Ratio, ratio(result.unexplained_ns, span)),
        Tile::figure("GPU work alone", Unit::Ns, result.gpu_chain_ns),
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
    page.table(
        Table::of("Parts", &result.parts)
            .column("Part", |share| share.part.label())
            .figure("Time", Unit::Ns, |share| share.time_ns)
            .figure("Of the path", Unit::Ratio, |share| share.of_path_ratio),
    );
    page.table(
        Table::of("What the path runs through", &result.names)
            .column("Name", |name| shown(&name.name))
            .column("Part", |name| name.part.label())
            .column("Segments", |name| name.segments)
            .figure("Time", Unit::Ns, |name| name.time_ns)
            .figure("Of the path", Unit::Ratio, |name| name.of_path_ratio),
    );
    page.table(
        Table::of("The path", &result.rows)
            .left_out(result.left_out)
            .column("Part", |row| row.part.label())
            .column("Name", |row| shown(&row.name))
            .figure("Begin", Unit::Instant, |row| row.start_ns)
            .figure("Time", Unit::Ns, |row| row.time_ns)
            .at(|row| TimelineLocation::new(row.start_ns, row.end_ns, Some(row.row))),
    );
    page
}

fn shown(name: &str) -> &str {
    if name.is_empty() { "(program code)" } else { name }
}
