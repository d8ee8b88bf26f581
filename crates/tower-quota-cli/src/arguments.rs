use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::remote::blocks::{BlockArguments, ListArguments, OverrideArguments, UnblockArguments};
use crate::remote::clients::{FindArguments, GrantArguments, PeekArguments, ResetArguments};
use crate::remote::explain::ExplainArguments;
use crate::remote::put::PutArguments;
use crate::remote::refusals::RefusalsArguments;
use crate::remote::status::TopArguments;
use crate::remote::versions::{HistoryArguments, RollbackArguments, ShowArguments};
use crate::remote::{Remote, TargetArguments};
use crate::rules::check::CheckArguments;
use crate::rules::diff::DiffArguments;
use crate::simulate::SimulateArguments;

/// Checks and compares rules of rate limits, replays access logs, operates running services.
///
/// Exit codes: 0 for success, 1 for problems, refusals and differences, 2 for unusable arguments
/// and files, 3 if a service is unreachable.
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
    /// Lists the problems of rules, with their place and fix, and runs the tests in the rules.
    #[command(visible_alias = "test")]
    Check(CheckArguments),
    /// Lists the differences between two documents or versions, by limit, tier and route.
    Diff(DiffArguments),
    /// Prints the JSON Schema of rules, for completion and checks in your editor.
    Schema,
    /// Replays an access log through rules, and shows the clients and limits affected.
    Simulate(SimulateArguments),
    /// Puts rules in force, on all instances.
    Put(Remote<PutArguments>),
    /// Puts an earlier version of the rules in force again.
    Rollback(Remote<RollbackArguments>),
    /// Lists the versions of the rules, the newest first.
    History(Remote<HistoryArguments>),
    /// Lists changes of rules, clients and blocks, with their author and reason.
    Audit(Remote<HistoryArguments>),
    /// Prints the rules in force, or an earlier version.
    Show(Remote<ShowArguments>),
    /// Shows the limits and keys of a request, and charges no units.
    Explain(ExplainArguments),
    /// Finds a client by its key, with its hash, its limits and the block that hits it.
    Find(Remote<FindArguments>),
    /// Lists the last refusals of a client, or of a request, that an instance remembers.
    Refusals(RefusalsArguments),
    /// Shows a client's remaining units of a limit. The exit code is 1 if the client is limited.
    Peek(Remote<PeekArguments>),
    /// Clears a client's counter of a limit, and its penalty.
    Reset(Remote<ResetArguments>),
    /// Gives used units back to a client. For units above the quota, use `override`.
    Grant(Remote<GrantArguments>),
    /// Blocks a client or a network on all instances, or exempts it from all limits.
    Block(Remote<BlockArguments>),
    /// Removes all blocks that an id, an address or a key can mean.
    Unblock(Remote<UnblockArguments>),
    /// Lists the blocks in force.
    Blocks(Remote<ListArguments>),
    /// Gives a client another quota on all instances, until an end.
    Override(Remote<OverrideArguments>),
    /// Lists the overrides in force.
    Overrides(Remote<ListArguments>),
    /// Lists the services in your file of contexts.
    Contexts,
    /// Shows the health of an instance. The exit code is 1 if the instance is unhealthy.
    Health(TargetArguments),
    /// Lists the clients with the most refused requests, or the most requests.
    Top(Remote<TopArguments>),
    /// Prints a completion script for your shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
