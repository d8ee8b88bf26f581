//! Follows a response to its end, for limits that settle.

use core::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, StatusCode};
use http_body::Frame;

use super::{Reservation, ResponseEnd};

/// Counts the bytes of a body, and asks the rules that wait for its end once, at the latest when it is dropped.
#[derive(Debug)]
pub(crate) struct Meter {
    reservation: Reservation,
    status: StatusCode,
    bytes: u64,
    /// Servers may stop polling once `is_end_stream(&self)` is true, hence the atomic.
    is_complete: AtomicBool,
    is_over: bool,
}

impl Meter {
    /// Asks the rules about the head of a response. Returns a meter for its body if a rule waits for the end.
    pub(crate) fn start(response: &Parts, reservation: Reservation) -> Option<Box<Self>> {
        if reservation.is_empty() || reservation.head(response) {
            return None;
        }
        Some(Box::new(Self::new(response.status, reservation)))
    }

    fn new(status: StatusCode, reservation: Reservation) -> Self {
        // Servers drop these bodies unread.
        let is_empty = reservation.is_head() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        Self { reservation, status, bytes: 0, is_complete: AtomicBool::new(is_empty), is_over: false }
    }

    /// Notes a frame, or the end. Returns whether the body is over.
    pub(crate) fn pass<E>(&mut self, frame: Option<&Result<Frame<Bytes>, E>>, is_last: bool) -> bool {
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

    /// Notes that the server knows of the end.
    pub(crate) fn end_is_known(&self) {
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
