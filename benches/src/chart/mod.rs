//! Charts and tables of what was measured, so that the documents cannot drift from it.
//!
//! A maintainer runs every suite with `--json` and then this. No library draws the charts: bars are little work, and
//! charting libraries set colours that do not follow the reader's light or dark mode.

mod algorithms;
mod before_after;
mod front;
mod grid;
mod numbers;
mod pictures;
mod regions;
mod scale;
mod svg;
mod tables;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) use self::before_after::print as print_before_after;
use self::grid::Grid;
use self::pictures::pictures;
use self::regions::filled;
use crate::report::Report;

/// Shows figures before and after, in the region of this name.
const REAL_TRAFFIC: (&str, &str) = ("measurements/real_traffic.md", "real-traffic");

/// The drawing of the algorithms for rustdoc, in the folder of documents.
const DRAWING_LINK: &str = "guide/drawing.txt";

/// Draws the algorithms and the charts of these files, and fills the regions of the documents.
pub(crate) fn run(files: &[PathBuf], into: &Path) -> Result<(), Box<dyn Error>> {
    let charts = into.join("charts");
    fs::create_dir_all(&charts)?;
    let drawing = algorithms::drawn()?;
    fs::write(charts.join(algorithms::FILE), &drawing)?;
    fs::write(into.join(DRAWING_LINK), algorithms::as_link(&drawing))?;
    for file in files {
        let named = |error: Box<dyn Error>| format!("{}: {error}", file.display());
        let report = Report::read(&fs::read_to_string(file)?).map_err(named)?;
        let page = page(&report).map_err(named)?;
        for (name, drawing) in &page.charts {
            fs::write(charts.join(name), drawing)?;
        }
        fill(
            &into.join(document_of(report.suite())),
            report.suite(),
            &page.text,
        )
        .map_err(named)?;
    }
    let figures = into.join("figures");
    let (document, region) = front::FRONT;
    fill(&into.join(document), region, &front::table(&figures)?)?;
    let (document, region) = REAL_TRAFFIC;
    fill(
        &into.join(document),
        region,
        &before_after::tables(&figures)?,
    )
}

/// Returns the document that shows a suite's figures.
fn document_of(suite: &str) -> &'static str {
    match suite {
        "distance" | "redis" => "measurements/redis.md",
        "distributed" | "outage" | "simulation" => "measurements/distributed.md",
        "rules" | "reload" => "reference/rules.md",
        _ => "measurements/memory.md",
    }
}

fn fill(document: &Path, region: &str, text: &str) -> Result<(), Box<dyn Error>> {
    let old =
        fs::read_to_string(document).map_err(|error| format!("{}: {error}", document.display()))?;
    Ok(fs::write(document, filled(&old, region, text)?)?)
}

/// The charts and the text of a suite.
struct Page {
    /// Charts by the names of their files.
    charts: Vec<(String, String)>,
    /// Markdown that shows them.
    text: String,
}

fn page(report: &Report) -> Result<Page, Box<dyn Error>> {
    let mut page = Page {
        charts: Vec::new(),
        text: format!("{}.\n", report.conditions()),
    };
    let pictures = pictures(report.suite())?;
    for picture in pictures {
        let grid = Grid::of(report, picture);
        // A short run leaves some out.
        if grid.is_empty() {
            continue;
        }
        let file = format!("{}.svg", picture.name);
        page.text += &format!(
            "\n![{}: {}](../charts/{file})\n",
            picture.title, picture.unit
        );
        if picture.has_table {
            page.text += &tables::of_grid(&grid);
        }
        page.charts
            .push((file, svg::drawn(&grid, &report.conditions())));
    }
    if pictures.iter().all(|picture| !picture.has_table) {
        page.text += &tables::of_rows(report);
    }
    page.text += &tables::of_ratios(report);
    Ok(page)
}

#[cfg(test)]
mod tests;
