//! Reads lines of JSON, with the field names of well-known servers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::HeaderName;
use http::header::{REFERER, USER_AGENT};
use serde_json::value::RawValue;

use super::LineReader;
use super::line::{Field, Line, Unreadable};

/// The names of fields in nginx (a `log_format` of its variables), Caddy (a nested `request`),
/// Traefik, Envoy and Apache.
#[rustfmt::skip]
const FIELDS: [(Field, &[&str]); 9] = [
    (Field::Time, &["time", "timestamp", "@timestamp", "ts", "time_iso8601", "time_local", "msec", "start_time", "StartUTC", "datetime"]),
    (Field::Address, &["remote_addr", "remote_ip", "client_ip", "clientip", "client", "ip", "address", "ClientHost", "remote_host", "downstream_remote_address"]),
    (Field::Method, &["method", "request_method", "RequestMethod", "verb"]),
    (Field::Target, &["path", "uri", "request_uri", "url", "target", "RequestPath"]),
    (Field::Request, &["request"]),
    (Field::Host, &["host", "http_host", "server_name", "authority", "RequestHost"]),
    (Field::Status, &["status", "status_code", "DownstreamStatus", "response_code"]),
    (Field::Bytes, &["bytes", "body_bytes_sent", "bytes_sent", "size"]),
    (Field::User, &["remote_user", "user"]),
];

type Fields<'a> = BTreeMap<&'a str, &'a RawValue>;

impl LineReader {
    pub(super) fn json(&mut self, text: &str) -> Result<Line, Unreadable> {
        let mut line = Line::default();
        self.object(text, &mut line)?;
        Ok(line)
    }

    fn object(&mut self, json: &str, line: &mut Line) -> Result<(), Unreadable> {
        let fields: Fields<'_> = serde_json::from_str(json).map_err(|_| Unreadable::Form)?;
        for (name, raw) in fields {
            if let Some(header) = self.named(name) {
                line.header(header, &text(raw));
                continue;
            }
            let field = FIELDS.iter().find(|(_, names)| names.contains(&name));
            match (field, name) {
                (Some((Field::Time, _)), _) => {
                    line.micros = Some(self.time.micros(&text(raw)).ok_or(Unreadable::Time)?);
                }
                (Some((Field::Request, _)), _) if raw.get().starts_with('{') => {
                    self.object(raw.get(), line)?;
                }
                (Some((field, _)), _) => line.set(*field, &text(raw))?,
                (None, "headers" | "request_headers") => headers(raw, line),
                (None, "user_agent") => line.header(&USER_AGENT, &text(raw)),
                (None, "referer") => line.header(&REFERER, &text(raw)),
                // A name such as `http_user_agent` is a header, which nginx logs as a variable.
                (None, name) => {
                    if let Some(name) = name.strip_prefix("http_") {
                        header(&name.replace('_', "-"), raw, line);
                    }
                }
            }
        }
        Ok(())
    }
}

fn headers(raw: &RawValue, line: &mut Line) {
    let fields: Fields<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
    for (name, raw) in fields {
        match serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
            Ok(values) => values.iter().for_each(|value| header(name, value, line)),
            Err(_) => header(name, raw, line),
        }
    }
}

fn header(name: &str, raw: &RawValue, line: &mut Line) {
    if let Ok(name) = name.parse::<HeaderName>() {
        line.header(&name, &text(raw));
    }
}

/// Returns a value as text, and null as an empty text.
fn text(raw: &RawValue) -> Cow<'_, str> {
    let raw = raw.get();
    let quoted = raw
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    match quoted {
        Some(plain) if !plain.contains('\\') => plain.into(),
        Some(_) => serde_json::from_str::<String>(raw)
            .unwrap_or_default()
            .into(),
        None if raw == "null" => "".into(),
        None => raw.into(),
    }
}
