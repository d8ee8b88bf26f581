//! Addresses: proxies, prefixes, adaptive blocks.

use core::time::Duration;

use super::Checker;
use crate::document::BlockBy;
use crate::problem::Place;

impl Checker<'_> {
    pub(super) fn client_ip(&mut self) {
        let rule = &self.document.client_ip;
        let place = Place::of("client_ip");
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
        self.prefixes(&place, rule.prefix_v4, rule.prefix_v6);
    }

    fn prefixes(&mut self, place: &Place, v4: Option<u8>, v6: Option<u8>) {
        for (field, bits, most) in [("prefix_v4", v4, 32), ("prefix_v6", v6, 128)] {
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

    pub(super) fn adaptive_block(&mut self) {
        let Some(rule) = &self.document.adaptive_block else {
            return;
        };
        let place = Place::of("adaptive_block");
        let most = rule
            .most
            .map_or(Duration::from_secs(86_400), Duration::from);
        for (field, span) in [
            ("after", Some(rule.after)),
            ("first", Some(rule.first)),
            ("most", rule.most),
        ] {
            if span.is_some_and(|span| Duration::from(span).is_zero()) {
                self.error(
                    place.field(field),
                    "a time span of 0 blocks nothing: give at least 1s",
                );
            }
        }
        if Duration::from(rule.first) > most {
            let text = format_args!(
                "the first block of {} is longer than the longest: lower \"first\" or raise \"most\"",
                rule.first
            );
            self.error(place.field("first"), text);
        }
        if rule.factor == Some(0) {
            self.error(
                place.field("factor"),
                "a factor of 0 makes no block longer: give 1 or more",
            );
        }
        if rule.by != Some(BlockBy::Network)
            && (rule.prefix_v4.is_some() || rule.prefix_v6.is_some())
        {
            self.warning(
                place.field("by"),
                "keys are blocked, so that the prefixes mean nothing: write \"by\" as \"network\", or remove them",
            );
        }
        self.prefixes(&place, rule.prefix_v4, rule.prefix_v6);
    }
}
