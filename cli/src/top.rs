//! `top`: what the fleet spends its time on. The gateway adds up the rows that agents left in the
//! object store; what is printed here is its result.

use std::io::Write as _;
use std::time::Duration;

use flopwatch_report::{Layout, Tone};
use http::HeaderMap;
use http_body_util::{BodyExt as _, Limited};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::sleep;

use crate::arguments::{Format, TopArguments, TopBy};
use crate::cluster::Cluster;
use crate::error::Error;
use crate::follow::interrupted;
use crate::gateway::{Gateway, GatewayError};
use crate::listing;
use crate::print::{Cell, line, object, say, table_of_names};

/// Largest result that is read.
const MAX_RESULT_BYTES: usize = 8 << 20;
/// Wait after which it is said what is waited for.
const NOTICE_DELAY: Duration = Duration::from_secs(2);
/// Nanoseconds of an hour.
const NANOSECONDS_PER_HOUR: f64 = 3.6e12;

/// The result as far as it is printed.
#[derive(Debug, Deserialize)]
struct Top {
    captures: u64,
    failed: u64,
    not_captured: u64,
    not_drawn: u64,
    drawn_only: bool,
    repeated: u64,
    captures_without_rows: u64,
    rows_without_capture: u64,
    unread: Vec<Unread>,
    groups: Vec<Group>,
    others: Group,
    other_groups: u64,
}

#[derive(Debug, Deserialize)]
struct Unread {
    reason: String,
    files: u64,
}

#[derive(Debug, Deserialize)]
struct Group {
    key: String,
    captures: Option<u64>,
    total_ns: Estimate,
    calls: Estimate,
    share: Estimate,
    observed: Observed,
    may_miss_ns: f64,
}

