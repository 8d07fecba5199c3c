//! Pages that the viewer's tests show in a browser: one with every block, as JSON and as HTML, and
//! the dashboard of a profile of operations.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use flopwatch_analysis::analyses::operations::profile;
use flopwatch_model::{Loss, LossReason, RowId};
use flopwatch_report::page::{
    Bars, Cell, Document, Heading, Lines, Page, Roof, Roofline, RooflineArrow, RooflinePoint, Series, Setting, Table,
    Tile, TimelineLocation, Unit, html,
};
use flopwatch_report::{Format, Layout, NotCaptured};

/// Where the viewer's tests find them. `UPDATE_PAGES=1` writes them anew.
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../web/tests/data");
/// What a profiled program may call a range.
const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\u{202e}";

fn series(name: &str, values: &[Option<f64>]) -> Series {
    Series {
        name: name.to_owned(),
        values: values.to_vec(),
    }
}

fn roofline() -> Roofline {
    let point = |name: &str, series: &str, intensity, performance| RooflinePoint {
        name: name.to_owned(),
        series: series.to_owned(),
        intensity,
        performance,
    };
    let roof = |name: &str, value| Roof {
        name: name.to_owned(),
        value,
    };
    Roofline {
        title: "Roofline".to_owned(),
        about: "Both axes are logarithmic.".to_owned(),
        unit: Unit::FlopPerSecond,
        intensity: "FLOP per byte".to_owned(),
        peaks: vec![roof("FP32", 67e12), roof("FP64", 34e12)],
        bandwidths: vec![roof("DRAM", 3.35e12), roof("L2", 12e12)],
        points: vec![
            point("#0 gemm", "1: FP32, DRAM", 12.0, 22e12),
            point("#1 copy", "1: FP32, DRAM", 0.0, 0.0),
            point("#0 gemm", "2: FP32, DRAM", 40.0, 51e12),
            point(HOSTILE, "1: FP32, L2", 0.25, 1.5e12),
        ],
        arrows: vec![RooflineArrow { from: 0, to: 2 }],
    }
}

fn sample() -> Document {
    let mut page = Page::new("Sample", "Every block of a page.");
    page.not_captured
        .push(NotCaptured::new("Launch delays", "the profiler recorded no API calls"));
    page.tiles([
        Tile::figure("Window", Unit::Ns, 2_500_000_u64),
        Tile::figure("Busy", Unit::Ratio, 0.4),
        Tile::figure("Overlap", Unit::Ratio, Cell::Nothing),
    ]);
    let columns = [
        ("Kernel", Unit::None),
        ("Total", Unit::Ns),
        ("Calls", Unit::None),
        ("Size", Unit::Bytes),
    ];
    let mut table = Table::new("Kernels", &columns);
    let location = |start_ns, row: Option<u32>| TimelineLocation::new(start_ns, start_ns + 20_000, row.map(RowId::new));
    table.push_at(
        location(100_000, Some(0)),
        ["gemm".into(), 900_000_u64.into(), 3_u64.into(), 4096_u64.into()],
    );
    table.push_at(
        location(300_000, None),
        [HOSTILE.into(), 90_000_u64.into(), 40_u64.into(), Cell::Nothing],
    );
    for name in ["add", "copy", "fill", "gather", "norm", "relu", "softmax"] {
        table.push([name.into(), 10_000_u64.into(), 1_u64.into(), 0_u64.into()]);
    }
    table.left_out = 5;
    page.table(table);
    page.bars(Bars {
        title: "Time of each GPU".to_owned(),
        unit: Unit::Ns,
        stacked: true,
        labels: vec!["GPU 0".to_owned(), "GPU 1".to_owned()],
        series: vec![
            series("compute", &[Some(1_000_000.0), Some(400_000.0)]),
            series("copies", &[Some(500_000.0), None]),
        ],
    });
    page.bars(Bars {
        title: "Change".to_owned(),
        unit: Unit::Percent,
        stacked: false,
        labels: vec!["gemm".to_owned(), HOSTILE.to_owned()],
        series: vec![series("change", &[Some(-12.0), Some(30.0)])],
    });
    page.lines(Lines {
        title: "Kernels in flight".to_owned(),
        unit: Unit::None,
        times_ns: vec![0, 500_000, 1_000_000, 2_500_000],
        series: vec![series("GPU 0", &[Some(0.0), Some(3.0), None, Some(1.0)])],
    });
    page.roofline(roofline());
    page.text(
        "How it is counted",
        "A kernel is in flight from its start to its end.\nOverlap counts twice.",
    );
    Document {
        analysis: "sample".to_owned(),
        version: 1,
        parameters: vec![Setting {
            name: "limit".to_owned(),
            value: "20".to_owned(),
        }],
        inputs: vec![Heading {
            session: "0badcafe".to_owned(),
            tool: "NVIDIA Nsight Systems".to_owned(),
            tool_version: "2024.1.1".to_owned(),
            gpus: vec!["2 × NVIDIA H100 80GB HBM3".to_owned()],
            window_ns: 2_500_000,
            events: 7000,
            drops: vec![Loss {
                reason: LossReason::Unsupported,
                what: "NVTX marks".to_owned(),
                count: 12,
            }],
            redactions: 1,
            ..Heading::default()
        }],
        page,
    }
}

#[test]
fn the_page_of_the_viewers_tests_is_what_is_written() {
    let document = sample();
    let json = serde_json::to_string_pretty(&document).unwrap() + "\n";
    let html = html::render(&document).replace(concat!("Flopwatch ", env!("CARGO_PKG_VERSION")), "Flopwatch");
    kept("page.json", &json);
    kept("page.html", &html);
}

#[test]
fn the_dashboard_of_the_viewers_tests_is_what_is_made_of_the_profile_beside_it() {
    let profile = std::fs::read(format!("{DATA}/operations.json")).unwrap();
    for (format, name) in [
        (Format::Page, "operations.page.json"),
        (Format::Html, "operations.html"),
    ] {
        let mut made = Vec::new();
        profile::write(&profile, format, Layout::default(), &mut made).unwrap();
        let made = String::from_utf8(made).unwrap();
        kept(
            name,
            &made.replace(concat!("Flopwatch ", env!("CARGO_PKG_VERSION")), "Flopwatch"),
        );
    }
}

fn kept(name: &str, made: &str) {
    let path = format!("{DATA}/{name}");
    if std::env::var_os("UPDATE_PAGES").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == made, "{path} drifted: run this test with UPDATE_PAGES=1");
}
