//! Failures of a command, each with its exit code.

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

/// What a command that ran to its end found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// All is well.
    Nothing,
    /// There are problems or differences, which were printed.
    Something,
}

/// The result of a command.
pub(crate) type Ended = Result<Found, Failure>;

/// Prints a failure, and returns the exit code.
pub(crate) fn exit(ended: Ended, is_json: bool) -> ExitCode {
    let (code, text) = match ended {
        Ok(Found::Nothing) => return ExitCode::SUCCESS,
        Ok(Found::Something) => return ExitCode::from(1),
        Err(Failure::Problem(text)) => (1, text),
        Err(Failure::Usage(text)) => (2, text),
        Err(Failure::Unreachable(text)) => (3, text),
    };
    if is_json {
        eprintln!("{}", json!({ "error": text }));
    } else {
        eprintln!("error: {text}");
    }
    ExitCode::from(code)
}
