use super::Checker;
use crate::problem::DocumentPlace;

impl Checker<'_> {
    pub(super) fn client_ip(&mut self) {
        let rule = &self.document.client_ip;
        let place = DocumentPlace::of("client_ip");
        match rule.hops {
            Some(hops) if !(1..=32).contains(&hops) => {
                self.error(
                    place.field("hops"),
                    format_args!("{hops} proxies cannot be counted back: give 1 to 32"),
                );
            }
            Some(_) if !rule.trusted_proxies.is_empty() => {
                self.error(
                    place.field("hops"),
                    "proxies are known by their networks or by their number, and both are given: remove \"hops\"",
                );
            }
            None if rule.trusted_proxies.is_empty() && rule.header.is_some() => {
                let text = "no proxy is trusted, so that this header is never read: add \"trusted_proxies\"";
                self.error(place.field("header"), text);
            }
            _ => {}
        }
        for (field, bits, most) in [
            ("prefix_v4", rule.prefix_v4, 32),
            ("prefix_v6", rule.prefix_v6, 128),
        ] {
            if let Some(bits) = bits
                && !(1..=most).contains(&bits)
            {
                let text = format_args!(
                    "{bits} bits of an address do not tell clients apart: give 1 to {most}"
                );
                self.error(place.field(field), text);
            }
        }
    }
}
