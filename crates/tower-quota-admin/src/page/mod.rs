//! The live page, which is a single response without outside resources, made of the files in this
//! folder.
//!
//! The page holds no data, so it needs no authentication. The script of the page asks you for a
//! token, keeps the token for the session of the browser's tab, and sends the token in
//! `Authorization`. Other sites cannot read or set the header, so they cannot send requests for a
//! person who has the page open. The content security policy only admits scripts and styles with
//! the nonce of the response, and connections to the same origin.

use axum::Router;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use http::{HeaderName, HeaderValue, header};

use crate::problem::{Problem, ProblemKind, Result};

const FRAME: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");

/// The parts of the script, which the page contains as one module.
const SCRIPT: [&str; 7] = [
    include_str!("server.js"),
    include_str!("elements.js"),
    include_str!("chart.js"),
    include_str!("dialog.js"),
    include_str!("clients.js"),
    include_str!("rules.js"),
    include_str!("page.js"),
];

/// Returns the router of the page. If your own layer authenticates, the page asks for no token.
pub(crate) fn route(own_authentication: bool) -> Router {
    let page = FRAME
        .replace(
            "{{authentication}}",
            if own_authentication { "own" } else { "token" },
        )
        .replace("{{style}}", STYLE)
        .replace("{{script}}", &SCRIPT.concat());
    Router::new().route("/", get(move || async move { serve(&page) }))
}

fn serve(page: &str) -> Result<Response> {
    let nonce = nonce()?;
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    );
    // The conversion cannot fail, because digits are a valid value.
    let policy =
        HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"));
    let opener = HeaderName::from_static("cross-origin-opener-policy");
    let fields = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (opener, HeaderValue::from_static("same-origin")),
    ];
    Ok((fields, Html(page.replace("{{nonce}}", &nonce))).into_response())
}

/// Returns 128 random bits, as hexadecimal digits.
fn nonce() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        let detail = format_args!(
            "the operating system gives no random bytes for the page's nonce: {error}"
        );
        Problem::new(ProblemKind::Unavailable, detail)
    })?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_names_no_outside_resource() {
        const FORBIDDEN: [&str; 10] = [
            "http:",
            "https:",
            "src=",
            "url(",
            "@import",
            "import(",
            "innerHTML",
            "onclick",
            "onload",
            "eval(",
        ];
        for part in [FRAME, STYLE].into_iter().chain(SCRIPT) {
            let found: Vec<&str> = FORBIDDEN
                .into_iter()
                .filter(|text| part.contains(text))
                .collect();
            assert!(found.is_empty(), "{found:?} in {part}");
        }
    }

    #[test]
    fn nonce_differs_with_each_response() {
        let (one, other) = (nonce().unwrap(), nonce().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 32);
    }
}
