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
    let (mut http_rows, mut grpc_rows) = (String::new(), String::new());
    for case in Case::all() {
        let http = case.answer(Wire::Http).await;
        let grpc = case.answer(Wire::Grpc).await;
        let web = case.answer(Wire::GrpcWeb).await;
        assert_eq!(verdict(&grpc), verdict(&web), "{}", case.name);
        let ends = format!(" | {} | {} |", verdict(&http), verdict(&grpc));
        assert!(
            PAGE.lines()
                .any(|row| row.starts_with(&format!("| {} | ", case.name)) && row.ends_with(&ends)),
            "{}: docs/reference/answers.md should say{ends}",
            case.name
        );

        let is_refusal = verdict(&http) != "the service's own";
        if is_refusal {
            assert_eq!(
                (body(&http), body(&grpc), body(&web)),
                ("problem details", "none", "none")
            );
        }
        let (refused, fields_of_http) = split(&http);
        let expected = if is_refusal { REFUSAL } else { &[] };
        assert_eq!(refused, expected, "{}", case.name);
        writeln!(
            http_rows,
            "| {} | {} |",
            case.name,
            fields_of_http.join("<br>")
        )
        .unwrap();

        // gRPC and gRPC-Web answers have all fields of HTTP, plus the fields of gRPC.
        let without_challenge = |field: &&String| !field.starts_with("`www-authenticate");
        let shared: Vec<&String> = fields_of_http.iter().filter(without_challenge).collect();
        let (of_grpc, fields_of_grpc) = split(&grpc);
        let (of_web, fields_of_web) = split(&web);
        assert_eq!(fields_of_grpc, fields_of_web, "{}", case.name);
        let (own, rest): (Vec<_>, Vec<_>) = fields_of_grpc
            .iter()
            .partition(|field| field.starts_with("`grpc-"));
        assert_eq!(rest, shared, "{}", case.name);
        if is_refusal {
            assert_eq!(
                of_grpc,
                [
                    "`cache-control: no-store`",
                    "`content-type: application/grpc`"
                ]
            );
            assert_eq!(
                of_web,
                [
                    "`cache-control: no-store`",
                    "`content-type: application/grpc-web`"
                ]
            );
            let own: Vec<&str> = own.into_iter().map(String::as_str).collect();
            writeln!(grpc_rows, "| {} | {} |", case.name, own.join("<br>")).unwrap();
        } else {
            assert!(
                own.is_empty() && of_grpc.is_empty() && of_web.is_empty(),
                "{}",
                case.name
            );
        }
    }
    for (title, rows) in [("\n## HTTP\n", http_rows), ("\n## gRPC\n", grpc_rows)] {
        let section = PAGE.split_once(title).unwrap().1;
        let table = section.split_once("|---|---|\n").unwrap().1;
        let shown = table.split("\n\n").next().unwrap().trim_end();
        assert!(
            shown == rows.trim_end(),
            "docs/reference/answers.md should have under{title}\n{rows}"
        );
    }
}

/// The fields of every refusal over HTTP.
const REFUSAL: &[&str] = &[
    "`cache-control: no-store`",
    "`content-type: application/problem+json`",
];

/// Splits the fields of an answer into fields that describe the body, and other fields.
fn split(answer: &Response<Bytes>) -> (Vec<String>, Vec<String>) {
    fields(answer).into_iter().partition(|field| {
        field.starts_with("`cache-control") || field.starts_with("`content-type")
    })
}

/// Returns the meaning of an answer for the client.
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

/// Returns the fields of an answer by name, the types of the status details, and resets in seconds.
fn fields(answer: &Response<Bytes>) -> Vec<String> {
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
    fields
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
