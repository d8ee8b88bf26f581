use core::convert::Infallible;
use core::future::{Ready, ready};
use core::pin::Pin;
use core::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use tower_service::Service;

use crate::log::LoggedResponse;

/// Answers a request with its logged response.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoggedService;

#[derive(Debug)]
pub(super) struct LoggedBody {
    left: u64,
}

static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

impl Service<Request<LoggedResponse>> for LoggedService {
    type Response = Response<LoggedBody>;
    type Error = Infallible;
    type Future = Ready<Result<Response<LoggedBody>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<LoggedResponse>) -> Self::Future {
        let logged = *request.body();
        let mut response = Response::new(LoggedBody {
            left: logged.bytes.unwrap_or(0),
        });
        *response.status_mut() = logged
            .status
            .and_then(|code| StatusCode::from_u16(code).ok())
            .unwrap_or_default();
        ready(Ok(response))
    }
}

impl Body for LoggedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = usize::try_from(self.left)
            .unwrap_or(ZEROS.len())
            .min(ZEROS.len());
        self.left -= length as u64;
        Poll::Ready((length > 0).then(|| Ok(Frame::data(Bytes::from_static(&ZEROS[..length])))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }
}
