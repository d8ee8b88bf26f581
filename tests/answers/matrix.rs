//! Tests that the matrix of answers in the documentation shows what the layer does.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use http::Response;
use tower_quota::store::Clock;
use tower_quota_testkit::ManualClock;

use crate::setting::{Case, Wire};

const PAGE: &str = include_str!("../../docs/reference/answers.md");

#[tokio::test(start_paused = true)]
async fn documented_answers_match_layer() {
    let mut glance =
        String::from("## At a glance\n\n| answer | HTTP | gRPC | gRPC-Web |\n|---|---|---|---|\n");
    for case in Case::all() {
        write!(glance, "| {} |", case.name).unwrap();
        for wire in Wire::ALL {
            write!(glance, " {} |", verdict(&case.answer(wire).await)).unwrap();
        }
        glance.push('\n');
    }
    let mut page = glance;
    for wire in Wire::ALL {
        writeln!(
            page,
            "\n## {}\n\n| answer | status | body | fields |\n|---|---|---|---|",
            wire.name()
        )
        .unwrap();
        for case in Case::all() {
            let answer = case.answer(wire).await;
            let (status, body, fields) = (answer.status().as_u16(), body(&answer), fields(&answer));
            writeln!(page, "| {} | {status} | {body} | {fields} |", case.name).unwrap();
        }
    }
    let begin = PAGE.find("## At a glance").unwrap();
    assert!(
        PAGE[begin..] == page,
        "docs/reference/answers.md should go on:\n\n{page}"
    );
}

/// Returns the meaning of an answer to its client.
fn verdict(answer: &Response<Bytes>) -> String {
    match answer
        .headers()
        .get("grpc-status")
        .map(|code| code.to_str().unwrap())
    {
        None if answer.status() == 200 => String::from("the service's own"),
        None => answer.status().to_string(),
        Some("3") => String::from("`INVALID_ARGUMENT`"),
        Some("7") => String::from("`PERMISSION_DENIED`"),
        Some("8") => String::from("`RESOURCE_EXHAUSTED`"),
        Some("13") => String::from("`INTERNAL`"),
        Some("14") => String::from("`UNAVAILABLE`"),
        Some("16") => String::from("`UNAUTHENTICATED`"),
        Some(other) => panic!("{other}"),
    }
}

fn body(answer: &Response<Bytes>) -> &'static str {
    match (&answer.body()[..], answer.headers().get("content-type")) {
        (b"", _) => "none",
        (b"the service's own", None) => "the service's own",
        (_, Some(kind)) if kind == "application/problem+json" => "problem details",
        other => panic!("{other:?}"),
    }
}

/// Returns the fields of an answer by name, the types of a status's details, and resets in seconds.
fn fields(answer: &Response<Bytes>) -> String {
    let mut fields: Vec<String> = answer
        .headers()
        .iter()
        .map(|(name, value)| match name.as_str() {
            "grpc-status-details-bin" => format!("`{name}`: {}", details(value.as_bytes())),
            "x-ratelimit-reset" => format!("`{name}`: in {} s", until(value.to_str().unwrap())),
            _ => format!("`{name}: {}`", value.to_str().unwrap()),
        })
        .collect();
    fields.sort();
    fields.join("<br>")
}

/// Returns the seconds from the clock of the tests to a second of the Unix epoch.
fn until(second: &str) -> u64 {
    let now = ManualClock::default().now().as_micros().div_ceil(1_000_000);
    second.parse::<u64>().unwrap().saturating_sub(now)
}

fn details(value: &[u8]) -> String {
    let status = STANDARD_NO_PAD.decode(value).unwrap();
    let text = String::from_utf8_lossy(&status);
    ["ErrorInfo", "RetryInfo", "QuotaFailure"]
        .into_iter()
        .filter(|detail| text.contains(&format!("type.googleapis.com/google.rpc.{detail}")))
        .collect::<Vec<_>>()
        .join(", ")
}
