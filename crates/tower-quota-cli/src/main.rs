//! The command of tower-quota: checks and compares rules, replays access logs, operates running services.
#![forbid(unsafe_code)]

mod arguments;
mod failure;
mod log;
mod output;
mod remote;
mod rules;
mod simulate;

use std::io::stdout;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::arguments::{Arguments, Command};
use crate::failure::{Ended, Found};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    failure::exit(run(&arguments), arguments.json)
}

fn run(arguments: &Arguments) -> Ended {
    let is_json = arguments.json;
    match &arguments.command {
        Command::Check(check) => rules::check::run(check, is_json),
        Command::Test(test) => rules::own_tests::run(test, is_json),
        Command::Diff(diff) => rules::diff::run(diff, is_json),
        Command::Convert(convert) => rules::convert::run(convert),
        Command::Schema => rules::convert::schema(),
        Command::Simulate(simulate) => simulate::command(simulate, is_json),
        Command::Put(put) => remote::rules::put(put, is_json),
        Command::Rollout(rollout) => remote::rollout::run(rollout, is_json),
        Command::Promote(rollout) => remote::rules::promote(rollout, is_json),
        Command::Abandon(rollout) => remote::rules::abandon(rollout, is_json),
        Command::Rollback(rollback) => remote::rules::rollback(rollback, is_json),
        Command::History(history) => remote::rules::history(history, is_json),
        Command::Audit(audit) => remote::rules::audit(audit, is_json),
        Command::Show(show) => remote::rules::show(show, is_json),
        Command::Explain(explain) => remote::explain::explain(explain, is_json),
        Command::Peek(peek) => remote::clients::peek(peek, is_json),
        Command::Reset(reset) => remote::clients::reset(reset, is_json),
        Command::Grant(grant) => remote::clients::grant(grant, is_json),
        Command::Block(block) => remote::blocks::block(block, is_json),
        Command::Unblock(unblock) => remote::blocks::unblock(unblock, is_json),
        Command::Blocks(blocks) => remote::blocks::blocks(blocks, is_json),
        Command::Health(health) => remote::status::health(health, is_json),
        Command::Top(top) => remote::status::top(top, is_json),
        Command::Completions { shell } => {
            clap_complete::generate(
                *shell,
                &mut Arguments::command(),
                "tower-quota",
                &mut stdout(),
            );
            Ok(Found::Nothing)
        }
    }
}
