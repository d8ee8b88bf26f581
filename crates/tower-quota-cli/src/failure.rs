//! Failures of a command, each with its exit code.

use core::fmt;
use std::process::ExitCode;

use serde_json::json;

/// The reason why a command did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The rules have problems, a service refuses the request, or things differ.
    Problem(String),
    /// The arguments or a file cannot be used.
    Usage(String),
    /// The service or the store cannot be reached.
    Unreachable(String),
}

/// The finding of a command that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// All is well.
    Nothing,
    /// There are problems or differences, which were printed.
    Something,
}

/// The result of a command.
pub(crate) type Ended = Result<Found, Failure>;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Problem(text) | Self::Usage(text) | Self::Unreachable(text)) = self;
        f.write_str(text)
    }
}

/// Prints a failure, and returns the exit code.
pub(crate) fn exit(ended: Ended, is_json: bool) -> ExitCode {
    let failure = match ended {
        Ok(Found::Nothing) => return ExitCode::SUCCESS,
        Ok(Found::Something) => return ExitCode::from(1),
        Err(failure) => failure,
    };
    let code = match failure {
        Failure::Problem(_) => 1,
        Failure::Usage(_) => 2,
        Failure::Unreachable(_) => 3,
    };
    if is_json {
        eprintln!("{}", json!({ "error": failure.to_string() }));
    } else {
        // Problems of a document say themselves that they are errors.
        eprintln!(
            "error: {}",
            failure.to_string().trim_start_matches("error: ")
        );
    }
    ExitCode::from(code)
}
