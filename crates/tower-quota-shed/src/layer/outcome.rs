use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use http_body::Body;

use crate::gate::Place;
use crate::limit::Kind;
use crate::settings::Hold;

/// A name of text would be parsed for each response.
static GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

const DEADLINE_EXCEEDED: &[u8] = b"4";
const RESOURCE_EXHAUSTED: &[u8] = b"8";
const UNAVAILABLE: &[u8] = b"14";

/// Reports the head of a response. Returns the place if the body holds it.
pub(super) fn place_of_body<B: Body, E>(
    mut place: Place,
    hold: Hold,
    answer: &Result<Response<B>, E>,
) -> Option<Place> {
    let now = place.gate.clock.now();
    let Ok(response) = answer else {
        place.answered(now, Some(Kind::Failed));
        return None;
    };
    place.answered(now, kind_of(response.status(), response.headers()));
    if response.body().is_end_stream() {
        return None;
    }
    if hold == Hold::WhileShort {
        place.begin_body(now);
    }
    Some(place)
}

/// Returns what a response says about the service, or `None` if the response is no work of the service.
///
/// A refused quota, a refusal of another shedder and an upgraded connection do not count. A timeout is a failure. All
/// other responses are answers, errors of clients included, because the service has handled the request.
fn kind_of(status: StatusCode, headers: &HeaderMap) -> Option<Kind> {
    match status {
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::SWITCHING_PROTOCOLS => return None,
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => return Some(Kind::Failed),
        _ => {}
    }
    match headers.get(&GRPC_STATUS).map(HeaderValue::as_bytes) {
        Some(RESOURCE_EXHAUSTED | UNAVAILABLE) => None,
        Some(DEADLINE_EXCEEDED) => Some(Kind::Failed),
        _ => Some(Kind::Answered),
    }
}
