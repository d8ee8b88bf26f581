//! Checks the lists `skip`, `allow` and `block`.

use super::Checker;
use crate::document::{Many, Match};
use crate::problem::DocumentPlace;

impl<'d> Checker<'d> {
    pub(super) fn lists(&mut self) {
        let document = self.document;
        for (field, list) in document.lists() {
            for (index, matching) in list.iter().enumerate() {
                let place = DocumentPlace::of(field).index(index);
                self.everything(field, place, matching);
            }
        }
    }

    fn everything(&mut self, field: &str, place: DocumentPlace, matching: &Match) {
        let mut keys = Many::of(&matching.key).iter();
        let mut networks = Many::of(&matching.network).iter();
        let covers_keys = keys.any(|key| key.as_str() == "*");
        let covers_networks = networks.any(|network| network.as_str().ends_with("/0"));
        let mut rest = matching.clone();
        if covers_keys {
            rest.key = None;
        }
        if covers_networks {
            rest.network = None;
        }
        if !rest.is_empty() {
            return;
        }
        match (field, matching.is_empty()) {
            // Warn about this block, because requests without the key match no pattern of keys.
            ("block", _) if !covers_keys => {
                self.error(
                    place,
                    "this blocks every client: say which, by a key, a network or a path",
                );
            }
            ("skip", true) => {
                self.error(
                    place,
                    "this skips every request, so that no limit is asked: say which requests",
                );
            }
            (_, true) => self.error(
                place,
                "this allows every request, so that no limit is asked: say which requests",
            ),
            _ => {
                let text = format_args!(
                    "nearly every request matches this: say which requests to {field}"
                );
                self.warning(place, text);
            }
        }
    }
}
