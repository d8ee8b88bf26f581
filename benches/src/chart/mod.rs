//! Charts and tables of what was measured, so that the documents cannot drift from the figures.

mod pictures;
mod tables;
mod timelines;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use self::pictures::{Drawn, Picture, Series};
use self::tables::{significant, written};
use crate::report::Report;

/// The pages with figures, and the suites that each shows in a region of its own.
const PAGES: [(&str, &[&str]); 6] = [
    ("memory", &["memory", "threads", "flood", "instructions"]),
    ("layer", &["layer"]),
    ("redis", &["redis", "distance"]),
    ("distributed", &["distributed", "outage", "simulation"]),
    ("rules", &["rules", "reload"]),
    ("sizing", &["sizing"]),
];

/// The table of the README, with a place for each figure: `{suite;case;contender;figure}`.
const FRONT: &str = include_str!("../../front.md");

/// The drawing of the algorithms for rustdoc, in the folder of documents.
const DRAWING_LINK: &str = "guide/drawing.txt";

/// Writes the charts, and the figures into the regions of the documents.
pub(crate) fn run(docs: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(docs.join("charts"))?;
    for (file, text) in outputs(docs)? {
        fs::write(file, text)?;
    }
    Ok(())
}

type Reports = BTreeMap<&'static str, Report>;

/// Returns the text of every chart and of every document with figures.
fn outputs(docs: &Path) -> Result<BTreeMap<PathBuf, String>, Box<dyn Error>> {
    let mut reports = Reports::new();
    for suite in PAGES.into_iter().flat_map(|(_, suites)| suites) {
        let file = docs.join(format!("figures/{suite}.json"));
        let report = Report::read(&file)?;
        if report.conditions().quick {
            return Err(format!("{}: a short run is not published", file.display()).into());
        }
        reports.insert(suite, report);
    }
    let mut outputs = BTreeMap::new();
    for (page, suites) in PAGES {
        let file = docs.join(format!("measurements/{page}.md"));
        let mut text = read(&file)?;
        for suite in suites {
            let tables = tables::of(&reports[suite], suite)?;
            text = filled(&text, suite, &tables)?;
        }
        if page == "sizing" {
            text = filled(&text, "example", &tables::example(&reports)?)?;
        }
        outputs.insert(
            file,
            filled(&text, "conditions", &conditions(suites, &reports))?,
        );
    }
    let readme = docs.join("../README.md");
    let text = filled(&read(&readme)?, "front", &front(&reports)?)?;
    outputs.insert(readme, text);
    let algorithms = timelines::algorithms()?;
    outputs.insert(docs.join(DRAWING_LINK), as_link(&algorithms));
    for (name, chart) in [
        ("algorithms", Ok(algorithms)),
        ("lease", timelines::lease()),
        ("outage", timelines::outage(&reports["outage"])),
        ("memory", memory(&reports["memory"])),
        ("threads", threads(&reports["threads"])),
        ("layer", layer(&reports["layer"])),
        ("redis", redis(&reports["redis"])),
        ("distance", distance(&reports["distance"])),
        ("distributed", distributed(&reports["distributed"])),
    ] {
        let chart = chart.map_err(|error| format!("the chart {name}: {error}"))?;
        outputs.insert(docs.join(format!("charts/{name}.svg")), chart);
    }
    Ok(outputs)
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// Returns the document with its region of this name filled anew. A region lies between `<!-- measured: NAME -->` and
/// `<!-- /measured: NAME -->`.
///
/// # Errors
/// When there is no such region: the figures would be lost.
fn filled(document: &str, name: &str, text: &str) -> Result<String, String> {
    let opening = format!("<!-- measured: {name} -->");
    let closing = format!("<!-- /measured: {name} -->");
    let split = document.split_once(&opening).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&closing)?;
        Some((before, after))
    });
    let (before, after) = split.ok_or_else(|| format!("the document has no region {name}"))?;
    Ok(format!(
        "{before}{opening}\n\n{}\n\n{closing}{after}",
        text.trim()
    ))
}

/// Returns a line for each machine, tree and day of these suites, and the versions of the peers.
fn conditions(suites: &[&str], reports: &Reports) -> String {
    let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
    let mut peers = String::new();
    for suite in suites {
        let conditions = reports[suite].conditions();
        let line = conditions.line();
        match lines.iter_mut().find(|(known, _)| *known == line) {
            Some((_, suites)) => suites.push(suite),
            None => lines.push((line, vec![suite])),
        }
        if !conditions.peers().is_empty() {
            peers = format!("\nPeers: {}.\n", conditions.peers());
        }
    }
    let lines = lines
        .iter()
        .map(|(line, suites)| format!("* {}: {line}\n", suites.join(", ")));
    lines.collect::<String>() + &peers
}

