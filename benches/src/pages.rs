//! The tables and drawings of the pages, written from the kept figures, so that the pages cannot drift from them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::drawings;
use crate::report::{Report, two_digits};

/// The pages with figures, and the suites that each shows in a region of its own.
const PAGES: [(&str, &[&str]); 8] = [
    ("memory", &["memory", "threads", "flood", "instructions"]),
    ("layer", &["layer"]),
    ("redis", &["redis", "readme", "distance"]),
    ("distributed", &["distributed", "outage", "simulation"]),
    ("rules", &["rules", "reload", "operations"]),
    ("sizing", &["sizing"]),
    ("server", &["server"]),
    ("shedding", &["limits", "shed"]),
];

type Reports = BTreeMap<&'static str, Report>;

/// Writes the tables into the pages, and the drawings.
pub(crate) fn write(docs: &Path) -> Outcome {
    for (file, text) in outputs(docs)? {
        fs::write(file, text)?;
    }
    Ok(())
}

/// Returns the text of every page with figures, and every drawing.
fn outputs(docs: &Path) -> Outcome<BTreeMap<PathBuf, String>> {
    let mut reports = Reports::new();
    for suite in PAGES.into_iter().flat_map(|(_, suites)| suites) {
        let report = Report::read(&docs.join(format!("figures/{suite}.json")))?;
        let conditions = report.conditions.as_ref();
        if conditions.ok_or("figures without conditions")?.quick {
            return Err(format!("{suite}: a short run is not published").into());
        }
        reports.insert(suite, report);
    }
    let mut outputs = BTreeMap::new();
    for (page, suites) in PAGES {
        let file = docs.join(format!("measurements/{page}.md"));
        let mut text = fs::read_to_string(&file)?;
        for suite in suites {
            let tables = reports[suite].tables.iter().map(|table| table.markdown());
            text = filled(&text, suite, &tables.collect::<Vec<_>>().join("\n"))?;
        }
        if page == "sizing" {
            text = filled(
                &text,
                "example",
                &example(&reports).ok_or("no such figures")?,
            )?;
        }
        text = filled(&text, "conditions", &conditions(suites, &reports))?;
        outputs.insert(file, text);
    }
    let algorithms = drawings::algorithms()?;
    outputs.insert(docs.join("guide/drawing.txt"), as_link(&algorithms));
    outputs.insert(docs.join("charts/algorithms.svg"), algorithms);
    let outage = drawings::outage(&reports["outage"].timelines);
    outputs.insert(docs.join("charts/outage.svg"), outage);
    Ok(outputs)
}

/// Returns the page with its region of this name filled anew. A region lies between `<!-- measured: NAME -->` and
/// `<!-- /measured: NAME -->`.
///
/// # Errors
/// When there is no such region: the figures would be lost.
fn filled(page: &str, name: &str, text: &str) -> Result<String, String> {
    let opening = format!("<!-- measured: {name} -->");
    let closing = format!("<!-- /measured: {name} -->");
    let split = page.split_once(&opening).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&closing)?;
        Some((before, after))
    });
    let (before, after) = split.ok_or_else(|| format!("the page has no region {name}"))?;
    let text = text.trim();
    Ok(format!("{before}{opening}\n\n{text}\n\n{closing}{after}"))
}

