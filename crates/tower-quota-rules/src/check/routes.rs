//! Routes that no request reaches.

use super::Checker;
use super::coverage::covers;
use crate::problem::Place;

impl Checker<'_> {
    pub(super) fn routes(&mut self) {
        let document = self.document;
        for (index, route) in document.routes.iter().enumerate() {
            let place = Place::of("routes").index(index);
            if route.limits.is_empty() {
                self.warning(
                    place.field("limits"),
                    "this route has no limits: add one, or remove the route",
                );
            }
            if route.matching.is_empty() {
                self.warning(
                    place.field("match"),
                    "this route matches every request: write its limits under \"limits\"",
                );
            }
            for (field, list) in [
                ("skip", &document.skip),
                ("allow", &document.allow),
                ("block", &document.block),
            ] {
                for (position, listed) in list.iter().enumerate() {
                    if !self.budget.take() {
                        return;
                    }
                    if !listed.is_empty() && covers(listed, &route.matching) {
                        let text = format_args!(
                            "this route is never reached, since {field}[{position}] takes all its requests: remove one of both"
                        );
                        self.warning(place.field("match"), text);
                        break;
                    }
                }
            }
        }
    }
}
