use core::error::Error;

use axum::body::Bytes;
use axum::extract::Request;
use http::{HeaderMap, StatusCode, header};
use http_body_util::LengthLimitError;
use serde::de::DeserializeOwned;

use super::options::HttpOptions;
use super::problem::Problem;

/// Reads the fields and the body of a call that has the token, within the deadline and up to the maximum.
pub(crate) async fn read(
    request: Request,
    options: &HttpOptions,
) -> Result<(HeaderMap, Bytes), Problem> {
    let (head, body) = request.into_parts();
    options.authenticate(&head.headers)?;
    let most = options.largest_body;
    let read = axum::body::to_bytes(body, most);
    match tokio::time::timeout(options.body_timeout, read).await {
        Ok(Ok(bytes)) => Ok((head.headers, bytes)),
        Ok(Err(error)) => Err(match error.source() {
            Some(source) if source.is::<LengthLimitError>() => Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format_args!("a body has at most {most} bytes: send less"),
            ),
            _ => Problem::bad_request("the body has ended early: send it again"),
        }),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            format_args!(
                "the body has not arrived within {:?}: send it again",
                options.body_timeout
            ),
        )),
    }
}

/// Returns a problem unless the fields say that the body is JSON.
///
/// A page of another origin cannot send this type without a preflight request, which the doors refuse.
pub(crate) fn expect_json(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    match kind.eq_ignore_ascii_case("application/json") {
        true => Ok(()),
        false => Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body is not JSON: send `Content-Type: application/json`",
        )),
    }
}

/// Reads the JSON object of a body.
pub(crate) fn json<T: DeserializeOwned>(headers: &HeaderMap, bytes: &[u8]) -> Result<T, Problem> {
    expect_json(headers)?;
    // A derived reader takes a list of the fields too.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(Problem::bad_request(
            "the body cannot be read: expected an object",
        ));
    }
    let read = serde_json::from_slice(bytes);
    read.map_err(|error| Problem::bad_request(format_args!("the body cannot be read: {error}")))
}
