//! The path that a service may read from another spelling.

use axum::extract::OriginalUri;
use http::{Request, Uri};

/// The characters of a path that need no percent-encoding, other than letters and digits.
const PLAIN: &[u8] = b"-._~!$&'()*+,;=:@/";

/// Gives a request the plain spelling of its path, next to the spelling that the client sent.
///
/// Services decode `/%6Cogin`, merge slashes and resolve dots, after the limits have been decided. With two spellings, a
/// limit applies if either spelling matches, and an exemption applies if both match.
pub(crate) fn with_plain_path(request: Request<()>) -> Request<()> {
    let (mut head, ()) = request.into_parts();
    let path = plain(head.uri.path());
    if path != head.uri.path() {
        let query = head.uri.query().map(|query| format!("?{query}"));
        let uri = format!("{path}{}", query.unwrap_or_default()).parse::<Uri>();
        if let Ok(uri) = uri {
            let sent = core::mem::replace(&mut head.uri, uri);
            head.extensions.insert(OriginalUri(sent));
        }
    }
    Request::from_parts(head, ())
}

fn plain(path: &str) -> String {
    let path = decode(path);
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        // Servers in Java ignore parameters, such as `;v=1`.
        match segment.split(';').next().unwrap_or_default() {
            "" | "." => {}
            ".." => _ = segments.pop(),
            segment => segments.push(segment),
        }
    }
    let is_folder = ["/", "/.", "/.."]
        .into_iter()
        .any(|end| path.ends_with(end));
    let end = if is_folder && !segments.is_empty() {
        "/"
    } else {
        ""
    };
    format!("/{}{end}", segments.join("/"))
}

/// Decodes the characters that need no percent-encoding.
fn decode(path: &str) -> String {
    let mut decoded = String::with_capacity(path.len());
    let mut parts = path.split('%');
    decoded.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let byte = part
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(|byte| byte.is_ascii_alphanumeric() || PLAIN.contains(byte)) {
            Some(byte) => {
                decoded.push(byte.into());
                decoded.push_str(&part[2..]);
            }
            None => {
                decoded.push('%');
                decoded.push_str(part);
            }
        }
    }
    decoded
}
