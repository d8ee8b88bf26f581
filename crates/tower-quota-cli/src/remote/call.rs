//! Calls of the admin API, and their answers.

use core::fmt::Write;

use http::header::{CONTENT_TYPE, ETAG};
use http::response::Parts;
use http::{HeaderName, HeaderValue, Method, Request};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::failure::Failure;

/// A call of the admin API.
#[derive(Clone, Debug)]
#[must_use]
pub(crate) struct Call {
    method: Method,
    target: String,
    headers: Vec<(HeaderName, String)>,
    body: String,
}

/// An answer of the admin API that is no error.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) etag: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) body: String,
}

impl Call {
    pub(crate) const GET: Method = Method::GET;
    pub(crate) const PUT: Method = Method::PUT;
    pub(crate) const POST: Method = Method::POST;
    pub(crate) const DELETE: Method = Method::DELETE;

    /// Makes a call of a path in parts, which are encoded.
    pub(crate) fn new(method: Method, parts: &[&str]) -> Self {
        let mut target = String::from("/v1");
        for part in parts {
            // Writing to a string cannot fail.
            let _ = write!(target, "/{}", encoded(part));
        }
        Self {
            method,
            target,
            headers: Vec::new(),
            body: String::new(),
        }
    }

    /// Adds a parameter of the query, if it has a value.
    pub(crate) fn query(mut self, name: &str, value: Option<impl AsRef<str>>) -> Self {
        if let Some(value) = value {
            let mark = if self.target.contains('?') { '&' } else { '?' };
            let _ = write!(self.target, "{mark}{name}={}", encoded(value.as_ref()));
        }
        self
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Sets the body and its media type.
    pub(crate) fn body(mut self, media_type: &str, body: impl Into<String>) -> Self {
        self.body = body.into();
        self.header(CONTENT_TYPE, media_type)
    }

    /// Sets a JSON body.
    pub(crate) fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string())
    }

    /// Makes the request of this call to an API at a base address.
    pub(super) fn request(&self, base: &str) -> Result<Request<String>, Failure> {
        let invalid = |error: http::Error| Failure::Usage(format!("{base}: {error}"));
        let target = format!("{}{}", base.trim_end_matches('/'), self.target);
        let mut request = Request::builder()
            .method(&self.method)
            .uri(target)
            .body(self.body.clone())
            .map_err(invalid)?;
        for (name, value) in &self.headers {
            let value = HeaderValue::try_from(value).map_err(|error| invalid(error.into()))?;
            request.headers_mut().insert(name, value);
        }
        Ok(request)
    }
}

impl Answer {
    /// Reads a response. An error of the API becomes a failure.
    pub(super) fn of(head: &Parts, body: String) -> Result<Self, Failure> {
        let status = head.status;
        if status.is_success() {
            let header = |name| {
                head.headers
                    .get(name)
                    .and_then(|value| value.to_str().ok())
                    .map(str::to_owned)
            };
            return Ok(Self {
                etag: header(ETAG),
                content_type: header(CONTENT_TYPE),
                body,
            });
        }
        let problem: Value = serde_json::from_str(&body).unwrap_or_default();
        let mut text = match problem["detail"].as_str() {
            Some(detail) => detail.to_owned(),
            None => format!(
                "the answer is {status}: is this the address of an admin API of tower-quota?"
            ),
        };
        if let Some(current) = problem["current"].as_u64() {
            let _ = write!(text, " (the newest version is {current})");
        }
        for found in problem["problems"]["problems"]
            .as_array()
            .or(problem["problems"].as_array())
            .into_iter()
            .flatten()
        {
            let _ = write!(text, "\n{}", super::text::problem(found));
        }
        let is_unreachable = matches!(status.as_u16(), 502..=504);
        Err(if is_unreachable {
            Failure::Unreachable(text)
        } else {
            Failure::Problem(text)
        })
    }

    /// Returns the body as JSON.
    pub(crate) fn json(&self) -> Result<Value, Failure> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&self.body)
            .map_err(|error| Failure::Problem(format!("the answer is not JSON: {error}")))
    }
}

fn encoded(text: &str) -> impl core::fmt::Display + '_ {
    utf8_percent_encode(text, NON_ALPHANUMERIC)
}
