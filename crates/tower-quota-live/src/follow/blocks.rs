//! Blocks clients at the last step of a limit's penalty.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use ipnet::IpNet;
use tower_quota::{Key, Name, TopClient, TopWindow};
use tower_quota_rules::PenaltyBlock;

use super::shared::FollowedRules;
use crate::blocks::{Block, BlockKind, NewBlock, Target};
use crate::store::RuleStoreError;
use crate::time::Time;
use crate::wait::{now, pause};

const EVERY: Duration = Duration::from_secs(1);
const AUTHOR: &str = "penalty";

impl FollowedRules {
    pub(crate) async fn block_penalised(self: Arc<Self>) {
        let (mut closing, mut since) = (self.closing.subscribe(), now());
        loop {
            tokio::select! {
                _ = closing.wait_for(|is_closing| *is_closing) => return,
                () = pause(EVERY) => {}
            }
            let penalties = self.blocking_penalties();
            let last_look = core::mem::replace(&mut since, now());
            if penalties.is_empty() {
                continue;
            }
            for client in self.handle.top_refused(TopWindow::Minute) {
                let penalty = penalties.get(&client.limit);
                if let Some((longest, block)) = penalty
                    && has_reached(&client, *longest, last_look)
                    && let Err(error) = self.block_client(&client, *longest, *block).await
                {
                    tracing::warn!(%error, "a client that ignores its penalty could not be blocked");
                }
            }
        }
    }

    fn blocking_penalties(&self) -> HashMap<Name, (Duration, PenaltyBlock)> {
        let in_force = self.in_force.load();
        let document = in_force.as_ref().map(|in_force| in_force.rules.document());
        let limits = document
            .into_iter()
            .flat_map(|document| document.all_limits());
        let blocking = limits.filter_map(|limit| {
            let rule = limit.penalty?;
            Some((Name::from(&limit.name), (rule.longest()?, rule.block?)))
        });
        blocking.collect()
    }

    async fn block_client(
        &self,
        client: &TopClient,
        length: Duration,
        block: PenaltyBlock,
    ) -> Result<(), RuleStoreError> {
        // Trust address keys only, because clients may send any text as another key.
        let address = client.key.to_address();
        let address = address.filter(|_| block == PenaltyBlock::Network);
        let scope = client.key.scope();
        let target = match address.and_then(|address| network(scope.as_str(), address)) {
            Some(network) => Target::Network(network),
            None => self.blocks.target(
                &client.key,
                client.text().filter(|_| self.options.readable_keys),
            ),
        };
        let known = self.blocks.get(&target.id());
        if known.is_some_and(|known| known.is_in_force(Time::now())) {
            return Ok(());
        }
        let limit = client.limit;
        let reason = format!("asked \"{limit}\" again and again while it was refused");
        let mut new = NewBlock::block(length, AUTHOR).reason(reason);
        new.kind = BlockKind::Block {
            limit: Some(limit.to_string()),
        };
        self.put_block(Block::new(target, new)).await.map(drop)
    }
}

/// Returns whether a client was refused for the whole length of the penalty since the last check.
///
/// At the last step, a refusal restarts the penalty, so the wait equals its length.
fn has_reached(client: &TopClient, longest: Duration, last_look: Instant) -> bool {
    // Leave out counters of many clients, which are the counter of everyone and of all clients
    // without a key.
    let is_one_client =
        client.key.scope() != Key::EVERYONE.scope() && !client.key.as_bytes().is_empty();
    let wait = client.until.saturating_duration_since(client.last);
    is_one_client && client.last >= last_look && wait == longest
}

/// Returns the network around an address, at least as large as the network counted by the limit.
fn network(scope: &str, address: IpAddr) -> Option<IpNet> {
    let (mark, prefix) = if address.is_ipv4() {
        ("v4/", 24)
    } else {
        ("/", 48)
    };
    let mut words = scope.split(' ');
    let counted = words.find_map(|word| word.strip_prefix(mark)?.parse().ok());
    let prefix = counted.map_or(prefix, |counted: u8| counted.min(prefix));
    let network = IpNet::new(address, prefix).ok()?;
    Some(network.trunc())
}

#[cfg(test)]
mod tests {
    #[test]
    fn network_is_no_smaller_than_counted() {
        for (scope, address, expected) in [
            ("ip", "203.0.113.7", "203.0.113.0/24"),
            ("ip", "2001:db8:1:2ff::", "2001:db8:1::/48"),
            ("ip v4/16", "203.0.0.0", "203.0.0.0/16"),
            (
                "ip of x-forwarded-for /32 v4/28",
                "203.0.113.16",
                "203.0.113.0/24",
            ),
            (
                "ip of x-forwarded-for /32 v4/28",
                "2001:db8::",
                "2001:db8::/32",
            ),
        ] {
            let network = super::network(scope, address.parse().unwrap());
            assert_eq!(network.unwrap().to_string(), expected, "{scope}");
        }
    }
}
