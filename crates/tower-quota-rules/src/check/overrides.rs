use tower_quota::when;

use super::Checker;
use crate::document::KeyRule;
use crate::problem::DocumentPlace;
use crate::text::KeyText;

#[derive(Default)]
struct Meaning {
    address: bool,
    text: bool,
}

impl Checker<'_> {
    pub(super) fn overrides(&mut self) {
        let document = self.document;
        let field = match document.overrides.is_empty() {
            false => "overrides",
            true if document.assigns_by_key() => "assign",
            true => return,
        };
        let meaning = match meaning(document.defaults.key()) {
            Ok(meaning) => meaning,
            Err(reason) => {
                let text = format_args!(
                    "the key of \"defaults\" {reason}, so that no text names a client: choose another key there"
                );
                self.error(DocumentPlace::of(field), text);
                return;
            }
        };
        for (key, single) in &document.overrides {
            let place = || DocumentPlace::of("overrides").field(key);
            if key.is_empty() {
                self.error(
                    place(),
                    "an empty key is a missing one: give the client's key",
                );
            }
            if meaning.address {
                self.address(key, &meaning);
            }
            if single.tier.is_none() && single.limits.is_empty() {
                self.warning(
                    place(),
                    format_args!("the override of {key:?} changes nothing: give a tier or limits, or remove it"),
                );
            }
            if let Some(tier) = &single.tier {
                self.is_tier(|| place().field("tier"), tier);
            }
            self.grants(place, &single.limits);
        }
    }

    fn address(&mut self, key: &str, meaning: &Meaning) {
        let is_address = when::try_network_range(key).is_ok();
        let place = || DocumentPlace::of("overrides").field(key);
        if !meaning.text && !is_address {
            let text = format_args!(
                "{key:?} is not an address, and clients are known by theirs: give an address, or another key in \"defaults\""
            );
            self.error(place(), text);
        } else if meaning.text && is_address {
            let text = format_args!(
                "{key:?} is an address, and any client can send it as another part of the key: use \"allow\" with a network"
            );
            self.warning(place(), text);
        }
    }
}

/// Returns the possible meanings of a key's text, or the reason why it has no meaning.
fn meaning(key: &KeyRule) -> Result<Meaning, &'static str> {
    match key {
        KeyRule::One(KeyText::None) => Err("is \"none\""),
        KeyRule::One(KeyText::ClientIp { .. }) => Ok(Meaning {
            address: true,
            ..Meaning::default()
        }),
        KeyRule::One(_) => Ok(Meaning {
            text: true,
            ..Meaning::default()
        }),
        KeyRule::All { .. } => Err("is several together"),
        KeyRule::First(keys) => {
            let mut all = Meaning::default();
            for key in keys {
                let part = meaning(key)?;
                all.address |= part.address;
                all.text |= part.text;
            }
            Ok(all)
        }
    }
}
