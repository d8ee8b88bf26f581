//! The report as one page without scripts and outside resources.

use core::fmt::{self, Display, Write};

use plotters::style::RGBColor;

use super::chart::{Line, over_time};
use super::{Report, SideReport, text};
use crate::output::grouped;
use crate::simulate::run::Simulation;
use crate::simulate::share::Share;

const ADMITTED: RGBColor = RGBColor(0x2e, 0x9e, 0x6b);
const REFUSED: RGBColor = RGBColor(0xd6, 0x45, 0x45);
const STYLE: &str = include_str!("report.css");

/// Text from a log or a document, which may hold anything.
struct Escaped<'a>(&'a str);

/// Returns the page.
pub(crate) fn page(report: &Report, simulation: &Simulation) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut out, report, simulation);
    out
}

fn write_page(out: &mut String, report: &Report, simulation: &Simulation) -> fmt::Result {
    let log = &report.log;
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <title>Simulation of rate limits</title><style>{STYLE}</style></head><body><main>\
         <h1>Simulation of rate limits</h1><p>{} requests from {} to {} UTC. Busiest second: {} requests at {}.</p>",
        grouped(log.requests),
        log.from,
        log.to,
        grouped(log.busiest_second.requests),
        log.busiest_second.at
    )?;
    if let Some(change) = &report.change {
        write!(
            out,
            "<h2>From the old rules to the new ones</h2><p class=\"figures\"><b>{}</b> requests are newly refused, \
             <b>{}</b> newly admitted.</p>",
            grouped(change.newly_refused),
            grouped(change.newly_admitted)
        )?;
        let rows = change.limits.iter().map(|limit| {
            [
                limit.limit.clone(),
                grouped(limit.newly_hit),
                grouped(limit.no_longer_hit),
            ]
        });
        table(
            out,
            "Clients by limit",
            [
                "Limit",
                "Newly limited clients",
                "No longer limited clients",
            ],
            rows,
        )?;
    }
    let titles: [&str; 2] = if report.old.is_some() {
        ["New rules", "Old rules"]
    } else {
        ["Result", ""]
    };
    let sides = core::iter::once(&report.new).chain(&report.old);
    for ((side, title), replay) in sides.zip(titles).zip(&simulation.replays) {
        write!(out, "<h2>{title}</h2>")?;
        let tally = replay.tally();
        // The last span has not ended: its counts would look like a fall.
        let ended = tally.series.spans().count().saturating_sub(1).max(1);
        let points = |which: usize| {
            tally
                .series
                .spans()
                .take(ended)
                .map(|(at, counts)| (at / 1_000_000, counts[which]))
                .collect()
        };
        let lines = [
            Line {
                name: "admitted",
                colour: ADMITTED,
                points: points(0),
            },
            Line {
                name: "refused",
                colour: REFUSED,
                points: points(1),
            },
        ];
        chart(out, &lines, tally.series.span_micros() / 1_000_000)?;
        drop(tally);
        tables(out, side, log.requests)?;
    }
    if let Some(suggestion) = &report.suggestion {
        write!(
            out,
            "<h2>Suggestion</h2><p>The lowest quota of <b>{}</b> that limits few enough clients is <b>{}</b> (now {}): it \
             limits {} of {} clients, {}.</p>",
            Escaped(&suggestion.limit),
            Escaped(&suggestion.quota),
            Escaped(&suggestion.now),
            grouped(suggestion.hit),
            grouped(suggestion.clients),
            Share::of(suggestion.hit, suggestion.clients)
        )?;
    }
    if !report.notes.is_empty() {
        out.push_str("<h2>Notes</h2><ul>");
        for note in &report.notes {
            write!(out, "<li>{}</li>", Escaped(note))?;
        }
        out.push_str("</ul>");
    }
    out.push_str("</main></body></html>\n");
    Ok(())
}

fn chart(out: &mut String, lines: &[Line<'_>], span_seconds: u64) -> fmt::Result {
    out.push_str("<figure>");
    out.push_str(&over_time(lines));
    out.push_str("<figcaption>");
    for line in lines {
        let RGBColor(red, green, blue) = line.colour;
        write!(
            out,
            "<span style=\"--colour:#{red:02x}{green:02x}{blue:02x}\">{}</span> ",
            line.name
        )?;
    }
    match span_seconds {
        1 => out.push_str("requests per second"),
        seconds => write!(out, "requests per {seconds} seconds")?,
    }
    out.push_str("</figcaption></figure>");
    Ok(())
}

fn tables(out: &mut String, side: &SideReport, requests: u64) -> fmt::Result {
    let outcomes = text::outcomes(side);
    let rows = outcomes.map(|(count, name)| {
        [
            name.to_owned(),
            grouped(count),
            Share::of(count, requests).to_string(),
        ]
    });
    table(
        out,
        "Outcomes",
        ["Outcome", "Requests", "Share"],
        rows.into_iter(),
    )?;
    let rows = side.limits.iter().map(|limit| {
        [
            if limit.shadow {
                format!("{} (shadow)", limit.name)
            } else {
                limit.name.clone()
            },
            grouped(limit.requests),
            grouped(limit.limited),
            grouped(limit.clients),
            grouped(limit.clients_hit),
            Share::of(limit.clients_hit, limit.clients).to_string(),
            grouped(limit.busiest_second.requests),
            format!("{} s", limit.longest_retry_seconds),
            format!("{} ms", limit.longest_wait_millis),
        ]
    });
    let heads = [
        "Limit",
        "Requests",
        "Limited",
        "Clients",
        "Limited clients",
        "Share",
        "Peak per second",
        "Longest retry",
        "Longest wait",
    ];
    table(out, "Limits", heads, rows)?;
    let rows = side.clients.iter().map(|client| {
        [
            client.client.clone(),
            client.limit.clone(),
            grouped(client.requests.into()),
            grouped(client.limited.into()),
            client.first.clone(),
            client.last.clone(),
        ]
    });
    table(
        out,
        "Clients that are limited most",
        ["Client", "Limit", "Requests", "Limited", "First", "Last"],
        rows,
    )
}

fn table<const N: usize>(
    out: &mut String,
    caption: &str,
    heads: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> fmt::Result {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    write!(
        out,
        "<div class=\"scroll\"><table><caption>{caption}</caption><thead><tr>"
    )?;
    for head in heads {
        write!(out, "<th scope=\"col\">{head}</th>")?;
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows {
        out.push_str("<tr>");
        for cell in &row {
            let class = if cell.starts_with(|c: char| c.is_ascii_digit()) {
                " class=\"number\""
            } else {
                ""
            };
            write!(out, "<td{class}>{}</td>", Escaped(cell))?;
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
                '\'' => f.write_str("&#39;")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}
