//! One request as a log has it.

use core::net::IpAddr;
use std::borrow::Cow;

/// A request of an access log. It borrows from the line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogRecord<'a> {
    /// The time in microseconds since 1970.
    pub(crate) micros: u64,
    /// The address of the client, or of the proxy before the server.
    pub(crate) address: Option<IpAddr>,
    /// The method.
    pub(crate) method: Cow<'a, str>,
    /// The path with its query, or an absolute URL.
    pub(crate) target: Cow<'a, str>,
    /// The host.
    pub(crate) host: Option<Cow<'a, str>>,
    /// The status of the response.
    pub(crate) status: Option<u16>,
    /// The length of the response's body in bytes.
    pub(crate) bytes: Option<u64>,
    /// The user that the server has authenticated.
    pub(crate) user: Option<Cow<'a, str>>,
    /// The headers that the log has, as names and values.
    pub(crate) headers: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// The reason why a line is no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The line has another form than the known ones.
    Form,
    /// The line has no time, or one that is not understood.
    Time,
    /// The line has no request: the server could not read it either.
    Request,
}

impl<'a> LogRecord<'a> {
    /// Adds a header, unless the log has none: servers write `-`.
    pub(crate) fn add_header(
        &mut self,
        name: impl Into<Cow<'a, str>>,
        value: impl Into<Cow<'a, str>>,
    ) {
        let value = value.into();
        if !value.is_empty() && value != "-" {
            self.headers.push((name.into(), value));
        }
    }

    /// Sets method and target by a request line: `GET /index.html HTTP/1.1`.
    pub(crate) fn set_request_line(&mut self, line: Cow<'a, str>) -> Result<(), Unreadable> {
        match line {
            Cow::Borrowed(line) => {
                let (method, target) = request_line(line).ok_or(Unreadable::Request)?;
                (self.method, self.target) = (method.into(), target.into());
            }
            Cow::Owned(line) => {
                let (method, target) = request_line(&line).ok_or(Unreadable::Request)?;
                (self.method, self.target) =
                    (Cow::Owned(method.to_owned()), Cow::Owned(target.to_owned()));
            }
        }
        Ok(())
    }
}

/// Splits a request line. HTTP/0.9 had no version.
fn request_line(line: &str) -> Option<(&str, &str)> {
    let (method, rest) = line.split_once(' ')?;
    let target = rest
        .rsplit_once(' ')
        .filter(|(_, version)| version.starts_with("HTTP/"))
        .map_or(rest, |(target, _)| target);
    (!target.is_empty()).then_some((method, target))
}

/// Reads an address, with or without a port or brackets.
pub(crate) fn address(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let bracketed = text
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
        .map(|(address, _)| address);
    bracketed
        .or_else(|| text.rsplit_once(':').map(|(address, _)| address))?
        .parse()
        .ok()
}
