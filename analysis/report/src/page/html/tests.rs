use super::super::{Bars, Lines, Series, Setting, Tile};
use super::*;
use crate::not_captured::NotCaptured;

const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\"'&\u{1b}[2J\u{202e}";

/// Every block, with a hostile text wherever a text may stand.
fn hostile() -> Document {
    let mut page = Page::new(HOSTILE, HOSTILE);
    page.not_captured.push(NotCaptured::new(HOSTILE, HOSTILE));
    page.text(HOSTILE, HOSTILE);
    page.tiles([Tile::figure("Window", Unit::Ns, HOSTILE)]);
    let mut table = Table::new(HOSTILE, &[(HOSTILE, Unit::None), ("Busy", Unit::Ns)]);
    table.about = HOSTILE.to_owned();
    table.push([HOSTILE.into(), 1_500_u64.into()]);
    table.columns[0].about = HOSTILE.to_owned();
    page.table(table);
    let series = || Series {
        name: HOSTILE.to_owned(),
        values: vec![Some(1.0), None],
    };
    page.bars(Bars {
        title: HOSTILE.to_owned(),
        unit: Unit::Ns,
        stacked: true,
        labels: vec![HOSTILE.to_owned(), HOSTILE.to_owned()],
        series: vec![series(), series()],
    });
    page.lines(Lines {
        title: HOSTILE.to_owned(),
        unit: Unit::Ns,
        times_ns: vec![0, 10],
        series: vec![series(), series()],
    });
    Document {
        analysis: HOSTILE.to_owned(),
        version: 1,
        parameters: vec![Setting {
            name: HOSTILE.to_owned(),
            value: HOSTILE.to_owned(),
        }],
        inputs: vec![Heading {
            session: HOSTILE.to_owned(),
            tool: HOSTILE.to_owned(),
            gpus: vec![HOSTILE.to_owned()],
            ..Heading::default()
        }],
        page,
    }
}

#[test]
fn what_a_capture_names_is_text_alone() {
    let html = render(&hostile());
    assert_eq!(html.matches("</script>").count(), 1, "the file's own");
    assert!(!html.contains("<img") && !html.contains('\u{1b}') && !html.contains('\u{202e}'));
    assert!(html.contains("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;"));
    // No tag has an attribute that runs or loads something.
    for tag in html.split('<').skip(1).filter_map(|rest| rest.split('>').next()) {
        for word in [" on", " src", " href", " style"] {
            let own = tag.split('"').step_by(2).any(|part| part.contains(word));
            assert!(!own, "{tag}");
        }
    }
}

#[test]
fn the_policy_names_the_digests_of_the_file_s_own_style_and_script() {
    let html = render(&Document::default());
    let between = |open: &str, close: &str| html.split(open).nth(1).unwrap().split(close).next().unwrap();
    for (word, content) in [
        ("style-src", between("<style>", "</style>")),
        ("script-src", between("<script>", "</script>")),
    ] {
        let digest = STANDARD.encode(Sha256::digest(content));
        assert!(html.contains(&format!("{word} 'sha256-{digest}'")), "{word}");
    }
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn a_file_of_many_long_rows_stays_below_5_mb_and_says_what_it_leaves_out() {
    let mut page = Page::new("t", "");
    for _ in 0..3 {
        let mut table = Table::new("rows", &[("Name", Unit::None), ("Busy", Unit::Ns)]);
        for row in 0..60_000_u64 {
            table.push([format!("{row} {}", "&".repeat(400)).into(), row.into()]);
        }
        page.table(table);
    }
    let document = Document {
        page,
        ..Document::default()
    };
    let html = render(&document);
    assert!(html.len() < 5_000_000, "{}", html.len());
    let rows = html.matches("<tr><th scope=\"row\"").count();
    assert!((1_000..=3 * MAX_ROWS).contains(&rows), "{rows}");
    let actual: usize = html
        .split("<p class=\"note\">")
        .skip(1)
        .map(|note| note.split(' ').next().unwrap().parse::<usize>().unwrap())
        .sum();
    assert_eq!(actual + rows, 180_000);
}

#[test]
fn a_folded_table_is_closed_and_says_how_many_rows_it_has() {
    let mut page = Page::new("t", "");
    let mut table = Table::new("Rules", &[("Rule", Unit::None)]);
    table.push(["gpu-idle".into()]);
    table.left_out = 2;
    page.table(table.clone());
    table.folded = true;
    page.table(table);
    let html = render(&Document {
        page,
        ..Document::default()
    });
    assert_eq!(html.matches("<h2>Rules</h2>").count(), 1);
    assert_eq!(
        html.matches("<details><summary><strong>Rules (3)</strong></summary>")
            .count(),
        1
    );
    assert_eq!(html.matches("</details></section>").count(), 1);
    assert!(!html.contains("<details open"));
}

#[test]
fn cells_show_a_unit_and_hold_the_exact_number() {
    let html = render(&hostile());
    assert!(html.contains("<td class=\"n\" data-v=\"1500\">1.50 µs</td>"), "{html}");
}
