//! Tests of the chart of a small report, and that the documents show the published figures.

use std::fs;
use std::path::Path;

use super::regions::{filled, held};
use super::{DRAWING_LINK, REAL_TRAFFIC, algorithms, before_after, document_of, front, page};
use crate::report::Report;

const SMALL: &str = r#"{
  "conditions": { "cpu": "Some <CPU>", "cores": 2, "date": "2026-01-02", "rustc": "rustc 1.2.3 (abc)", "quick": true },
  "rows": [
    { "case": "memory/1-limit/u64/hot", "contender": "tower-quota", "figures": { "ns": 20.0 } },
    { "case": "memory/1-limit/u64/hot", "contender": "governor", "figures": { "ns": 30.0 } },
    { "case": "memory/1-limit/u64/1m", "contender": "tower-quota", "figures": { "ns": 40.0 } },
    { "case": "memory/1-limit/u64/1m", "contender": "slow & steady", "figures": { "ns": 4321.0 } }
  ],
  "ratios": { "memory/mixed/u64/10k": 2.5, "memory/1-limit/u64/1m/upkept": 2.25 }
}"#;

#[test]
fn chart_shows_figures_and_conditions() {
    let page = page(&Report::read(SMALL).unwrap()).unwrap();
    let [(name, chart)] = &page.charts[..] else {
        panic!("one picture has figures")
    };
    assert_eq!(name, "memory-1-limit-u64.svg");
    for shown in [
        "One limit, keys are numbers",
        "nanoseconds per check",
        ">20<",
        ">30<",
        ">40<",
        ">4.3k<",
    ] {
        assert!(chart.contains(shown), "{shown}: {chart}");
    }
    assert!(
        chart.contains("Some &lt;CPU>, 2 cores, rustc 1.2.3, 2026-01-02, short run"),
        "{chart}"
    );
    assert!(chart.contains("slow &amp; steady"), "{chart}");
    // Four bars, the names of three colours, the background.
    assert_eq!(chart.matches("<rect").count(), 4 + 3 + 1);
}

#[test]
fn chart_draws_line_at_bound() {
    let mut report = Report::default();
    for (contender, admitted) in [("tower-quota, exact", 800.0), ("another", 1_000.0)] {
        let figures = vec![("allowed", 800.0), ("admitted", admitted)];
        report.row("distributed/8-instances/2x", contender, figures);
    }
    let page = page(&report).unwrap();
    let (_, chart) = &page.charts[0];
    // The axis ends at 1,000: the bar of 800 and the line are as high.
    assert!(
        chart.contains("stroke-dasharray=\"6 4\" x1=\"72\" x2=\"856\" y1=\"162.0\""),
        "{chart}"
    );
    assert!(
        page.text
            .contains("| `distributed/8-instances/2x` | another | 800 | 1,000 |"),
        "{}",
        page.text
    );
}

#[test]
fn table_shows_gaps_and_targets() {
    let text = page(&Report::read(SMALL).unwrap()).unwrap().text;
    for line in [
        "| nanoseconds per check | hot | 1m |",
        "| tower-quota | 20.0 | 40.0 |",
        "| governor | 30.0 |  |",
        "| slow & steady |  | 4,321 |",
        "| `memory/mixed/u64/10k` | 2.50 | 0.6 |",
        "| `memory/1-limit/u64/1m/upkept` | 2.25 |  |",
    ] {
        assert!(
            text.lines().any(|of_text| of_text == line),
            "{line}: {text}"
        );
    }
}

#[test]
fn filling_region_changes_nothing_else() {
    let document = "a\n<!-- measured: x -->\nold\n<!-- /measured: x -->\nb\n";
    let once = filled(document, "x", "new\n").unwrap();
    assert_eq!(
        once,
        "a\n<!-- measured: x -->\n\nnew\n\n<!-- /measured: x -->\nb\n"
    );
    assert_eq!(filled(&once, "x", "new").unwrap(), once);
    assert!(filled(document, "y", "new").is_err());
}

// Fails if `tower-quota-bench chart` was not run after the figures changed.
#[test]
fn documents_show_the_kept_figures() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let read = |document: &str| fs::read_to_string(docs.join(document)).unwrap();
    for suite in [
        "memory",
        "limiter",
        "layer",
        "flood",
        "instructions",
        "distance",
        "redis",
        "rules",
        "reload",
        "distributed",
        "outage",
        "simulation",
    ] {
        let document = read(document_of(suite));
        let shown = held(&document, suite).unwrap();
        let Ok(kept) = fs::read_to_string(docs.join(format!("figures/{suite}.json"))) else {
            assert_eq!(
                shown, "",
                "the document shows figures of {suite} that are not kept"
            );
            continue;
        };
        let page = page(&Report::read(&kept).unwrap()).unwrap();
        assert_eq!(shown, page.text.trim());
        for (name, drawing) in page.charts {
            assert_eq!(
                fs::read_to_string(docs.join("charts").join(&name)).unwrap(),
                drawing,
                "{name}"
            );
        }
    }
    let (document, region) = REAL_TRAFFIC;
    let tables = before_after::tables(&docs.join("figures")).unwrap();
    assert_eq!(held(&read(document), region).unwrap(), tables.trim());
    let (document, region) = front::FRONT;
    let table = front::table(&docs.join("figures")).unwrap();
    assert_eq!(held(&read(document), region).unwrap(), table.trim());
}

// Fails if `tower-quota-bench chart` was not run after an algorithm or the drawing changed.
#[test]
fn kept_drawing_shows_algorithms() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let drawing = algorithms::drawn().unwrap();
    assert_eq!(
        fs::read_to_string(docs.join("charts").join(algorithms::FILE)).unwrap(),
        drawing
    );
    assert_eq!(
        fs::read_to_string(docs.join(DRAWING_LINK)).unwrap(),
        algorithms::as_link(&drawing)
    );
}
