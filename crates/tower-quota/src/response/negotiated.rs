//! Refusals in the form that the client prefers.

use http::Response;
use http::header::{ACCEPT, HeaderMap, HeaderValue, VARY};

use super::problem::ProblemDetails;
use super::refusal::{Refusal, respond};
use super::refusal_body::RefusalBody;
use super::refused::Refused;

/// Answers in the form that the client's `Accept` prefers.
///
/// The forms are [problem details](ProblemDetails), a line of plain text, and a small HTML page for people with a
/// browser. Clients without a preference get problem details. Responses have `Vary: Accept`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Negotiated;

impl Refusal for Negotiated {
    fn respond(&self, refused: &Refused<'_>) -> Response<RefusalBody> {
        let mut response = match Form::preferred(refused.head().headers()) {
            Form::Problem => ProblemDetails.respond(refused),
            Form::Text => respond(
                refused.status(),
                "text/plain; charset=utf-8",
                format!("{}\n", refused.detail()),
            ),
            Form::Html => respond(refused.status(), "text/html; charset=utf-8", page(refused)),
        };
        response
            .headers_mut()
            .insert(VARY, const { HeaderValue::from_static("accept") });
        response
    }
}

/// Returns a page without scripts, fonts or pictures, in the colours that the reader has chosen.
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

/// Returns a text escaped for HTML.
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

/// The maximum number of bytes of `Accept` that are read. No browser sends as many.
const MAX_ACCEPT_BYTES: usize = 1_024;

/// The forms of a refusal, in the order of preference where the client has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Problem,
    Text,
    Html,
}

impl Form {
    /// Returns the form that a client prefers.
    ///
    /// It is problem details if `Accept` is missing, malformed or names none of the forms.
    fn preferred(headers: &HeaderMap) -> Self {
        let mut lines = headers.get_all(ACCEPT).iter();
        match (lines.next(), lines.next()) {
            // Most programs send no other preference.
            (None, _) => Self::Problem,
            (Some(only), None) if only.as_bytes() == b"*/*" => Self::Problem,
            _ => accepted(headers).unwrap_or(Self::Problem),
        }
    }

    /// Returns the precision with which a media range names this form; `None` if it does not.
    fn specificity(self, range: &str) -> Option<u8> {
        let (exact, alias, family) = match self {
            // Few clients name problem details, and many name JSON.
            Self::Problem => (
                "application/problem+json",
                "application/json",
                "application/*",
            ),
            Self::Text => ("text/plain", "text/plain", "text/*"),
            Self::Html => ("text/html", "text/html", "text/*"),
        };
        let names = ["*/*", family, alias, exact];
        let position = names
            .iter()
            .rposition(|name| range.eq_ignore_ascii_case(name))?;
        u8::try_from(position + 1).ok()
    }
}

/// Returns the form with the highest weight in `Accept`; `None` if the field is malformed.
///
/// See RFC 9110, section 12.5.1.
fn accepted(headers: &HeaderMap) -> Option<Form> {
    // Each form has the weight of its most specific range.
    let mut weights = [Form::Problem, Form::Text, Form::Html].map(|form| (form, (0, 0)));
    let mut length = 0;
    for line in headers.get_all(ACCEPT) {
        length += line.len();
        if length > MAX_ACCEPT_BYTES {
            return None;
        }
        // A quoted comma or semicolon, which no client sends, makes a malformed range.
        for range in line
            .to_str()
            .ok()?
            .split(',')
            .map(str::trim)
            .filter(|range| !range.is_empty())
        {
            let (range, weight) = weighted_range(range)?;
            for (form, best) in &mut weights {
                if let Some(specificity) = form.specificity(range) {
                    *best = (*best).max((specificity, weight));
                }
            }
        }
    }
    let highest = weights
        .iter()
        .map(|(_, (_, weight))| *weight)
        .max()
        .filter(|highest| *highest > 0)?;
    weights
        .into_iter()
        .find(|(_, (_, weight))| *weight == highest)
        .map(|(form, _)| form)
}

/// Returns a media range without its parameters, and its weight in thousandths.
fn weighted_range(range: &str) -> Option<(&str, u16)> {
    let mut parts = range.split(';').map(str::trim);
    let media_range = parts
        .next()
        .filter(|media_range| media_range.contains('/'))?;
    let mut weight = 1_000;
    for part in parts {
        let (name, value) = part.split_once('=')?;
        if name.eq_ignore_ascii_case("q") {
            weight = thousandths(value)?;
        }
    }
    Some((media_range, weight))
}

/// Returns 850 for `0.85`: at most three digits after the point, and at most 1 (RFC 9110, section 12.4.2).
fn thousandths(text: &str) -> Option<u16> {
    let (integer, digits) = text.split_once('.').unwrap_or((text, ""));
    let is_weight = matches!(integer, "0" | "1")
        && digits.len() <= 3
        && digits.bytes().all(|digit| digit.is_ascii_digit());
    let padded = is_weight.then(|| format!("{integer}{digits:0<3}"))?;
    padded.parse().ok().filter(|weight| *weight <= 1_000)
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT, HeaderMap};

    use super::Form::{self, Html, Problem, Text};

    fn preferred(lines: &[&str]) -> Form {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(ACCEPT, line.parse().unwrap());
        }
        Form::preferred(&headers)
    }

    #[test]
    fn client_gets_the_form_it_prefers() {
        for (accept, form) in [
            // A browser's navigation, and its scripts.
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
                Html,
            ),
            ("*/*", Problem),
            ("application/json, text/plain, */*", Problem),
            ("application/json", Problem),
            ("application/problem+json;q=0.5, text/plain;q=0.4", Problem),
            ("text/plain", Text),
            ("text/*", Text),
            ("text/plain;q=0.2, text/html;q=0.3", Html),
            ("TEXT/HTML; charset=utf-8; Q=1.000", Html),
            (
                "text/*;q=0.9, text/plain;q=0.1, application/json;q=0.5",
                Html,
            ),
            ("application/json;q=0, text/*;q=0.001", Text),
            (
                "application/problem+json;q=0, application/json, text/html;q=0.1",
                Html,
            ),
            ("text/html;q=0, */*;q=0.1", Problem),
        ] {
            assert_eq!(preferred(&[accept]), form, "{accept}");
        }
        assert_eq!(preferred(&["text/plain;q=0.5", "text/html"]), Html);
    }

    #[test]
    fn malformed_accept_gets_problem_details() {
        let long = "text/html,".repeat(200);
        for accept in [
            "",
            ",,",
            "image/png",
            "*/*;q=0",
            "text/html;q=2",
            "text/html;q=0.1234",
            "text/html;q=-1",
            "text/html;q=",
            "text/html;q",
            "text",
            "text/html;x=\"a,b\"",
            "text/html;q=1.001",
            "text/html;q=٣",
            &long,
        ] {
            let mut headers = HeaderMap::new();
            headers.append(ACCEPT, accept.as_bytes().try_into().unwrap());
            assert_eq!(Form::preferred(&headers), Problem, "{accept}");
        }
        assert_eq!(Form::preferred(&HeaderMap::new()), Problem);
    }
}
