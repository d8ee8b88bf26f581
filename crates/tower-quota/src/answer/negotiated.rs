//! Refusals in the form that the client asks for.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, VARY};
use http::{Response, StatusCode};

use super::accept::Kind;
use super::problem::{self, PROBLEM_JSON, ProblemDetails};
use super::refusal::{Refusal, Refused};
use super::sheet::{Piece, Sheet};

/// Answers with what the client's `Accept` likes best: [problem details](ProblemDetails), a line of plain text, or a
/// small HTML page for people with a browser. Who does not say gets problem details. Answers say `Vary: Accept`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Negotiated;

impl Refusal for Negotiated {
    fn respond(&self, refused: &Refused<'_>) -> Response<Bytes> {
        let mut response = match Kind::wanted(refused.head().headers()) {
            Kind::Problem => ProblemDetails.respond(refused),
            Kind::Text => with(refused.status(), "text/plain; charset=utf-8", format!("{}\n", refused.detail())),
            Kind::Html => with(refused.status(), "text/html; charset=utf-8", page(refused)),
        };
        response.headers_mut().insert(VARY, ACCEPT_VARIES.clone());
        response
    }
}

pub(super) static ACCEPT_VARIES: HeaderValue = HeaderValue::from_static("accept");

impl Negotiated {
    /// The usual answer, with all that can be on the sheet: problem details. `None` where the client wants another.
    pub(super) fn on_sheet(refused: &Refused<'_>, sheet: &mut Sheet<'_>) -> Option<Piece> {
        if Kind::wanted(refused.head().headers()) != Kind::Problem {
            return None;
        }
        sheet.constant(const { &CONTENT_TYPE }, &PROBLEM_JSON);
        sheet.constant(const { &VARY }, &ACCEPT_VARIES);
        let begin = sheet.here();
        problem::write(refused, sheet.out());
        Some(sheet.since(begin))
    }
}

fn with(status: StatusCode, content_type: &'static str, body: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A page that asks for nothing else: no script, font or picture, and colours as the reader has chosen.
fn page(refused: &Refused<'_>) -> String {
    let title = refused.status().canonical_reason().unwrap_or("Refused");
    let detail = escaped(&refused.detail());
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"robots\" content=\"noindex\">\n<title>{title}</title>\n\
         <style>:root{{color-scheme:light dark}}body{{font:1.125rem/1.5 sans-serif;max-width:36rem;margin:15vh auto;\
         padding:0 1rem}}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n<p>{detail}</p>\n</main>\n</body>\n</html>\n"
    )
}

/// Text as it stands between tags.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            _ => out.push(character),
        }
    }
    out
}