/// Returns the table of the README.
fn front(reports: &Reports) -> Result<String, Box<dyn Error>> {
    let mut parts = FRONT.split('{');
    let mut table = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (place, text) = part.split_once('}').ok_or("a place has no end")?;
        let names: Vec<&str> = place.split(';').collect();
        let [suite, case, contender, figure] = names[..] else {
            return Err(format!("four names expected, not {place}").into());
        };
        let report = reports.get(suite);
        let figure = report.and_then(|report| report.figure(case, contender, figure));
        let figure = figure.ok_or_else(|| format!("there is no figure {place}"))?;
        table += &written(figure.median());
        table += text;
    }
    Ok(table)
}

/// Returns a drawing as the target of a link that is called `drawing`: rustdoc has no files next to its pages.
fn as_link(drawing: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'%' | b'<' | b'>' | b'"' | b'#' | b'(' | b')' | b'{' | b'}' | 0..=b' ' => {
            format!("%{byte:02X}")
        }
        _ => char::from(byte).to_string(),
    };
    let escaped = drawing.bytes().map(escaped).collect::<String>();
    format!("[drawing]: data:image/svg+xml,{escaped}\n")
}

/// Returns one figure of a contender in a case, for the titles of charts.
fn median_of(report: &Report, case: &str, contender: &str, figure: &str) -> Result<f64, String> {
    let found = report.figure(case, contender, figure);
    let missing = || format!("there is no figure {figure} of {contender} in {case}");
    found.map(|figure| figure.median()).ok_or_else(missing)
}

/// Returns the series of these contenders, without those that were not measured.
fn series(
    report: &Report,
    figure: &str,
    contenders: &[&str],
    group: &str,
    cases: &[&str],
) -> Vec<Series> {
    let series = contenders.iter().map(|contender| {
        let figures = cases.iter().map(|case| {
            let figure = report.figure(&format!("{group}/{case}"), contender, figure)?;
            Some(figure.median())
        });
        Series {
            name: (*contender).to_owned(),
            figures: figures.collect(),
        }
    });
    let is_measured = |series: &Series| series.figures.iter().any(Option::is_some);
    series.filter(is_measured).collect()
}

fn memory(report: &Report) -> Drawn {
    let hot = |contender| median_of(report, "memory/1-limit/hot", contender, "ns");
    let (ours, theirs) = (hot("tower-quota")?, hot("governor")?);
    let contenders = ["tower-quota", "governor", "quota"];
    let cases = ["hot", "10k", "1m", "new", "refused"];
    Picture {
        title: format!(
            "A check of a hot client takes {} ns, with governor {}",
            significant(ours),
            significant(theirs)
        ),
        unit: "nanoseconds of a check in memory, one limit, one thread (logarithmic axis)",
        groups: &["hot", "10,000", "a million", "new", "refused"],
        series: series(report, "ns", &contenders, "memory/1-limit", &cases),
    }
    .dots(false)
}

fn threads(report: &Report) -> Drawn {
    let rate = |threads| {
        median_of(
            report,
            &format!("threads/hot/{threads}"),
            "tower-quota",
            "M checks/s",
        )
    };
    let (one, two) = (rate(1)?, rate(2)?);
    let contenders = ["tower-quota", "governor"];
    let cases = ["1", "2", "4", "8", "16"];
    Picture {
        title: format!(
            "One hot client: {} million checks/s on 1 thread, {} on 2",
            significant(one),
            significant(two)
        ),
        unit: "million checks a second of all threads, on two cores (logarithmic axis)",
        groups: &["1 thread", "2", "4", "8", "16"],
        series: series(report, "M checks/s", &contenders, "threads/hot", &cases),
    }
    .dots(true)
}

fn layer(report: &Report) -> Drawn {
    let added = |case, contender| median_of(report, case, contender, "added");
    let (ours, theirs) = (
        added("layer/headers", "tower-quota")?,
        added("layer/headers", "tower_governor")?,
    );
    let contenders = ["tower-quota", "tower_governor"];
    let cases = ["plain", "same-fields", "headers", "headers/3-limits"];
    Picture {
        title: format!(
            "Default fields: the layer adds {} ns, tower_governor {}",
            significant(ours),
            significant(theirs)
        ),
        unit: "nanoseconds added to an admitted request, counters in memory",
        groups: &["no fields", "same fields", "default fields", "and 3 limits"],
        series: series(report, "added", &contenders, "layer", &cases),
    }
    .bars(None)
}

