//! Extractors of the keys that a document names.

use core::fmt;
use std::sync::Arc;

use tower_quota::ConfigError;
use tower_quota::key::{self, ClientIp, KeyExtractor, Proxies, Source};

use super::key_source::KeySource;
use super::unknown::unknown_code;
use crate::code_parts::CodeParts;
use crate::document::{ClientIpRule, KeyRule};
use crate::problem::{Place, Problem};
use crate::text::KeyText;

/// Makes extractors of the keys of a document.
#[derive(Clone, Copy)]
pub(crate) struct Keys<'a> {
    pub(crate) client_ip: &'a ClientIp,
    pub(crate) code: &'a CodeParts,
}

type Extractor = Arc<dyn KeyExtractor>;

/// Returns the extractor of the key `client_ip`.
pub(crate) fn client_ip(rule: &ClientIpRule) -> Result<ClientIp, Problem> {
    let invalid = |field: &str, error: &dyn fmt::Display| {
        Problem::error(Place::of("client_ip").field(field), error)
    };
    let mut client_ip = key::client_ip();
    let proxies = match rule.hops {
        Some(hops) => Some(Proxies::try_hops(hops).map_err(|error| invalid("hops", &error))?),
        None if rule.trusted_proxies.is_empty() => None,
        None => {
            let networks = rule.trusted_proxies.iter().map(|network| network.as_str());
            Some(
                Proxies::try_networks(networks)
                    .map_err(|error| invalid("trusted_proxies", &error))?,
            )
        }
    };
    if let Some(proxies) = proxies {
        client_ip = client_ip.behind(
            proxies,
            source(rule).map_err(|error| invalid("header", &error))?,
        );
    }
    if let Some(bits) = rule.prefix_v4 {
        client_ip = client_ip
            .try_prefix_v4(bits)
            .map_err(|error| invalid("prefix_v4", &error))?;
    }
    if let Some(bits) = rule.prefix_v6 {
        client_ip = client_ip
            .try_prefix_v6(bits)
            .map_err(|error| invalid("prefix_v6", &error))?;
    }
    Ok(client_ip)
}

/// Returns the header in which proxies report the client.
fn source(rule: &ClientIpRule) -> Result<Source, http::header::InvalidHeaderName> {
    rule.header
        .as_ref()
        .map_or(Ok(Source::XForwardedFor), |name| {
            Source::try_header(name.as_str())
        })
}

impl Keys<'_> {
    /// Returns the extractor of a key.
    pub(crate) fn extractor(&self, rule: &KeyRule, place: &Place) -> Result<Extractor, Problem> {
        let parts = |keys: &[KeyRule]| {
            let parts = keys
                .iter()
                .enumerate()
                .map(|(at, key)| self.extractor(key, &place.index(at)));
            parts.collect::<Result<Vec<Extractor>, Problem>>()
        };
        Ok(match rule {
            KeyRule::One(text) => self.single(text, place)?,
            KeyRule::First(keys) => match &keys[..] {
                [one] => self.extractor(one, place)?,
                keys => Arc::new(key::first_of(parts(keys)?)),
            },
            KeyRule::All(keys) => Arc::new(key::all(parts(keys)?)),
        })
    }

    /// Returns the source of a key for patterns, tiers and overrides.
    pub(crate) fn source(&self, rule: &KeyRule, place: &Place) -> Result<KeySource, Problem> {
        let mut source = KeySource::new();
        self.add_to(&mut source, rule, place)?;
        Ok(source)
    }

    fn add_to(&self, source: &mut KeySource, rule: &KeyRule, place: &Place) -> Result<(), Problem> {
        if let KeyRule::First(keys) = rule {
            return keys
                .iter()
                .try_for_each(|key| self.add_to(source, key, place));
        }
        let extractor = self.extractor(rule, place)?;
        // Neither several keys together nor an address is read from a word.
        let is_text = matches!(rule, KeyRule::One(_)) && extractor.parse("word").is_some();
        source.push(extractor, is_text);
        Ok(())
    }

    fn single(&self, text: &KeyText, place: &Place) -> Result<Extractor, Problem> {
        let invalid = |error: ConfigError| Problem::error(place.clone(), error);
        Ok(match text {
            KeyText::None => Arc::new(key::everyone()),
            KeyText::ClientIp { v4, v6 } => {
                let mut client_ip = self.client_ip.clone();
                if let Some(bits) = v4 {
                    client_ip = client_ip.try_prefix_v4(*bits).map_err(&invalid)?;
                }
                if let Some(bits) = v6 {
                    client_ip = client_ip.try_prefix_v6(*bits).map_err(&invalid)?;
                }
                Arc::new(client_ip)
            }
            KeyText::Value(key) => Arc::new(key.clone()),
            KeyText::Code(name) => {
                let known = &self.code.keys;
                let unknown = || unknown_code(place.clone(), name.as_str(), known.keys());
                known.get(name.as_str()).cloned().ok_or_else(unknown)?
            }
        })
    }
}
