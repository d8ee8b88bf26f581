//! What is sent of a lone decision, in the form that `script/lone_request.lua` describes.

use tower_quota_core::Timestamp;

use crate::definition::Definition;
use crate::question::Question;
use crate::request::{push_instant, push_number};

/// The request for one plain decision about one subject, at an instant or at the server's own time; `None` of others.
pub(crate) fn request(question: &Question, id_width: usize, instant: Option<Timestamp>) -> Option<Vec<u8>> {
    let (template, [id]) = (&question.template, question.subjects.as_slice()) else { return None };
    if !template.is_plain {
        return None;
    }
    let mut bytes = Vec::with_capacity(16 + template.charges.len() * (Definition::BYTES + 7) + id.as_bytes().len());
    push_instant(&mut bytes, instant);
    // Plain are at most four charges, and an id that is not readable has a fixed width of a few bytes.
    bytes.push(u8::try_from(template.charges.len()).ok()?);
    bytes.push(u8::try_from(id_width).ok()?);
    for part in &template.charges {
        bytes.extend_from_slice(Definition::new(part.name.id(), &part.quota).as_bytes());
        push_number(&mut bytes, part.cost);
    }
    bytes.extend_from_slice(id.as_bytes());
    Some(bytes)
}
