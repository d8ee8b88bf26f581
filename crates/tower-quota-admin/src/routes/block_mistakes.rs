//! Refuses blocks that are probably mistakes, unless the caller insists.

use core::net::IpAddr;
use std::collections::HashMap;

use tower_quota::{Name, TopClient, TopWindow};
use tower_quota_live::Target;

use super::end::invalid;
use crate::api::Api;
use crate::problem::Result;

/// The fewest requests of a client before its share of the traffic counts, because counts are samples.
const FEWEST: u64 = 1_000;

/// Refuses very large networks, and blocks of the caller, of addresses inside your network and of most of the traffic.
pub(super) fn check_mistakes(
    api: &Api,
    target: &Target,
    caller: Option<IpAddr>,
    is_block: bool,
) -> Result<()> {
    let mut reason = match target {
        Target::Network(network) => {
            let shortest = if network.addr().is_ipv4() { 8 } else { 19 };
            let is_huge = network.prefix_len() < shortest;
            is_huge.then(|| format!("{network} is larger than a /{shortest}"))
        }
        Target::Key { .. } => None,
    };
    if is_block {
        reason = reason
            .or_else(|| own_address(api, target, caller))
            .or_else(|| inside(api, target))
            .or_else(|| most_traffic(api, target));
    }
    match reason {
        None => Ok(()),
        Some(reason) => {
            let detail = format_args!("{reason}: send `\"force\": true` if you mean it");
            Err(invalid(detail))
        }
    }
}

fn own_address(api: &Api, target: &Target, caller: Option<IpAddr>) -> Option<String> {
    let caller = caller?;
    match target {
        Target::Network(network) => network
            .contains(&caller)
            .then(|| format!("{network} contains your own address")),
        Target::Key { hash, .. } => {
            let is_own = api.hashes(&caller.to_string()).contains(hash);
            is_own.then(|| format!("{hash} is your own address"))
        }
    }
}

/// Finds a listed client with a private address, such as a proxy whose clients share the address.
fn inside(api: &Api, target: &Target) -> Option<String> {
    let Target::Key { hash, .. } = target else {
        return None;
    };
    let mut listed = api.live.listed_keys(None);
    let (_, key) = listed.find(|(of, _)| of == hash)?;
    let address = key.to_address()?;
    let is_inside = match address {
        IpAddr::V4(address) => {
            address.is_private() || address.is_loopback() || address.is_link_local()
        }
        IpAddr::V6(address) => {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        }
    };
    is_inside.then(|| {
        format!("{address} is inside your network, perhaps a proxy with all its clients (see `trusted_proxies`)")
    })
}

/// Finds a limit of which the clients sent more than half of the counted requests in the last ten minutes.
fn most_traffic(api: &Api, target: &Target) -> Option<String> {
    let is_meant = |client: &TopClient| match target {
        Target::Network(network) => {
            let address = client.key.to_address();
            address.is_some_and(|address| network.contains(&address))
        }
        Target::Key { hash, .. } => api.live.key_hash(&client.key) == *hash,
    };
    let mut requests: HashMap<Name, [u64; 2]> = HashMap::new();
    for client in api.live.handle().top_busy(TopWindow::TenMinutes) {
        let [meant, all] = requests.entry(client.limit).or_default();
        *all += client.at_most;
        if is_meant(&client) {
            *meant += client.at_least();
        }
    }
    let mut limits = requests.into_iter();
    let (limit, [meant, all]) =
        limits.find(|(_, [meant, all])| *meant >= FEWEST && *meant > *all / 2)?;
    Some(format!(
        "it sent about {meant} of the {all} requests that {limit:?} counted in the last ten minutes, more than half of the traffic",
        limit = limit.as_str()
    ))
}
