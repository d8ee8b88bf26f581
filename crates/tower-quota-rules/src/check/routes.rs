use super::Checker;
use crate::problem::DocumentPlace;

impl Checker<'_> {
    pub(super) fn routes(&mut self) {
        let document = self.document;
        for (index, route) in document.routes.iter().enumerate() {
            let place = DocumentPlace::of("routes").index(index);
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
        }
    }
}
