//! The table of the README, which compares tower-quota with what people use today.

use std::error::Error;
use std::fs;
use std::path::Path;

use super::numbers::written;
use crate::report::Report;

/// The README, in the folder of documents, and its region.
pub(super) const FRONT: (&str, &str) = ("../README.md", "front");

/// The table with a place for each figure: `{suite;case;contender;figure}`.
const TEMPLATE: &str = include_str!("front.md");

/// Returns the table, with the figures of this folder.
pub(super) fn table(figures: &Path) -> Result<String, Box<dyn Error>> {
    let mut parts = TEMPLATE.split('{');
    let mut table = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (place, text) = part.split_once('}').ok_or("a place has no end")?;
        table += &figure(place, figures)?;
        table += text;
    }
    Ok(table)
}

fn figure(place: &str, figures: &Path) -> Result<String, Box<dyn Error>> {
    let missing = || format!("there is no figure {place}");
    let [suite, case, contender, figure] = place
        .split(';')
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|_| missing())?;
    let kept = fs::read_to_string(figures.join(suite).with_extension("json"))?;
    let report = Report::read(&kept)?;
    let mut rows = report.rows().iter();
    let row = rows.find(|row| row.case == case && row.contender == contender);
    let value = row.and_then(|row| row.figures.get(figure));
    Ok(written(*value.ok_or_else(missing)?))
}