/// Returns a line for each machine, tree and day of these suites, and the versions of the peers.
fn conditions(suites: &[&str], reports: &Reports) -> String {
    let (mut text, mut peers) = (String::new(), String::new());
    for suite in suites {
        if let Some(conditions) = &reports[suite].conditions {
            text += &format!("* {suite}: {}\n", conditions.line());
            peers = conditions.peers();
        }
    }
    format!("{text}\nPeers: {peers}.\n")
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

/// Returns a table of the cores and the bandwidth that 1.7 million checks a second need.
fn example(reports: &Reports) -> Option<String> {
    const RATE: f64 = 1_700_000.0;
    /// The share of a core that a Redis should use on average, so that bursts and snapshots have room.
    const BUSY: f64 = 0.6;
    let mut text = String::from(
        "| 1.7 million checks/s, all of them | Redis cores | Redis servers | Gbit/s | service cores |\n\
         |---|---:|---:|---:|---:|\n",
    );
    let mut row = |name: &str, redis_us: f64, bytes: f64, service_us: f64| {
        let cores = RATE * redis_us / 1e6;
        text += &format!(
            "| {name} | {} | {:.0} | {} | {} |\n",
            two_digits(cores),
            (cores / BUSY).ceil(),
            two_digits(RATE * bytes * 8.0 / 1e9),
            two_digits(RATE * service_us / 1e6),
        );
    };
    let wire = reports["sizing"].table("limits, tasks under way")?;
    let bytes =
        |case| Some(wire.figure(case, "bytes to Redis")? + wire.figure(case, "bytes from Redis")?);
    for (name, case) in [
        ("one limit, a call for each decision", "one limit, 1"),
        ("one limit, 512 under way", "one limit, 512"),
        ("three limits, 512 under way", "three, one key, 512"),
        ("client and team, 512 under way", "three, two keys, 512"),
    ] {
        let service = wire.figure(case, "service µs")?;
        row(name, wire.figure(case, "Redis µs")?, bytes(case)?, service);
    }
    let without = reports["sizing"].table("ns without a call to Redis")?;
    let micros = |name| Some(without.figure(name, "tower-quota")? / 1e3);
    let leases = reports["distributed"].table("8 instances, 4 times the quota")?;
    let leased = |column| leases.figure("tower-quota, leased", column);
    let sent = bytes("one limit, 1")? * leased("calls")?;
    let lease = micros("admitted from a lease")?;
    row("hot clients with leases", leased("Redis µs")?, sent, lease);
    row(
        "refused from memory",
        0.0,
        0.0,
        micros("refused from memory")?,
    );
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{filled, outputs};

    /// The rows of the pages that README repeats, in the order of README. A row is found after a heading of its table.
    const IN_README: [(&str, &str, &str); 13] = [
        ("memory", "ns of a check", "10,000 clients"),
        (
            "memory",
            "ns of a check",
            "client and everyone, 10,000 clients",
        ),
        ("memory", "ns of a check", "three limits, 10,000 clients"),
        ("memory", "ns of a check", "three limits, a million"),
        ("layer", "ns added", "no fields"),
        ("layer", "ns added", "default fields"),
        ("layer", "ns added", "client and everyone, default fields"),
        ("layer", "ns added", "three limits, default fields"),
        ("redis", "decisions/s", "three limits, one key"),
        ("redis", "decisions/s", "three limits, returning clients"),
        (
            "redis",
            "decisions/s, README's service",
            "client and everyone, tasks: 512",
        ),
        (
            "redis",
            "decisions/s, README's service",
            "client and everyone, tasks: 1",
        ),
        (
            "redis",
            "p50 µs, one request in flight, one key",
            "one bucket",
        ),
    ];

    #[test]
    fn short_run_is_not_published() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let kept = fs::read_to_string(docs.join("figures/memory.json")).unwrap();
        let copy = tempfile::tempdir().unwrap();
        fs::create_dir(copy.path().join("figures")).unwrap();
        let short = kept.replace("\"quick\": false", "\"quick\": true");
        fs::write(copy.path().join("figures/memory.json"), short).unwrap();
        let error = outputs(copy.path()).unwrap_err().to_string();
        assert!(
            error.ends_with("memory: a short run is not published"),
            "{error}"
        );
    }

    #[test]
    fn readme_repeats_ratios_of_pages() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let readme = fs::read_to_string(root.join("README.md")).unwrap();
        let (_, table) = readme.split_once("| case | next to | ratio |\n").unwrap();
        let rows = table
            .lines()
            .skip(1)
            .take_while(|line| line.starts_with('|'));
        let shown: Vec<&str> = rows
            .map(|row| row.split('|').nth(3).unwrap().trim())
            .collect();
        let first_cell = |page: &str, heading: &str, row: &str| {
            let page = root.join(format!("docs/measurements/{page}.md"));
            let page = fs::read_to_string(page).unwrap();
            let (_, table) = page.split_once(&format!("| {heading}")).unwrap();
            let (_, cells) = table.split_once(&format!("\n| {row} | ")).unwrap();
            cells.split(' ').next().unwrap().to_owned()
        };
        let kept = IN_README.map(|(page, heading, row)| first_cell(page, heading, row));
        assert_eq!(shown, kept);
    }

    // Fails if `tower-quota-bench pages` was not run after figures, an algorithm or a drawing changed.
    #[test]
    fn pages_show_kept_figures() {
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
    fn filling_a_region_keeps_the_rest() {
        let page = "a\n<!-- measured: x -->\nold\n<!-- /measured: x -->\nb\n";
        let once = filled(page, "x", "new\n").unwrap();
        let expected = "a\n<!-- measured: x -->\n\nnew\n\n<!-- /measured: x -->\nb\n";
        assert_eq!(once, expected);
        assert_eq!(filled(&once, "x", "new").unwrap(), once);
        assert!(filled(page, "y", "new").is_err());
    }
}
