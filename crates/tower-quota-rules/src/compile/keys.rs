use std::sync::Arc;

use tower_quota::explain::named;
use tower_quota::key::{self, ClientIp, KeyExtractor, Proxies, Source};

use super::conditions::Context;
use super::key_source::KeySource;
use crate::document::{ClientIpRule, KeyRule};
use crate::text::KeyText;

type Extractor = Arc<dyn KeyExtractor>;

pub(crate) fn client_ip(rule: &ClientIpRule) -> ClientIp {
    let mut client_ip = key::client_ip();
    let proxies = match rule.hops {
        Some(hops) => Some(Proxies::hops(hops)),
        None if rule.trusted_proxies.is_empty() => None,
        None => Some(Proxies::networks(&rule.trusted_proxies)),
    };
    if let Some(proxies) = proxies {
        let header = rule.header.as_ref();
        let source = header.and_then(|name| Source::try_header(name.as_str()).ok());
        client_ip = client_ip.behind(proxies, source.unwrap_or(Source::XForwardedFor));
    }
    with_prefixes(client_ip, rule.prefix_v4, rule.prefix_v6)
}

fn with_prefixes(mut client_ip: ClientIp, v4: Option<u8>, v6: Option<u8>) -> ClientIp {
    if let Some(bits) = v4 {
        client_ip = client_ip.prefix_v4(bits);
    }
    match v6 {
        Some(bits) => client_ip.prefix_v6(bits),
        None => client_ip,
    }
}

impl Context<'_> {
    pub(crate) fn extractor(&self, rule: &KeyRule) -> Extractor {
        let parts = |keys: &[KeyRule]| -> Vec<Extractor> {
            keys.iter().map(|key| self.extractor(key)).collect()
        };
        match rule {
            KeyRule::One(text) => self.single(text),
            KeyRule::First(keys) => match &keys[..] {
                [one] => self.extractor(one),
                keys => Arc::new(key::first_of(parts(keys))),
            },
            KeyRule::All { all: keys } => Arc::new(key::all(parts(keys))),
        }
    }

    pub(crate) fn source(&self, rule: &KeyRule) -> KeySource {
        let mut source = KeySource::default();
        self.add_to(&mut source, rule);
        source
    }

    fn add_to(&self, source: &mut KeySource, rule: &KeyRule) {
        if let KeyRule::First(keys) = rule {
            return keys.iter().for_each(|key| self.add_to(source, key));
        }
        let extractor = self.extractor(rule);
        // Only keys of text parse from a word.
        let is_text = matches!(rule, KeyRule::One(_)) && extractor.parse("word").is_some();
        source.push(extractor, is_text);
    }

    pub(super) fn single(&self, text: &KeyText) -> Extractor {
        match text {
            KeyText::None => Arc::new(key::everyone()),
            KeyText::ClientIp { v4, v6 } => {
                Arc::new(with_prefixes(ClientIp::clone(&self.client_ip), *v4, *v6))
            }
            KeyText::Value(key) => Arc::new(key.clone()),
            KeyText::Code(name) => match self.code.keys.get(name.as_str()) {
                Some(given) => Arc::new(named(text.to_string(), Arc::clone(given))),
                // Any key will do, because the check has refused unknown names.
                None => Arc::new(key::everyone()),
            },
        }
    }
}
