use serde_json::Value;

use super::chart;
use crate::output::describe;
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
        out += &format!("<h2>{name}</h2>");
        let tally = match name.as_str() {
            "new" => tallies.first(),
            "old" => tallies.last(),
            _ => None,
        };
        if let Some(tally) = tally {
            let seconds = tally.series.span_micros() / 1_000_000;
            out += &format!(
                "<figure>{}<figcaption><span class=\"admitted\">admitted</span> <span class=\"refused\">refused</span> \
                 requests in each {seconds} s, UTC</figcaption></figure>",
                chart::svg(&tally.series)
            );
        }
        out += &format!("<pre>{}</pre>", escaped(&describe(value)));
    }
    out + "</main></body></html>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
