//! Lines that are JSON objects, with the field names of well-known servers.
//!
//! nginx (a `log_format` of its variables), Caddy (a nested `request`), Traefik, Envoy, Apache, and plain names.

use core::fmt;
use std::borrow::Cow;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::record::{LogRecord, Unreadable, address};
use super::{HeaderSource, LineReader};

/// The fields of an object. Values stay as they are written until they are needed.
struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// A name that borrows from the line unless it has escapes.
struct FieldName<'a>(Cow<'a, str>);

impl LineReader {
    pub(super) fn json<'a>(&mut self, line: &'a str) -> Result<LogRecord<'a>, Unreadable> {
        let fields: Fields<'a> = serde_json::from_str(line).map_err(|_| Unreadable::Form)?;
        let mut record = LogRecord::default();
        let mut time = None;
        self.object(fields, &mut record, &mut time)?;
        record.micros = time.ok_or(Unreadable::Time)?;
        if record.target.is_empty() {
            return Err(Unreadable::Request);
        }
        if record.method.is_empty() {
            record.method = "GET".into();
        }
        Ok(record)
    }

    fn object<'a>(
        &mut self,
        fields: Fields<'a>,
        record: &mut LogRecord<'a>,
        time: &mut Option<u64>,
    ) -> Result<(), Unreadable> {
        for (name, raw) in fields.0 {
            let is_named = |source: &HeaderSource| matches!(source, HeaderSource::Field(field) if *field == name);
            if let Some((header, _)) = self.headers.iter().find(|(_, source)| is_named(source)) {
                record.add_header(header.clone(), text(raw));
                continue;
            }
            match name.as_ref() {
                "time" | "timestamp" | "@timestamp" | "ts" | "time_iso8601" | "time_local"
                | "msec" | "start_time" | "StartUTC" | "datetime" => {
                    *time = Some(self.time.micros(&text(raw)).ok_or(Unreadable::Time)?)
                }
                "remote_addr"
                | "remote_ip"
                | "client_ip"
                | "clientip"
                | "client"
                | "ip"
                | "address"
                | "ClientHost"
                | "remote_host"
                | "downstream_remote_address" => record.address = address(&text(raw)),
                "method" | "request_method" | "RequestMethod" | "verb" => record.method = text(raw),
                "path" | "uri" | "request_uri" | "url" | "target" | "RequestPath" => {
                    record.target = text(raw)
                }
                "request" if raw.get().starts_with('{') => {
                    let inner = serde_json::from_str(raw.get()).map_err(|_| Unreadable::Form)?;
                    self.object(inner, record, time)?;
                }
                "request" => record.set_request_line(text(raw))?,
                "host" | "http_host" | "server_name" | "authority" | "RequestHost" => {
                    record.host = Some(text(raw))
                }
                "status" | "status_code" | "DownstreamStatus" | "response_code" => {
                    record.status = text(raw).parse().ok()
                }
                "bytes" | "body_bytes_sent" | "bytes_sent" | "size" => {
                    record.bytes = text(raw).parse().ok()
                }
                "remote_user" | "user" => {
                    record.user = Some(text(raw)).filter(|user| !matches!(user.as_ref(), "" | "-"))
                }
                "user_agent" => record.add_header("user-agent", text(raw)),
                "referer" => record.add_header("referer", text(raw)),
                "headers" | "request_headers" => headers(raw, record),
                // nginx has each header as a variable.
                variable => {
                    if let Some(header) = variable.strip_prefix("http_") {
                        record.add_header(header.replace('_', "-"), text(raw));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Reads an object of headers, whose values are texts or lists of them.
fn headers<'a>(raw: &'a RawValue, record: &mut LogRecord<'a>) {
    let Ok(fields) = serde_json::from_str::<Fields<'a>>(raw.get()) else {
        return;
    };
    for (name, raw) in fields.0 {
        match serde_json::from_str::<Vec<&'a RawValue>>(raw.get()) {
            Ok(values) => values
                .into_iter()
                .for_each(|value| record.add_header(name.clone(), text(value))),
            Err(_) => record.add_header(name, text(raw)),
        }
    }
}

/// Returns a value as text; null is empty, numbers stay as they are written.
fn text(raw: &RawValue) -> Cow<'_, str> {
    let raw = raw.get();
    match raw
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        Some(plain) if !plain.contains('\\') => plain.into(),
        Some(_) => serde_json::from_str::<String>(raw)
            .unwrap_or_default()
            .into(),
        None if raw == "null" => "".into(),
        None => raw.into(),
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::with_capacity(16);
                while let Some(FieldName(name)) = map.next_key()? {
                    fields.push((name, map.next_value()?));
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for FieldName<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl<'de> Visitor<'de> for NameVisitor {
            type Value = FieldName<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<FieldName<'de>, E> {
                Ok(FieldName(name.into()))
            }

            fn visit_str<E>(self, name: &str) -> Result<FieldName<'de>, E> {
                Ok(FieldName(Cow::Owned(name.to_owned())))
            }
        }

        deserializer.deserialize_str(NameVisitor)
    }
}