#[derive(Debug, Deserialize)]
struct Estimate {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Observed {
    calls: u64,
    share: Option<f64>,
}

/// Runs `top`.
pub async fn run(cluster: &Cluster, arguments: &TopArguments, layout: Layout) -> Result<(), Error> {
    let path = path(arguments, &cluster.namespace, Timestamp::now())?;
    let gateway = Gateway::find(cluster, &arguments.gateway).await?;
    let body = tokio::select! {
        body = result(&gateway, &path) => body?,
        () = say_what_takes_long() => return Err(Error::Cancelled),
        () = interrupted() => return Err(Error::Cancelled),
    };
    let unreadable =
        |error: serde_json::Error| Error::Render(format!("the gateway's result is no list of the fleet: {error}"));
    let whole: Value = serde_json::from_slice(&body).map_err(unreadable)?;
    let found = Top::deserialize(&whole).map_err(unreadable)?;
    let text = match arguments.format.output {
        Some(format @ (Format::Json | Format::Yaml)) => object(&whole, format)?,
        Some(Format::Name) => found.groups.iter().map(|group| line(&group.key) + "\n").collect(),
        format => {
            if found.captures == 0 {
                let help = "Captures of a schedule are counted once they have ended: kubectl flopwatch schedule";
                listing::print_none("captures of that time", cluster, arguments.all_namespaces, help);
                return say(&notes(&found, layout));
            }
            render(&found, arguments.by, format == Some(Format::Wide), layout)
        }
    };
    say(&text)
}

/// Names of namespaces are letters, digits and `-` alone, so that nothing is to be escaped.
fn path(arguments: &TopArguments, namespace: &str, now: Timestamp) -> Result<String, Error> {
    let since = SignedDuration::from_secs(i64::from(arguments.since.0));
    let since = now
        .saturating_sub(since)
        .map_err(|error| Error::Usage(error.to_string()))?;
    let since = Timestamp::from_second(since.as_second()).map_err(|error| Error::Usage(error.to_string()))?;
    let (by, limit) = (arguments.by.as_str(), arguments.limit);
    let mut path = format!("/api/fleet/top?by={by}&since={since}&limit={limit}");
    if !arguments.all_namespaces {
        path.push_str("&namespace=");
        path.push_str(namespace);
    }
    if arguments.drawn_only {
        path.push_str("&drawn_only=true");
    }
    Ok(path)
}

async fn result(gateway: &Gateway, path: &str) -> Result<Vec<u8>, Error> {
    let answer = gateway.get(path, HeaderMap::new()).await.map_err(|error| match error {
        GatewayError::Refused { status, reason, detail } if reason == "NotFound" => GatewayError::Refused {
            status,
            reason,
            detail: format!("{detail} Is the gateway of an earlier version than this program?"),
        },
        other => other,
    })?;
    let body = Limited::new(answer.into_body(), MAX_RESULT_BYTES).collect().await;
    let body = body.map_err(|error| Error::Render(format!("the gateway's result broke off: {error}")))?;
    Ok(body.to_bytes().to_vec())
}

/// Never resolves.
async fn say_what_takes_long() {
    sleep(NOTICE_DELAY).await;
    drop(writeln!(
        std::io::stderr(),
        "The gateway reads the captures of that time ..."
    ));
    std::future::pending::<()>().await;
}

fn render(found: &Top, by: TopBy, wide: bool, layout: Layout) -> String {
    let hours = if by == TopBy::Ranges {
        "EST. HOURS"
    } else {
        "EST. GPU HOURS"
    };
    let name = match by {
        TopBy::Kernels => "KERNEL",
        TopBy::Ranges => "RANGE",
        TopBy::Images => "IMAGE",
    };
    let mut header = vec![hours, "95 % INTERVAL", "SHARE", "CALLS", "CAPTURES"];
    if wide {
        header.extend(["SHARE OF CAPTURES", "CALLS OF CAPTURES"]);
    }
    header.push(name);
    let mut rows: Vec<Vec<Cell>> = found.groups.iter().map(|group| row(group, &group.key, wide)).collect();
    if found.others.observed.calls > 0 {
        let others = match found.other_groups {
            0 => "(names without a row of their own)".to_owned(),
            count => format!("({count} others)"),
        };
        rows.push(row(&found.others, &others, wide));
    }
    let layout = layout.wide(wide);
    format!("{}\n{}", table_of_names(&header, &rows, layout), notes(found, layout))
}

fn row(group: &Group, name: &str, wide: bool) -> Vec<Cell> {
    let interval = |estimate: &Estimate, write: fn(f64) -> String| match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => format!("{} to {}", write(low), write(high)),
        _ => "-".to_owned(),
    };
    let hours = |ns: f64| number(ns / NANOSECONDS_PER_HOUR);
    let mut total = group.total_ns.value.map_or_else(|| "-".to_owned(), hours);
    if group.may_miss_ns > 0.0 {
        total.push('+');
    }
    let mut cells = vec![
        Cell::from(total),
        Cell::from(interval(&group.total_ns, hours)),
        Cell::from(group.share.value.map_or_else(|| "-".to_owned(), percent)),
        Cell::from(group.calls.value.map_or_else(|| "-".to_owned(), number)),
        Cell::from(
            group
                .captures
                .map_or_else(|| "-".to_owned(), |captures| captures.to_string()),
        ),
    ];
    if wide {
        cells.push(Cell::from(group.observed.share.map_or_else(|| "-".to_owned(), percent)));
        cells.push(Cell::from(group.observed.calls.to_string()));
    }
    cells.push(Cell::from(name));
    cells
}

