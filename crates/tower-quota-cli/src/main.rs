//! The command of tower-quota checks and compares rules, replays access logs, and operates
//! services.
#![forbid(unsafe_code)]

mod arguments;
mod failure;
mod log;
mod output;
mod remote;
mod rules;
mod simulate;
mod visible;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::arguments::{Arguments, Command};
use crate::output::{Ended, Output};
use crate::remote::{blocks, clients, explain, refusals, status, versions};

fn main() -> ExitCode {
    let Arguments { json, command } = Arguments::parse();
    let ended = run(&command, json).and_then(|output| output.print(json));
    failure::exit(ended, json)
}

fn run(command: &Command, is_json: bool) -> Ended {
    match command {
        Command::Check(check) => rules::check::run(check),
        Command::Diff(diff) => rules::diff::run(diff),
        Command::Schema => rules::schema::schema(),
        Command::Simulate(simulate) => simulate::command(simulate),
        Command::Put(put) => put.run(remote::put::put),
        Command::Rollback(rollback) => rollback.run(versions::rollback),
        Command::History(history) => history.run(versions::history),
        Command::Audit(audit) => audit.run(versions::audit),
        Command::Show(show) => show.run(versions::show),
        Command::Explain(explain) => explain::run(explain),
        Command::Find(find) => find.run(clients::find),
        Command::Refusals(found) => refusals::run(found),
        Command::Peek(peek) => peek.run(clients::peek),
        Command::Reset(reset) => reset.run(clients::reset),
        Command::Grant(grant) => grant.run(clients::grant),
        Command::Block(block) => block.run(blocks::block),
        Command::Unblock(unblock) => unblock.run(blocks::unblock),
        Command::Blocks(list) => list.run(|list, api| blocks::list("blocks", list, api)),
        Command::Override(change) => change.run(blocks::change_override),
        Command::Overrides(list) => list.run(|list, api| blocks::list("overrides", list, api)),
        Command::Contexts => remote::contexts::list(),
        Command::Health(target) => status::health(&target.connect()?),
        Command::Top(top) => top.run(|top, api| status::top(top, api, is_json)),
        Command::Completions { shell } => {
            // Collect the script for `Output`, which ignores a closed pipe.
            let mut script = Vec::new();
            clap_complete::generate(
                *shell,
                &mut Arguments::command(),
                "tower-quota",
                &mut script,
            );
            Output::document(&(), String::from_utf8_lossy(&script).into_owned())
        }
    }
}