const SCRIPT: &str = "redis-rs, a script per limit";

fn redis(report: &Report) -> Drawn {
    let rate = |contender| median_of(report, "redis/3-limits", contender, "decisions/s");
    let (ours, theirs) = (rate("tower-quota")?, rate(SCRIPT)?);
    let contenders = ["tower-quota", SCRIPT, "limitador"];
    let cases = [
        "1-limit",
        "3-limits",
        "3-limits-2-subjects",
        "3-limits-lasting",
    ];
    Picture {
        title: format!(
            "Three limits: {} decisions/s, with a script per limit {}",
            significant(ours),
            significant(theirs)
        ),
        unit: "decisions a second of 512 tasks, one Redis on the same two cores",
        groups: &[
            "one limit",
            "three limits",
            "on two keys",
            "returning clients",
        ],
        series: series(report, "decisions/s", &contenders, "redis", &cases),
    }
    .bars(None)
}

fn distance(report: &Report) -> Drawn {
    let p50 = |contender| median_of(report, "distance/1-ms", contender, "p50 ms");
    let (ours, theirs) = (p50("tower-quota")?, p50(SCRIPT)?);
    let cases = ["0-ms", "1-ms", "5-ms", "20-ms"];
    Picture {
        title: format!(
            "A millisecond away, a decision takes {} ms, a script {} ms",
            significant(ours),
            significant(theirs)
        ),
        unit: "median milliseconds of 64 tasks, by the delay of replies (logarithmic axis)",
        groups: &["loopback", "1 ms", "5 ms", "20 ms"],
        series: series(
            report,
            "p50 ms",
            &["tower-quota", SCRIPT],
            "distance",
            &cases,
        ),
    }
    .dots(true)
}

fn distributed(report: &Report) -> Drawn {
    let cases = ["2-instances/2x", "8-instances/4x"];
    let contenders = [
        "tower-quota, exact",
        "tower-quota, leased",
        "redis-rs, INCR and EXPIRE",
        "limitador, cached",
        "trypema, hybrid",
    ];
    let case = "distributed/8-instances/4x";
    let allowed = median_of(report, case, "tower-quota, leased", "allowed")?;
    let leased = median_of(report, case, "tower-quota, leased", "admitted")? / allowed * 100.0;
    let series = series(report, "admitted", &contenders, "distributed", &cases);
    let percent = |figure: Option<f64>| Some(figure? / allowed * 100.0);
    let series = series.into_iter().map(|series| Series {
        figures: series.figures.into_iter().map(percent).collect(),
        ..series
    });
    Picture {
        title: format!(
            "Eight instances with leases admit {} % of the quota",
            significant(leased)
        ),
        unit: "percent of the quota that one hot client was admitted; the line is the quota",
        groups: &["2 instances, 2 times the quota", "8 instances, 4 times"],
        series: series.collect(),
    }
    .bars(Some(100.0))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{filled, outputs, run};

    // Fails if `tower-quota-bench chart` was not run after the figures, an algorithm or a drawing changed.
    #[test]
    fn documents_show_kept_figures() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let outputs = outputs(&docs).unwrap();
        for (file, text) in &outputs {
            let kept = fs::read_to_string(file).unwrap_or_default();
            assert!(kept == *text, "{} is stale", file.display());
        }
        for chart in fs::read_dir(docs.join("charts")).unwrap() {
            let file = chart.unwrap().path();
            assert!(
                outputs.contains_key(&file),
                "{} shows nothing",
                file.display()
            );
        }
    }

    #[test]
    fn short_run_is_not_published() {
        let docs = tempfile::tempdir().unwrap();
        let figures = docs.path().join("figures");
        fs::create_dir(&figures).unwrap();
        let report = r#"{"conditions": {"cpu": "", "cores": 2, "rustc": "", "date": "", "quick": true}, "rows": [], "ratios": {}}"#;
        fs::write(figures.join("memory.json"), report).unwrap();
        let error = run(docs.path()).unwrap_err().to_string();
        assert!(
            error.ends_with("memory.json: a short run is not published"),
            "{error}"
        );
    }

    #[test]
    fn filling_region_changes_nothing_else() {
        let document = "a\n<!-- measured: x -->\nold\n<!-- /measured: x -->\nb\n";
        let once = filled(document, "x", "new\n").unwrap();
        let expected = "a\n<!-- measured: x -->\n\nnew\n\n<!-- /measured: x -->\nb\n";
        assert_eq!(once, expected);
        assert_eq!(filled(&once, "x", "new").unwrap(), once);
        assert!(filled(document, "y", "new").is_err());
    }
}
