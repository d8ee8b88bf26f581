use core::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::response::Parts;
use http::{HeaderMap, Method, StatusCode};
use http_body::Frame;

use super::grpc_messages::GrpcMessages;
use super::{Reservation, ResponseEnd};
use crate::protocol::{GRPC_STATUS, GrpcContentType};

/// Counts the bytes of a body, and calls the rules for the end once, at the latest in `drop`.
#[derive(Debug)]
pub(crate) struct Meter {
    reservation: Reservation,
    status: StatusCode,
    bytes: u64,
    most_bytes: Option<u64>,
    messages: Option<GrpcMessages>,
    holds: bool,
    is_upgrade: bool,
    /// Whether the body has ended, set in `is_end_stream(&self)` too, after which servers may stop
    /// polling.
    is_complete: AtomicBool,
    is_over: bool,
}

/// Data of a response, with a clone of the reservation that holds the units.
struct HeldBytes {
    data: Bytes,
    _reservation: Reservation,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Meter {
    /// Applies the rules to the head of a response. Makes a meter if a rule or a hold waits for the body's
    /// end.
    pub(crate) fn start(response: &Parts, reservation: Reservation) -> Option<Box<Self>> {
        if reservation.is_empty() {
            return None;
        }
        let holds = reservation.holds();
        if reservation.head(response) && !holds {
            return None;
        }
        let status = response.status;
        // Servers drop these bodies unread.
        let is_empty = reservation.is_of(&Method::HEAD)
            || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let content_type = GrpcContentType::of(&response.headers);
        let is_grpc = content_type.is_some_and(|kind| !kind.is_web());
        Some(Box::new(Self {
            status,
            bytes: 0,
            most_bytes: reservation.most_bytes(),
            messages: is_grpc.then(GrpcMessages::new),
            holds,
            is_upgrade: status == StatusCode::SWITCHING_PROTOCOLS
                || status.is_success() && reservation.is_of(&Method::CONNECT),
            is_complete: AtomicBool::new(is_empty),
            is_over: false,
            reservation,
        }))
    }

    /// Attaches the held units to the data of a frame, so that a slow reader keeps the units.
    ///
    /// A server takes the last frame long before the client has read the bytes.
    pub(crate) fn hold(&self, frame: Frame<Bytes>) -> Frame<Bytes> {
        if !self.holds {
            return frame;
        }
        frame.map_data(|data| match data.is_empty() {
            true => data,
            false => Bytes::from_owner(HeldBytes {
                data,
                _reservation: self.reservation.clone(),
            }),
        })
    }

    /// Returns the fitting part of a frame (complete messages for gRPC), unless the whole frame fits.
    pub(crate) fn cut<E>(&self, frame: Option<&Result<Frame<Bytes>, E>>) -> Option<Bytes> {
        let (most, Ok(frame)) = self.most_bytes.zip(frame)? else {
            return None;
        };
        let data = frame.data_ref()?;
        let room = most.saturating_sub(self.bytes);
        let is_cut = data.len() as u64 > room;
        is_cut.then(|| {
            let fitting = self
                .messages
                .as_ref()
                .map_or(room, |messages| messages.complete_messages(data, room));
            // The part is shorter than the data, so the conversion cannot fail.
            data.slice(..usize::try_from(fitting).unwrap_or_default())
        })
    }

    pub(crate) fn cut_trailers(&self) -> Option<HeaderMap> {
        self.messages.is_some().then(|| {
            let status = (GRPC_STATUS, HeaderValue::from_static("8"));
            let message = HeaderValue::from_static("the quota ended during this response");
            HeaderMap::from_iter([status, (HeaderName::from_static("grpc-message"), message)])
        })
    }

    /// Records a frame, or the end. Returns whether the body has ended.
    pub(crate) fn pass<E>(
        &mut self,
        frame: Option<&Result<Frame<Bytes>, E>>,
        is_last: bool,
    ) -> bool {
        match frame {
            None => *self.is_complete.get_mut() = true,
            Some(Err(_)) => {}
            Some(Ok(frame)) => {
                *self.is_complete.get_mut() |= is_last || frame.is_trailers();
                if let Some(data) = frame.data_ref() {
                    self.bytes += data.len() as u64;
                    if let (Some(messages), Some(_)) = (&mut self.messages, self.most_bytes) {
                        messages.pass(data);
                    }
                }
                if let Some(trailers) = frame.trailers_ref() {
                    self.end(Some(trailers));
                }
                return *self.is_complete.get_mut();
            }
        }
        true
    }

    pub(crate) fn end_is_known(&self) {
        self.is_complete.store(true, Ordering::Relaxed);
    }

    fn end(&mut self, trailers: Option<&HeaderMap>) {
        if !core::mem::replace(&mut self.is_over, true) {
            let Self { status, bytes, .. } = *self;
            let is_complete = *self.is_complete.get_mut();
            self.reservation.end(&ResponseEnd {
                status,
                bytes,
                trailers,
                is_complete,
            });
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.end(None);
        // The task of an upgraded connection cannot have ended before the server has taken the response.
        if self.is_upgrade && *self.is_complete.get_mut() {
            self.reservation.check_upgrade();
        }
    }
}
