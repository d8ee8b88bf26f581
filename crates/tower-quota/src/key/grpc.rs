use base64::Engine;
use http::header::HeaderName;

use super::authorization::LENIENT;
use super::header::{SentValue, lines};
use crate::head::RequestHead;

pub(super) fn called<'r>(head: &RequestHead<'r>) -> Option<(&'r str, &'r str)> {
    let call = head.uri().path().strip_prefix('/')?;
    let (service, method) = call.split_once('/')?;
    let call = if method.is_empty() { method } else { call };
    (!service.is_empty()).then_some((service, call))
}

pub(super) fn metadata_values<'r>(
    head: &RequestHead<'r>,
    name: &HeaderName,
    visit: &mut dyn FnMut(SentValue<'r>),
) {
    let is_binary = name.as_str().ends_with("-bin");
    for line in lines(head, name) {
        if is_binary {
            for value in line.split(|byte| *byte == b',') {
                let decoded = LENIENT.decode(value.trim_ascii());
                visit(decoded.ok().map(Into::into));
            }
        } else {
            visit(Some(line.into()));
        }
    }
}
