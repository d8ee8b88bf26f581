//! The styles in which clients are told how they stand.

mod draft11;
mod draft3;
mod draft6;
mod draft7;
mod exposed;
mod github;
mod names;
mod per_window;
mod policies;
mod triple;
mod unnamed;
mod x;

use core::fmt;

use http::header::{HeaderMap, HeaderValue};
use tower_quota_core::ConfigError;

pub(super) use self::draft11::{Statuses, policy};
pub use self::exposed::EXPOSED_HEADERS;
pub(super) use self::names::{RATE_LIMIT, RATE_LIMIT_POLICY};
use super::sheet::Sheet;
use super::telling::Telling;
use crate::limit::Limit;

/// How clients are told what is left: the header fields of one convention.
///
/// Of styles that write the same fields a layer takes one: [`Draft11`](Self::Draft11), [`Draft7`](Self::Draft7) or
/// [`Draft6`](Self::Draft6); [`XRateLimit`](Self::XRateLimit), [`GitHub`](Self::GitHub) or [`Draft3`](Self::Draft3).
/// [`PerWindow`](Self::PerWindow) goes with all. Whatever the style, numbers have at most 15 digits, and seconds are
/// rounded up.
///
/// Where a service behind the layer has written such fields itself, the answer grows no more permissive: lists are
/// added to, of other fields the stricter stay, and so does what is written in another convention under the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderStyle {
    /// `RateLimit: "burst";r=19;t=1` and `RateLimit-Policy: "burst";q=20;w=2`
    /// (draft-ietf-httpapi-ratelimit-headers-11; the same on the wire since draft 8).
    Draft11,
    /// `RateLimit: limit=20, remaining=19, reset=1` and `RateLimit-Policy: 20;w=2` (draft 7). The first tells of the
    /// limit that binds, and `reset` is equal to `Retry-After` where there is one.
    Draft7,
    /// `RateLimit-Limit: 20`, `RateLimit-Remaining: 19`, `RateLimit-Reset: 1` and `RateLimit-Policy: 20;w=2` (draft 6).
    /// The first three tell of the limit that binds, and the reset is equal to `Retry-After` where there is one.
    Draft6,
    /// `X-RateLimit-Limit: 20, 20;w=2;name="burst"`, `X-RateLimit-Remaining: 19` and `X-RateLimit-Reset: 1`, as Envoy's
    /// `DRAFT_VERSION_03`.
    Draft3,
    /// `X-RateLimit-Limit: 20`, `X-RateLimit-Remaining: 19` and `X-RateLimit-Reset`, of the limit that binds.
    XRateLimit(Reset),
    /// The same with [`Reset::Epoch`], `X-RateLimit-Used: 1` and `X-RateLimit-Resource: burst`, as GitHub's API.
    GitHub,
    /// `X-RateLimit-Limit-Minute: 100` and `X-RateLimit-Remaining-Minute: 99`, and the same with `-Second`, `-Hour` and
    /// `-Day`. Limits of other windows are not told; a bucket's window is the time that an empty one takes to be whole.
    PerWindow,
}

/// What `X-RateLimit-Reset` counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reset {
    /// Seconds from now.
    Delta,
    /// Seconds of the Unix epoch, on the clock of the store: Redis' own, or this process's for a memory store.
    Epoch,
}

impl HeaderStyle {
    /// What a layer tells unless told otherwise.
    pub(crate) const DEFAULT: [Self; 1] = [Self::Draft11];

    /// A field that no other style may write.
    const fn claim(self) -> &'static str {
        match self {
            Self::Draft11 | Self::Draft7 | Self::Draft6 => "RateLimit-Policy",
            Self::XRateLimit(_) | Self::GitHub | Self::Draft3 => "X-RateLimit-Limit",
            Self::PerWindow => "X-RateLimit-Limit-Minute",
        }
    }

    /// Whether these styles go together.
    pub(crate) fn check(styles: &[Self]) -> Result<(), ConfigError> {
        for (i, style) in styles.iter().enumerate() {
            if styles[..i].iter().any(|other| other.claim() == style.claim()) {
                return Err(ConfigError::SharedField(style.claim()));
            }
        }
        Ok(())
    }

    /// This style, made ready to tell of these limits.
    pub(super) fn of(self, limits: &[Limit]) -> Box<dyn Style> {
        match self {
            Self::Draft11 => Box::new(draft11::Draft11::new(limits)),
            Self::Draft7 => Box::new(draft7::Draft7::new(limits)),
            Self::Draft6 => Box::new(draft6::Draft6::new(limits)),
            Self::Draft3 => Box::new(draft3::Draft3::new(limits)),
            Self::XRateLimit(reset) => Box::new(x::XRateLimit::new(reset, limits)),
            Self::GitHub => Box::new(github::GitHub),
            Self::PerWindow => Box::new(per_window::PerWindow::new(limits)),
        }
    }
}

/// Writes fields of a decision on a sheet, or at once into the headers. What an inner limiter has written there grows no
/// more permissive.
pub(super) trait Style: fmt::Debug + Send + Sync {
    /// What the store has decided.
    fn write<'a>(&'a self, telling: Telling<'_>, headers: &mut HeaderMap, sheet: &mut Sheet<'a>);

    /// What an instance has decided by its own counters. The standard fields speak of quotas that hold for a client
    /// wherever it asks, and these do not: only fields of the `X-RateLimit` family tell of them.
    fn write_local<'a>(&'a self, _: Telling<'_>, _: &mut HeaderMap, _: &mut Sheet<'a>) {}

    /// That nothing was counted.
    fn write_uncounted(&self, _: &mut HeaderMap) {}
}

/// Says that the store had no part in what the other fields say.
pub(super) fn write_degraded(headers: &mut HeaderMap) {
    headers.insert(&names::X_POLICY, HeaderValue::from_static("degraded"));
}
