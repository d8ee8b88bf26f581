use super::Checker;
use crate::document::Grants;
use crate::problem::DocumentPlace;

const MAX_EXTENDED: usize = 32;

impl<'d> Checker<'d> {
    pub(super) fn tiers(&mut self) {
        let document = self.document;
        for (name, tier) in &document.tiers {
            let place = DocumentPlace::of("tiers").field(name.as_str());
            self.grants(|| place.clone(), &tier.limits);
            let Some(extends) = &tier.extends else {
                continue;
            };
            let place = place.field("extends");
            if self.is_tier(|| place.clone(), extends)
                && let Some(wrong) = self.wrong_way(name.as_str())
            {
                self.error(place, format_args!("the tier {:?} {wrong}", name.as_str()));
            }
        }
    }

    pub(super) fn grants(&mut self, place: impl Fn() -> DocumentPlace, grants: &'d Grants) {
        for (name, grant) in grants.iter() {
            let Some(limit) = self.limits.get(name.as_str()) else {
                self.known_limit(|| place().field("limits").field(name.as_str()), name);
                continue;
            };
            if let Some(quota) = grant.quota() {
                self.quota(limit.rule, quota, || {
                    place().field("limits").field(name.as_str())
                });
            }
        }
    }

    /// Returns the error in the chain of a tier. A cycle is reported once, at its first tier.
    fn wrong_way(&self, name: &'d str) -> Option<String> {
        let tiers = &self.document.tiers;
        let mut way = vec![name];
        while way.len() <= MAX_EXTENDED {
            let next = tiers.get(*way.last()?)?.extends.as_ref()?.as_str();
            if next == name {
                let first = way.iter().min_by_key(|tier| tiers.get_index_of(**tier));
                return (first == Some(&name)).then(|| {
                    format!(
                        "extends itself, by {} -> {name}: remove one of these",
                        way.join(" -> ")
                    )
                });
            }
            // Report the cycle at another tier, because this tier only leads to it.
            if way.contains(&next) {
                return None;
            }
            way.push(next);
        }
        Some(format!(
            "extends more than {MAX_EXTENDED} tiers, one by the other: extend fewer"
        ))
    }
}
