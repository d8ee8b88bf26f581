//! The arguments of the command.

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::remote::blocks::{BlockArguments, ListArguments, OverrideArguments, UnblockArguments};
use crate::remote::clients::{GrantArguments, PeekArguments, ResetArguments};
use crate::remote::explain::ExplainArguments;
use crate::remote::put::PutArguments;
use crate::remote::status::TopArguments;
use crate::remote::versions::{HistoryArguments, RollbackArguments, ShowArguments};
use crate::remote::{ChangeArguments, Remote, TargetArguments};
use crate::rules::check::CheckArguments;
use crate::rules::convert::ConvertArguments;
use crate::rules::diff::DiffArguments;
use crate::rules::own_tests::TestArguments;
use crate::simulate::SimulateArguments;

/// Checks and compares rules of rate limits, replays access logs, operates running services.
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
    /// Runs the sample requests that rules carry as their tests.
    Test(TestArguments),
    /// Lists what changes from one document or version to another, by limit, tier and route.
    Diff(DiffArguments),
    /// Prints rules in another format.
    Convert(ConvertArguments),
    /// Prints the JSON Schema of rules, with which editors complete and check them.
    Schema,
    /// Replays an access log through rules: who would be limited, and by which limit.
    Simulate(SimulateArguments),
    /// Puts rules in force, on all instances.
    Put(Remote<PutArguments>),
    /// Shows what the shadow document would change, on all instances.
    Shadow(TargetArguments),
    /// Puts the shadow document in force.
    Promote(Remote<ChangeArguments>),
    /// Removes the shadow document.
    Abandon(Remote<ChangeArguments>),
    /// Puts an earlier version of the rules in force again.
    Rollback(Remote<RollbackArguments>),
    /// Lists the versions of the rules, the newest first.
    History(Remote<HistoryArguments>),
    /// Lists changes of rules, clients and blocks: who, what, before, after, why.
    Audit(Remote<HistoryArguments>),
    /// Prints the rules in force, or an earlier version.
    Show(Remote<ShowArguments>),
    /// Says which limits a request meets, with which keys. Charges nothing.
    Explain(ExplainArguments),
    /// Shows what a client has left of a limit, and until when. The exit code is 1 if it is limited.
    Peek(Remote<PeekArguments>),
    /// Forgets what a client has used of a limit, and its penalty.
    Reset(Remote<ResetArguments>),
    /// Gives units back to a client, or with an end, units above the quota.
    Grant(Remote<GrantArguments>),
    /// Blocks a client or a network on all instances, or lets it pass uncounted.
    Block(Remote<BlockArguments>),
    /// Removes a block.
    Unblock(Remote<UnblockArguments>),
    /// Lists the blocks in force.
    Blocks(Remote<ListArguments>),
    /// Gives a client another quota on all instances, until an end.
    Override(Remote<OverrideArguments>),
    /// Lists the overrides and credits in force.
    Overrides(Remote<ListArguments>),
    /// Shows the health of an instance. The exit code is 1 if it is not healthy.
    Health(TargetArguments),
    /// Lists the clients that are limited most, or that send most requests.
    Top(Remote<TopArguments>),
    /// Prints a script that completes arguments in a shell.
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
