//! Refuses documents with more limits for a request than a store decides in one step.

use tower_quota::store::Charge;
use tower_quota::{ConfigError, Name};

use super::Checker;
use crate::document::{LimitRule, MissingRule};
use crate::problem::DocumentPlace;

impl Checker<'_> {
    /// Counts the limits without conditions. The checks of the layer report other requests with too many limits.
    pub(super) fn most_limits(&mut self) {
        let document = self.document;
        let of_all: Vec<&LimitRule> = self.always(&document.limits).collect();
        if let Some(rule) = of_all.get(Charge::MOST) {
            return self.too_many(DocumentPlace::of("limits"), rule);
        }
        for (index, route) in document.routes.iter().enumerate() {
            let mut of_route = self.always(&route.limits);
            if let Some(rule) = of_route.nth(Charge::MOST - of_all.len()) {
                let place = DocumentPlace::of("routes").index(index).field("limits");
                self.too_many(place, rule);
            }
        }
    }

    fn always<'r>(&self, rules: &'r [LimitRule]) -> impl Iterator<Item = &'r LimitRule> + use<'r> {
        let missing = self.document.defaults.missing;
        rules.iter().filter(move |rule| {
            let skips = rule.missing.or(missing) == Some(MissingRule::Skip);
            let is_conditional = rule.when.is_some() || rule.unless.is_some() || skips;
            !rule.shadow && !is_conditional
        })
    }

    fn too_many(&mut self, place: DocumentPlace, rule: &LimitRule) {
        self.error(place, ConfigError::TooManyLimits(Name::from(&rule.name)));
    }
}
