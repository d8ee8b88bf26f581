//! The command of tower-quota: checks and compares rules, replays access logs, operates running services.
#![forbid(unsafe_code)]

mod arguments;
mod failure;
mod log;
mod output;
mod rules;
mod simulate;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};
use crate::failure::Ended;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    failure::exit(run(&arguments), arguments.json)
}

fn run(arguments: &Arguments) -> Ended {
    let is_json = arguments.json;
    match &arguments.command {
        Command::Check(check) => rules::check::run(check, is_json),
        Command::Diff(diff) => rules::diff::run(diff, is_json),
        Command::Convert(convert) => rules::convert::run(convert),
        Command::Schema => rules::convert::schema(),
        Command::Simulate(simulate) => simulate::command(simulate, is_json),
        Command::MakeLog(make) => simulate::make_log(make),
        Command::Completions(shell) => arguments::completions(shell),
        Command::Man => arguments::man(),
    }
}
