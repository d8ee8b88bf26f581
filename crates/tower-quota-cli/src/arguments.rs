//! The arguments of the command.

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::failure::{Ended, Failure, Found};
use crate::output;
use crate::rules::check::CheckArguments;
use crate::rules::convert::ConvertArguments;
use crate::rules::diff::DiffArguments;
use crate::simulate::{MakeLogArguments, SimulateArguments};

/// Checks and compares rules of rate limits, replays access logs through them, and operates running services.
///
/// Exit codes: 0 if all is well, 1 for problems, refusals and differences, 2 for arguments and files that cannot be
/// used, 3 if a service or a store cannot be reached.
#[derive(Debug, Parser)]
#[command(name = "tower-quota", version)]
pub(crate) struct Arguments {
    /// Prints JSON, for programs.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Lists all that is wrong with rules: where, and how to fix it.
    Check(CheckArguments),
    /// Lists what changes from one document to another, by limit, tier and route.
    Diff(DiffArguments),
    /// Prints rules in another format.
    Convert(ConvertArguments),
    /// Prints the JSON Schema of rules, with which editors complete and check them.
    Schema,
    /// Replays an access log through rules: who would be limited, and by which limit.
    Simulate(SimulateArguments),
    /// Writes an access log to try a simulation with.
    MakeLog(MakeLogArguments),
    /// Prints a script that completes arguments.
    Completions(CompletionArguments),
    /// Prints the manual page.
    Man,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionArguments {
    /// The shell.
    shell: Shell,
}

/// Prints the completions of a shell.
pub(crate) fn completions(arguments: &CompletionArguments) -> Ended {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "tower-quota", &mut script);
    output::write(&String::from_utf8_lossy(&script))?;
    Ok(Found::Nothing)
}

/// Prints the manual page: of the command, then of each of its commands.
pub(crate) fn man() -> Ended {
    let mut command = Arguments::command();
    command.build();
    let mut page = Vec::new();
    let unwritten = |error: std::io::Error| Failure::Problem(error.to_string());
    clap_mangen::Man::new(command.clone()).render(&mut page).map_err(unwritten)?;
    output::write(&String::from_utf8_lossy(&page))?;
    Ok(Found::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
