use core::fmt;
use std::process::ExitCode;

use serde_json::json;

use crate::visible::visible;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The rules have problems, a service refuses the request, or the compared rules differ.
    Problem(String),
    /// The arguments or a file are unusable.
    Usage(String),
    /// The service is unreachable.
    Unreachable(String),
}

impl Failure {
    pub(crate) fn usage<E: fmt::Display>(error: E) -> Self {
        Self::Usage(error.to_string())
    }

    pub(crate) fn at<E: fmt::Display>(place: impl fmt::Display) -> impl Fn(E) -> Self {
        move |error| Self::Usage(format!("{place}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Problem(text) | Self::Usage(text) | Self::Unreachable(text)) = self;
        f.write_str(text)
    }
}

pub(crate) fn exit(ended: Result<bool, Failure>, is_json: bool) -> ExitCode {
    let failure = match ended {
        Ok(found) => return ExitCode::from(u8::from(found)),
        Err(failure) => failure,
    };
    let code = match failure {
        Failure::Problem(_) => 1,
        Failure::Usage(_) => 2,
        Failure::Unreachable(_) => 3,
    };
    let text = failure.to_string();
    if is_json {
        eprintln!("{}", json!({ "error": text }));
    } else {
        // Drop the severity, with which problems of a document begin.
        let text = text.trim_start_matches("error: ");
        eprintln!("error: {}", visible(text, true));
    }
    ExitCode::from(code)
}
