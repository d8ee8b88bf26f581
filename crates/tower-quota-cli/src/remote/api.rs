use http::header::{CONTENT_TYPE, ETAG};
use http::request::Builder;
use http::{Request, Response};
use serde_json::Value;

use super::http::HttpApi;
use super::local::LocalApi;
use crate::failure::Failure;
use crate::rules::load::LoadArguments;

pub(crate) struct Api {
    pub(super) via: Via,
    pub(super) name: String,
    pub(super) load: LoadArguments,
}

pub(super) enum Via {
    Http(HttpApi),
    Local(Box<LocalApi>),
}

impl Api {
    pub(super) fn get(&self, path: &str) -> Result<Value, Failure> {
        json(&self.send(Request::get(path), "")?)
    }

    pub(super) fn send_json(&self, request: Builder, body: &Value) -> Result<Value, Failure> {
        let request = request.header(CONTENT_TYPE, "application/json");
        json(&self.send(request, &body.to_string())?)
    }

    /// Sends a request. Returns an error of the API as a failure.
    pub(super) fn send(&self, request: Builder, body: &str) -> Result<Response<String>, Failure> {
        let request = request.body(body.to_owned());
        let request = request.map_err(Failure::usage)?;
        let response = match &self.via {
            Via::Http(api) => api.send(request)?,
            Via::Local(api) => api.send(request)?,
        };
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let problem: Value = serde_json::from_str(response.body()).unwrap_or_default();
        let mut text = match problem["detail"].as_str() {
            Some(detail) => detail.to_owned(),
            None => format!(
                "the answer is {status}: is this the address of an admin API of tower-quota?"
            ),
        };
        if let Some(current) = problem["current"].as_u64() {
            text += &format!(" (the newest version is {current})");
        }
        text += &problems(&problem["problems"]);
        Err(match status.as_u16() {
            502..=504 => Failure::Unreachable(text),
            _ => Failure::Problem(text),
        })
    }

    /// Returns the answer to a path, unless the service refuses the request.
    pub(super) fn get_if_any(&self, path: &str) -> Result<Option<Response<String>>, Failure> {
        match self.send(Request::get(path), "") {
            Ok(answer) => Ok(Some(answer)),
            // A refusal for another reason will refuse the change too.
            Err(Failure::Problem(_)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

pub(super) fn json(answer: &Response<String>) -> Result<Value, Failure> {
    if answer.body().is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(answer.body())
        .map_err(|error| Failure::Problem(format!("the answer is not JSON: {error}")))
}

pub(super) fn tag(answer: &Response<String>) -> Option<&str> {
    answer.headers().get(ETAG)?.to_str().ok()
}

/// Returns the number of a version, the first part of its entity tag.
pub(super) fn version(answer: &Response<String>) -> Option<u64> {
    tag(answer)?
        .trim_matches('"')
        .split('-')
        .next()?
        .parse()
        .ok()
}

/// Returns the problems of a document, on separate lines.
pub(super) fn problems(problems: &Value) -> String {
    let mut out = String::new();
    let list = problems.as_array().or(problems["problems"].as_array());
    for problem in list.into_iter().flatten() {
        let text = |name| problem[name].as_str().unwrap_or_default();
        out += &format!("\n{}: ", text("severity"));
        if let (Some(line), Some(column)) = (problem["line"].as_u64(), problem["column"].as_u64()) {
            out += &format!("line {line}, column {column}: ");
        }
        let parts = ["path", "message", "help"].map(text);
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        out += &parts.join(": ");
    }
    out
}
