use core::net::IpAddr;

use serde::Serialize;
use tower_quota::{
    Key, Name, Over, Reason, RequestHead,
    explain::{Explained, ExplainedLimit, SampleContext},
};

use super::same_quota::is_quota;
use super::sample::AssumedPeer;
use super::shown_key::{hashed, readable_key};
use super::source::QuotaSource;
use crate::compile::{Granted, TierSource};
use crate::document::{LimitRule, OutcomeText};
use crate::rules::Rules;
use crate::text::{OverText, QuotaText};

/// The effect of rules on a request, before other requests are counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The outcome.
    pub outcome: OutcomeText,
    /// The tier of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// What has given the tier: `override`, `code` or an assignment such as `assign[2]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier_from: Option<String>,
    /// The address of the peer, if the request has none and this address stands for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed_address: Option<IpAddr>,
    /// The scope of the missing or conflicting part of a key, if the request is refused for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_key: Option<String>,
    /// The deciding limits.
    pub limits: Vec<LimitExplanation>,
    /// Unknown inputs, such as a key from your code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// A limit that decides a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LimitExplanation {
    /// The limit's name.
    pub name: String,
    /// The quota of the request's client.
    pub quota: QuotaText,
    /// What gives the quota: `limit`, `tier NAME`, `override`, an override of an operator with its end, or `service`.
    pub source: QuotaSource,
    /// The scope of the key.
    pub scope: String,
    /// The key, or 8 bytes of a hash that differs between processes.
    pub key: String,
    /// The cost in units.
    pub cost: u64,
    /// True if the limit is evaluated without enforcing it.
    pub shadow: bool,
    /// What happens to requests over the quota, unless the limit refuses them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<OverText>,
}

impl Rules {
    /// Returns the effect of these rules on a request, with hashed keys, and counts no request.
    ///
    /// ```
    /// use http::Request;
    /// use tower_quota::RequestHead;
    /// use tower_quota_rules::Rules;
    ///
    /// let text = "limits: [{ name: minute, quota: 100/minute, key: header x-api-key }]";
    /// let rules = Rules::parse(text)?;
    /// let request = Request::get("/").header("x-api-key", "ann").body(()).unwrap();
    /// let explanation = rules.explain(&RequestHead::of(&request));
    /// assert_eq!(explanation.limits[0].quota.to_string(), "100/minute");
    /// # Ok::<(), tower_quota_rules::Problems>(())
    /// ```
    #[must_use]
    pub fn explain(&self, head: &RequestHead<'_>) -> Explanation {
        self.explain_as(head, self.compiled().explain(head), &hashed)
    }

    /// Explains like [`explain`](Self::explain), with readable keys, which may be secrets.
    #[must_use]
    pub fn explain_with_keys(&self, head: &RequestHead<'_>) -> Explanation {
        self.explain_as(head, self.compiled().explain(head), &readable_key)
    }

    /// Returns the effect of a running layer with these rules on a request.
    ///
    /// Pass the [explanation](tower_quota::RateLimitHandle::explain) of its handle. `show` returns
    /// the text of a key.
    #[must_use]
    pub fn explain_as(
        &self,
        head: &RequestHead<'_>,
        explained: Explained,
        show: &dyn Fn(&Key<'_>) -> String,
    ) -> Explanation {
        let granted = self.compiled().index.tiers.of(&head.of_sample());
        let mut explanation = Explanation {
            outcome: OutcomeText::Counted,
            tier: granted.tier.map(|(name, _)| name.to_owned()),
            tier_from: granted.tier.map(|(_, source)| match source {
                TierSource::Override => "override".into(),
                TierSource::Extension => "code".into(),
                TierSource::Assignment(position) => format!("assign[{position}]"),
            }),
            assumed_address: head.extensions().get().map(|AssumedPeer(address)| *address),
            missing_key: None,
            limits: Vec::new(),
            unknown: Vec::new(),
        };
        if let Some(sample) = head.extensions().get::<SampleContext>() {
            explanation.unknown = sample.unknown();
        }
        match explained {
            Explained::Skipped => explanation.outcome = OutcomeText::Skipped,
            Explained::Allowed => explanation.outcome = OutcomeText::Allowed,
            Explained::Refused(Reason::Blocked) => explanation.outcome = OutcomeText::Blocked,
            Explained::Refused(Reason::MissingKey(part) | Reason::Unauthenticated(part)) => {
                explanation.missing_key = Some(text(part.scope()));
            }
            Explained::Refused(Reason::NoPeerAddress) => {
                explanation.missing_key = Some("ip".into());
            }
            Explained::Limited(limits) => {
                for limit in &limits {
                    let name = limit.name.as_str();
                    let mut rules = self.document().all_limits().zip(0..);
                    let rule = rules.find(|(rule, _)| rule.name.as_str() == name);
                    explanation.limits.push(LimitExplanation {
                        name: text(limit.name),
                        quota: limit.quota.into(),
                        source: rule.map_or(QuotaSource::Service, |(rule, position)| {
                            source_of(limit, rule, position, &granted)
                        }),
                        scope: text(limit.key.scope()),
                        key: show(&limit.key),
                        cost: limit.cost,
                        shadow: limit.is_shadow,
                        over: (limit.over != Over::Refuse).then(|| limit.over.into()),
                    });
                }
            }
            _ => {}
        }
        explanation
    }
}

/// Returns what gives a limit its quota. The code and the operators of a service have the last word.
fn source_of(
    limit: &ExplainedLimit,
    rule: &LimitRule,
    position: u32,
    granted: &Granted<'_>,
) -> QuotaSource {
    let expected = granted.quota(position).flatten();
    let expected = expected.unwrap_or(*rule.quota.quota());
    if is_quota(rule, &expected, &limit.quota) {
        granted.source(position)
    } else {
        QuotaSource::Service
    }
}

fn text(name: Name) -> String {
    name.as_str().to_owned()
}
