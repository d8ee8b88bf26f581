//! A line of a log as the request that it was.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderName, HeaderValue, Method, Request, Uri};

use super::service::LoggedResponse;
use crate::log::LogRecord;

/// Makes the request of a line, with what is logged of its response as its body.
///
/// Returns `None` if it is no request of HTTP: a server answers those itself.
pub(super) fn request(record: &LogRecord<'_>) -> Option<Request<LoggedResponse>> {
    let mut request = Request::new(LoggedResponse {
        status: record.status,
        bytes: record.bytes,
    });
    *request.method_mut() = Method::from_bytes(record.method.as_bytes()).ok()?;
    *request.uri_mut() = uri(&record.target)?;
    if let Some(address) = record.address {
        request.extensions_mut().insert(address);
    }
    let headers = request.headers_mut();
    if let Some(host) = &record.host {
        headers.insert(HOST, HeaderValue::from_str(host).ok()?);
    }
    if let Some(user) = &record.user {
        // The password is not in the log, and no key reads it.
        let credentials = STANDARD.encode(format!("{user}:"));
        headers.insert(
            AUTHORIZATION,
            HeaderValue::try_from(format!("Basic {credentials}")).ok()?,
        );
    }
    for (name, value) in &record.headers {
        // A header that cannot be one is left out: the server would not have read it either.
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_str(value),
        ) {
            headers.append(name, value);
        }
    }
    Some(request)
}

/// Reads a target. Some servers log it decoded, with spaces and quotes.
fn uri(target: &str) -> Option<Uri> {
    if let Ok(uri) = Uri::try_from(target) {
        return Some(uri);
    }
    let mut encoded = String::with_capacity(target.len() + 16);
    for byte in target.bytes() {
        if byte.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    Uri::try_from(encoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_with_spaces_is_encoded() {
        assert_eq!(uri("/a b\"é").unwrap().path(), "/a%20b%22%C3%A9");
        assert_eq!(uri("http://host/a?b").unwrap().path(), "/a");
        assert!(uri("").is_none());
    }

    #[test]
    fn line_becomes_its_request() {
        let mut record = LogRecord {
            method: "POST".into(),
            target: "/a?b=1".into(),
            ..LogRecord::default()
        };
        record.address = Some([10, 0, 0, 1].into());
        record.user = Some("ann".into());
        record.host = Some("a.example".into());
        record.add_header("x-api-key", "k");
        record.add_header("not a name", "k");
        let request = request(&record).unwrap();
        assert_eq!(
            (request.method(), request.uri().path()),
            (&Method::POST, "/a")
        );
        assert_eq!(request.headers()["authorization"], "Basic YW5uOg==");
        assert_eq!(
            (&request.headers()["host"], &request.headers()["x-api-key"]),
            (&"a.example".parse().unwrap(), &"k".parse().unwrap())
        );
        assert_eq!(request.headers().len(), 3);
        assert_eq!(
            request.extensions().get(),
            Some(&core::net::IpAddr::from([10, 0, 0, 1]))
        );
    }
}
