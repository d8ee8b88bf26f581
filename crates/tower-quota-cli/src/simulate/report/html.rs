use core::fmt::{self, Write};

use serde_json::Value;

use super::chart;
use crate::output::{Part, Table, parts};
use crate::simulate::series::Series;
use crate::simulate::tally::Tally;

const STYLE: &str = include_str!("report.css");

/// Returns the page of a report, with a chart for the new rules and for the old rules.
pub(crate) fn page(report: &Value, tallies: &[Tally]) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <title>Simulation of rate limits</title><style>{STYLE}</style></head><body><main>\
         <h1>Simulation of rate limits</h1>"
    );
    for (name, value) in report.as_object().into_iter().flatten() {
        let tally = match name.as_str() {
            "new" => tallies.first(),
            "old" => tallies.last(),
            _ => None,
        };
        let series = tally.map(|tally| &tally.series);
        // Writing to a string cannot fail.
        let _ = section(&mut out, name, series, value);
    }
    out + "</main></body></html>\n"
}

fn section(out: &mut String, title: &str, series: Option<&Series>, value: &Value) -> fmt::Result {
    write!(out, "<h2>{title}</h2>")?;
    if let Some(series) = series {
        let seconds = series.span_micros() / 1_000_000;
        write!(
            out,
            "<figure>{}<figcaption><span class=\"admitted\">admitted</span> <span class=\"refused\">refused</span> \
             requests in each {seconds} s, UTC</figcaption></figure>",
            chart::svg(series)
        )?;
    }
    for (name, part) in parts(value) {
        match part {
            Part::Line(text) => write!(out, "<p><b>{name}</b> {}</p>", escaped(&text))?,
            Part::Table(rows) => {
                write!(out, "<h3>{name}</h3>")?;
                table(out, &rows)?;
            }
        }
    }
    Ok(())
}

fn table(out: &mut String, table: &Table) -> fmt::Result {
    out.push_str("<div class=\"scroll\"><table>");
    for (row, tag) in
        core::iter::once((&table.heads, "th")).chain(table.rows.iter().map(|row| (row, "td")))
    {
        out.push_str("<tr>");
        for cell in row {
            write!(out, "<{tag}>{}</{tag}>", escaped(cell))?;
        }
        out.push_str("</tr>");
    }
    out.push_str("</table></div>");
    Ok(())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
