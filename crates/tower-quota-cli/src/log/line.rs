//! Builds the request in a line of a log.

use core::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderName, HeaderValue, Request, Uri};

/// The logged part of a response, for limits that settle their charge after the response.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LoggedResponse {
    pub(crate) status: Option<u16>,
    pub(crate) bytes: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) micros: Option<u64>,
    target: Option<Uri>,
    request: Request<LoggedResponse>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Field {
    Time,
    /// The address of the client, or of the proxy in front of the server.
    Address,
    Method,
    Target,
    Request,
    Host,
    Status,
    Bytes,
    User,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    Form,
    Time,
    /// The line has no HTTP request, because the server could not parse it.
    Request,
}

impl Line {
    /// Sets a field. Unreadable texts are errors only in the fields of the request.
    pub(super) fn set(&mut self, field: Field, text: &str) -> Result<(), Unreadable> {
        match field {
            Field::Time => {}
            Field::Address => {
                if let Some(address) = address(text) {
                    self.request.extensions_mut().insert(address);
                }
            }
            Field::Method => {
                *self.request.method_mut() = text.parse().map_err(|_| Unreadable::Request)?;
            }
            Field::Target => self.target = Some(uri(text).ok_or(Unreadable::Request)?),
            Field::Request => {
                let (method, rest) = text.split_once(' ').ok_or(Unreadable::Request)?;
                let target = match rest.rsplit_once(' ') {
                    Some((target, version)) if version.starts_with("HTTP/") => target,
                    _ => rest,
                };
                self.set(Field::Method, method)?;
                self.set(Field::Target, target)?;
            }
            Field::Host => self.header(&HOST, text),
            Field::Status => self.request.body_mut().status = text.parse().ok(),
            Field::Bytes => self.request.body_mut().bytes = text.parse().ok(),
            Field::User if matches!(text, "" | "-") => {}
            // Send an empty password, because keys never read the password.
            Field::User => {
                let credentials = STANDARD.encode(format!("{text}:"));
                self.header(&AUTHORIZATION, &format!("Basic {credentials}"));
            }
        }
        Ok(())
    }

    /// Adds a header. Servers log `-` for an absent header.
    pub(super) fn header(&mut self, name: &HeaderName, text: &str) {
        if matches!(text, "" | "-") {
            return;
        }
        if let Ok(value) = HeaderValue::from_str(text) {
            self.request.headers_mut().append(name, value);
        }
    }

    pub(super) fn finish(mut self) -> Result<(u64, Request<LoggedResponse>), Unreadable> {
        let micros = self.micros.ok_or(Unreadable::Time)?;
        *self.request.uri_mut() = self.target.ok_or(Unreadable::Request)?;
        Ok((micros, self.request))
    }
}

/// Reads a target. Some servers log targets decoded, with spaces and quotes.
fn uri(target: &str) -> Option<Uri> {
    if let Ok(uri) = target.parse() {
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
    encoded.parse().ok()
}

/// Reads an address, with or without a port or brackets.
pub(super) fn address(text: &str) -> Option<IpAddr> {
    let host = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => text,
    };
    let without_port = || host.rsplit_once(':')?.0.parse().ok();
    host.parse().ok().or_else(without_port)
}
