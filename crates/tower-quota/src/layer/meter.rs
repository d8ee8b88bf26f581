//! Follows a response to its end, for limits that settle.

use core::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body::Frame;

use super::body::ResponseBody;
use crate::settle::{Reservation, ResponseEnd};

/// Counts what is sent of a body, and tells the rules that wait for its end: once, at the latest when it is dropped.
#[derive(Debug)]
pub(super) struct Meter {
    reservation: Reservation,
    status: StatusCode,
    bytes: u64,
    /// Whoever is told that nothing is to come does not ask for it, and is told by a shared reference.
    is_complete: AtomicBool,
    is_over: bool,
}

/// Asks the rules about the head of a response, and follows its body if one of them waits for its end.
#[inline]
pub(super) fn metered<B>(response: Response<B>, reservation: Reservation) -> Response<ResponseBody<B>> {
    if reservation.is_empty() {
        return response.map(|body| ResponseBody::inner(body, None));
    }
    meter(response, reservation)
}

fn meter<B>(response: Response<B>, reservation: Reservation) -> Response<ResponseBody<B>> {
    let (parts, body) = response.into_parts();
    let meter = if reservation.head(&parts) { None } else { Some(Box::new(Meter::new(parts.status, reservation))) };
    Response::from_parts(parts, ResponseBody::inner(body, meter))
}

impl Meter {
    fn new(status: StatusCode, reservation: Reservation) -> Self {
        // Servers drop these bodies unread.
        let is_empty = reservation.is_head() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        Self { reservation, status, bytes: 0, is_complete: AtomicBool::new(is_empty), is_over: false }
    }

    /// A frame is handed on, or the end: whether nothing more is to come.
    pub(super) fn pass<E>(&mut self, frame: Option<&Result<Frame<Bytes>, E>>, is_last: bool) -> bool {
        match frame {
            None => *self.is_complete.get_mut() = true,
            Some(Err(_)) => {}
            Some(Ok(frame)) => {
                *self.is_complete.get_mut() |= is_last || frame.is_trailers();
                self.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                if let Some(trailers) = frame.trailers_ref() {
                    self.end(Some(trailers));
                }
                return *self.is_complete.get_mut();
            }
        }
        true
    }

    /// The server has been told that nothing more is to come.
    pub(super) fn told_end(&self) {
        self.is_complete.store(true, Ordering::Relaxed);
    }

    fn end(&mut self, trailers: Option<&HeaderMap>) {
        if !core::mem::replace(&mut self.is_over, true) {
            let Self { status, bytes, .. } = *self;
            let is_complete = *self.is_complete.get_mut();
            self.reservation.end(&ResponseEnd { status, bytes, trailers, is_complete });
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.end(None);
    }
}