/// What the sums are made of, and what is not in them.
fn notes(found: &Top, layout: Layout) -> String {
    let mut text = match found.captures {
        0 => String::new(),
        captures => format!(
            "Captures: {captures}, of which {} failed and {} hold none of it.\n",
            found.failed, found.not_captured
        ),
    };
    let not_drawn = if found.drawn_only {
        "Left out, as no schedule drew them"
    } else {
        "Drawn by no schedule, and no sample of the fleet (--drawn-only leaves them out)"
    };
    let counts = [
        (not_drawn, found.not_drawn),
        (
            "Without rows in the object store, and counted as holding none of it",
            found.captures_without_rows,
        ),
        ("There twice, and counted once", found.repeated),
        (
            "Files of rows without their capture, which do not count",
            found.rows_without_capture,
        ),
    ];
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let unread = found.unread.iter();
    let unread = unread.map(|unread| format!("Files that could not be read: {} ({})", unread.files, unread.reason));
    for note in counts.map(|(what, count)| format!("{what}: {count}")).chain(unread) {
        text.push_str(&layout.paint(Tone::Note, &line(&note)));
        text.push_str(".\n");
    }
    text
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Three digits that count.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        100.0..1e7 => format!("{value:.0}"),
        10.0..100.0 => format!("{value:.1}"),
        0.1..10.0 => format!("{value:.2}"),
        0.001..0.1 => format!("{value:.4}"),
        _ => format!("{value:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use serde_json::json;

    use super::*;
    use crate::arguments::{Cli, Command};

    fn arguments(words: &str) -> TopArguments {
        let cli = Cli::try_parse_from(["kubectl-flopwatch", "top"].into_iter().chain(words.split(' '))).unwrap();
        match cli.command {
            Command::Top(arguments) => arguments,
            other => panic!("{other:?}"),
        }
    }

    fn group(key: &str, captures: &Value, interval: &Value) -> Value {
        let estimate = |value: f64| json!({"value": value, "low": interval[0], "high": interval[1]});
        json!({
            "key": key, "captures": captures, "total_ns": estimate(9e12), "calls": {"value": 1234.0, "low": null, "high": null},
            "share": {"value": 0.256, "low": null, "high": null}, "may_miss_ns": 0.0,
            "observed": {"total_ns": 7, "calls": 12, "share": 0.113}
        })
    }

    fn top() -> Value {
        json!({
            "captures": 12, "failed": 2, "not_captured": 3, "not_drawn": 1, "drawn_only": false, "repeated": 0,
            "captures_without_rows": 1, "rows_without_capture": 2, "unread": [{"reason": "damaged\u{1b}[2J", "files": 1}],
            "groups": [group("gemm", &json!(9), &json!([3.6e12, 3.6e13]))], "others": group("", &json!(null), &json!([null, null])),
            "other_groups": 7
        })
    }

    #[test]
    fn a_list_says_how_sure_it_is_and_what_is_not_in_it() {
        let found: Top = serde_json::from_value(top()).unwrap();
        assert_eq!(
            render(&found, TopBy::Kernels, false, Layout::default()),
            "EST. GPU HOURS   95 % INTERVAL   SHARE    CALLS   CAPTURES   KERNEL\n\
             2.50             1.00 to 10.0    25.6 %   1234    9          gemm\n\
             2.50             -               25.6 %   1234    -          (7 others)\n\
             \n\
             Captures: 12, of which 2 failed and 3 hold none of it.\n\
             Drawn by no schedule, and no sample of the fleet (--drawn-only leaves them out): 1.\n\
             Without rows in the object store, and counted as holding none of it: 1.\n\
             Files of rows without their capture, which do not count: 2.\n\
             Files that could not be read: 1 (damaged [2J).\n"
        );
        let wide = render(&found, TopBy::Images, true, Layout::default());
        assert!(
            wide.lines()
                .next()
                .unwrap()
                .ends_with("SHARE OF CAPTURES   CALLS OF CAPTURES   IMAGE"),
            "{wide}"
        );
        assert!(wide.contains("11.3 %              12                  gemm"), "{wide}");
    }

    #[test]
    fn the_gateway_is_asked_for_a_namespace_or_all() {
        let now: Timestamp = "2026-11-25T12:00:00.5Z".parse().unwrap();
        let path = |words: &str| path(&arguments(words), "team", now).unwrap();
        assert_eq!(
            path("kernels"),
            "/api/fleet/top?by=kernels&since=2026-11-24T12:00:00Z&limit=20&namespace=team"
        );
        assert_eq!(
            path("ranges -A --since 7d --limit 3 --drawn-only"),
            "/api/fleet/top?by=ranges&since=2026-11-18T12:00:00Z&limit=3&drawn_only=true"
        );
    }

    #[test]
    fn numbers_have_the_digits_that_count() {
        for (value, text) in [
            (0.0, "0"),
            (12345.6, "12346"),
            (12.34, "12.3"),
            (1.234, "1.23"),
            (0.0123, "0.0123"),
            (0.000_001_23, "1.23e-6"),
            (1.5e9, "1.50e9"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
