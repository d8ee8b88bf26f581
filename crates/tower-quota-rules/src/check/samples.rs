use super::Checker;
use crate::problem::DocumentPlace;

impl Checker<'_> {
    pub(super) fn samples(&mut self) {
        let document = self.document;
        for (index, sample) in document.tests.iter().enumerate() {
            let place = DocumentPlace::of("tests").index(index);
            if let Some(path) = &sample.request.path
                && !path.starts_with('/')
            {
                let text =
                    format_args!("{path:?} is not the path of a request: begin it with \"/\"");
                self.error(place.field("request").field("path"), text);
            }
            let expected = place.field("expect");
            if let Some(tier) = &sample.expect.tier {
                self.is_tier(|| expected.field("tier"), tier);
            }
            for name in sample.expect.limits.iter().flat_map(|limits| limits.keys()) {
                self.known_limit(|| expected.field("limits").field(name.as_str()), name);
            }
        }
    }
}
