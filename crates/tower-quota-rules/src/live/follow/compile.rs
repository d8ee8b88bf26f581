//! Compiles documents, off the runtime's threads: a large one takes seconds.

use std::sync::Arc;

use tower_quota::key::{self, ClientIp, KeyExtractor, Proxies, Source};
use tower_quota::{ConfigError, Key, Policy, RequestHead, Store};

use super::shared::Shared;
use crate::document::ClientIpRule;
use crate::live::blocks::BlockKeys;
use crate::live::error::Invalid;
use crate::live::rollout::Rollout;
use crate::live::store::Candidate;
use crate::live::version::Version;
use crate::{Document, Rules};

/// The seed of the hash that chooses clients for a roll-out: the same on all instances, and for all roll-outs, so that
/// a larger percentage has the clients of a smaller one.
const ROLLOUT_SEED: [u8; 16] = *b"quota: roll-outs";

impl<S: Store> Shared<S> {
    /// Reads the document of a version.
    pub(crate) async fn read(&self, version: &Version) -> Result<Rules, Invalid> {
        let (reader, text, format) = (Arc::clone(&self.options.reader), version.text.clone(), version.format);
        let read = tokio::task::spawn_blocking(move || reader(&text, format)).await;
        read.map_err(|error| Invalid::Failed(error.to_string()))?.map_err(Invalid::Problems)
    }

    /// Compiles the policy of a document, and of one that is rolled out beside it.
    pub(crate) fn policy(&self, rules: &Rules, beside: Option<(Candidate, &Rules)>) -> Result<Policy, ConfigError> {
        let policy = self.policy_of(rules);
        match beside {
            None => Ok(policy),
            Some((Candidate { rollout: Rollout::DryRun, .. }, candidate)) => policy.dry_run(candidate.policy()),
            Some((Candidate { rollout: Rollout::Percent(percent), .. }, candidate)) => {
                let key = client_key(&policy);
                let is_chosen =
                    move |head: &RequestHead<'_>| key.as_ref().is_some_and(|key| is_chosen(&**key, head, percent));
                Ok(policy.split(is_chosen, self.policy_of(candidate)))
            }
        }
    }

    fn policy_of(&self, rules: &Rules) -> Policy {
        let policy = (self.options.with_policy)(rules.policy());
        let keys = BlockKeys { keys: policy.keys().into(), client_ip: client_ip(rules.document()) };
        self.blocks.add_to(policy, keys)
    }
}

/// Returns the key by which clients are chosen: the first that a limit counts by.
pub(crate) fn client_key(policy: &Policy) -> Option<Arc<dyn KeyExtractor>> {
    policy.keys().into_iter().find(|key| key.scope() != Key::EVERYONE.scope())
}

/// Returns whether a request's client is among this percentage. Requests without a key, or with several, are not.
pub(crate) fn is_chosen(by: &dyn KeyExtractor, head: &RequestHead<'_>, percent: u8) -> bool {
    let key = by.extract(head).filter(|key| !key.as_bytes().is_empty());
    key.is_some_and(|key| key.digest(&ROLLOUT_SEED) % 100 < u128::from(percent))
}

/// Returns the extractor of whole addresses, behind the proxies that a document trusts.
fn client_ip(document: &Document) -> ClientIp {
    let ClientIpRule { trusted_proxies, hops, header, .. } = &document.client_ip;
    let source = header.as_ref().map_or(Source::XForwardedFor, |header| source_of(&header.to_string()));
    let whole = key::client_ip().prefix_v4(32).prefix_v6(128);
    // The document was checked.
    let proxies = match hops {
        Some(hops) => Proxies::try_hops(*hops),
        None if trusted_proxies.is_empty() => return whole,
        None => Proxies::try_networks(trusted_proxies.iter().map(ToString::to_string)),
    };
    match proxies {
        Ok(proxies) => whole.behind(proxies, source),
        Err(_) => whole,
    }
}

fn source_of(header: &str) -> Source {
    match header {
        "x-forwarded-for" => Source::XForwardedFor,
        "forwarded" => Source::Forwarded,
        "cf-connecting-ip" => Source::CfConnectingIp,
        "true-client-ip" => Source::TrueClientIp,
        "fly-client-ip" => Source::FlyClientIp,
        "x-real-ip" => Source::XRealIp,
        "cloudfront-viewer-address" => Source::CloudFrontViewerAddress,
        "x-envoy-external-address" => Source::XEnvoyExternalAddress,
        other => other.parse().map_or(Source::XForwardedFor, Source::Header),
    }
}
