use http::header::{CONTENT_TYPE, ETAG};
use http::request::Builder;
use http::{Request, Response};
use serde::Deserialize;
use serde_json::Value;
use tower_quota_rules::Problems;

use super::http::{Client, TOKEN_VARIABLE};
use crate::failure::Failure;
use crate::rules::load::{LoadArguments, RulesText};

const NO_ADMIN_API: &str = "is this the address of an admin API of tower-quota?";

/// Words of the API, with the words for people who type commands.
const WORDS: [(&str, &str); 7] = [
    ("send `\"force\": true`", "add --force"),
    ("`for`", "--for"),
    ("`until`", "--until"),
    (
        "no such block or allowance",
        "no such block or allowance: `tower-quota blocks` lists them",
    ),
    (
        "no such override",
        "no such override: `tower-quota overrides` lists them",
    ),
    ("see the history", "`tower-quota history` lists the others"),
    ("in `/v1/health`", "with `tower-quota health`"),
];

pub(crate) struct Api {
    pub(super) client: Client,
    pub(super) load: LoadArguments,
}

pub(crate) struct ApiAnswer {
    pub(super) tag: String,
    pub(super) text: String,
}

impl Api {
    pub(super) fn get(&self, path: &str) -> Result<Value, Failure> {
        self.send(Request::get(path), "")?.json()
    }

    pub(super) fn send_json(&self, request: Builder, body: &Value) -> Result<Value, Failure> {
        let request = request.header(CONTENT_TYPE, "application/json");
        self.send(request, &body.to_string())?.json()
    }

    /// Sends a request. Returns an error of the API as a failure.
    pub(super) fn send(&self, request: Builder, body: &str) -> Result<ApiAnswer, Failure> {
        let request = request.body(body.to_owned());
        let request = request.map_err(Failure::usage)?;
        let response = self.client.send(request)?;
        let status = response.status();
        if status.is_success() {
            return Ok(ApiAnswer::of(response));
        }
        let problem: Value = serde_json::from_str(response.body()).unwrap_or_default();
        let (address, detail) = (&self.client.address, problem["detail"].as_str());
        let current = problem["current"].as_u64();
        // Write the words of the command instead of the words of HTTP.
        let mut text = match (status.as_u16(), current, detail) {
            (401, _, Some(_)) => format!(
                "{address} does not accept the token: compare {TOKEN_VARIABLE}, --token-file or the context"
            ),
            (412, Some(current), _) => format!(
                "the newest version is {current}, and you expect another one: read `tower-quota diff` between them, \
                 then add --expect {current}"
            ),
            (412, None, _) => "there are no rules yet: add --expect none".to_owned(),
            (_, _, Some(detail)) => {
                let words = |text: String, (sent, option): (&str, &str)| text.replace(sent, option);
                WORDS.into_iter().fold(detail.to_owned(), words)
            }
            (_, _, None) => format!("{address} answers {status}: {NO_ADMIN_API}"),
        };
        text = format!("{text}\n{}", problems(&problem))
            .trim_end()
            .to_owned();
        Err(match status.as_u16() {
            502..=504 => Failure::Unreachable(text),
            _ => Failure::Problem(text),
        })
    }

    /// Returns the text of a version, or of the version in force.
    pub(crate) fn version(&self, number: Option<u64>) -> Result<ApiAnswer, Failure> {
        let path = number.map_or("/v1/rules".into(), |number| format!("/v1/rules/{number}"));
        let answer = self.send(Request::get(path), "")?;
        if answer.tag.is_empty() {
            let text = format!("the answer has no version: {NO_ADMIN_API}");
            return Err(Failure::Problem(text));
        }
        Ok(answer)
    }

    /// Returns the answer to a path, unless the service refuses the request.
    pub(super) fn get_if_any(&self, path: &str) -> Result<Option<ApiAnswer>, Failure> {
        match self.send(Request::get(path), "") {
            Ok(answer) => Ok(Some(answer)),
            // Go on after a refusal, which will refuse the change too.
            Err(Failure::Problem(_)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

impl ApiAnswer {
    fn of(response: Response<String>) -> Self {
        let tag = response.headers().get(ETAG);
        let tag = tag.and_then(|tag| tag.to_str().ok()).unwrap_or_default();
        Self {
            tag: tag.to_owned(),
            text: response.into_body(),
        }
    }

    pub(super) fn json(&self) -> Result<Value, Failure> {
        if self.text.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&self.text)
            .map_err(|_| Failure::Problem(format!("the answer is not JSON: {NO_ADMIN_API}")))
    }

    /// Returns the number of the version, the first part of its entity tag, or 0.
    pub(super) fn version(&self) -> u64 {
        let number = self.tag.trim_matches('"').split('-').next();
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    pub(crate) fn rules(&self) -> RulesText {
        RulesText {
            name: format!("version {}", self.version()),
            text: self.text.clone(),
        }
    }
}

pub(super) fn problems(answer: &Value) -> String {
    let problems = Problems::deserialize(answer).unwrap_or_default();
    problems.to_string()
}
