//! The report as one page without scripts and outside resources.

use core::fmt::{self, Display, Write};

use super::chart;
use super::{Report, Section};
use crate::output::Table;

const STYLE: &str = include_str!("report.css");

/// Text from a log or a document, which may hold anything.
struct Escaped<'a>(&'a str);

/// Returns the page.
pub(crate) fn page(report: &Report) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <title>Simulation of rate limits</title><style>{STYLE}</style></head><body><main>\
         <h1>Simulation of rate limits</h1>"
    );
    for part in report.sections() {
        // Writing to a string cannot fail.
        let _ = section(&mut out, &part);
    }
    out + "</main></body></html>\n"
}

fn section(out: &mut String, section: &Section<'_>) -> fmt::Result {
    write!(out, "<h2>{}</h2>", section.title)?;
    for line in &section.lines {
        write!(out, "<p>{}</p>", Escaped(line))?;
    }
    if let Some(series) = section.series {
        let seconds = series.span_micros() / 1_000_000;
        write!(
            out,
            "<figure>{}<figcaption><span class=\"admitted\">admitted</span> <span class=\"refused\">refused</span> \
             requests in each {seconds} s, UTC</figcaption></figure>",
            chart::svg(series)
        )?;
    }
    for table in &section.tables {
        self::table(out, table)?;
    }
    Ok(())
}

fn table(out: &mut String, table: &Table) -> fmt::Result {
    out.push_str("<div class=\"scroll\"><table><thead><tr>");
    for head in &table.heads {
        write!(out, "<th scope=\"col\">{head}</th>")?;
    }
    out.push_str("</tr></thead><tbody>");
    for row in &table.rows {
        out.push_str("<tr>");
        for cell in row {
            write!(out, "<td>{}</td>", Escaped(cell))?;
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
    Ok(())
}

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}
