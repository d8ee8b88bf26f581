//! The description of a request.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeMap;

use http::Request;
use http::header::HOST;
use serde::Deserialize;
use tower_quota_rules::{DurationText, Many};

use crate::http::{Given, HttpOptions, Problem, with_plain_path};

/// A call of `/v1/check`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    method: Option<String>,
    path: Option<String>,
    host: Option<String>,
    /// The address of the client.
    pub(super) address: Option<IpAddr>,
    #[serde(default)]
    headers: BTreeMap<String, Many<String>>,
    /// The values of keys `code NAME`.
    #[serde(default)]
    keys: BTreeMap<String, String>,
    /// The units, for limits without a cost of their own.
    #[serde(default = "one")]
    cost: u64,
    #[serde(default)]
    pub(super) peek: bool,
    reserve: Option<DurationText>,
}

const fn one() -> u64 {
    1
}

impl Call {
    /// Returns the request that the call describes.
    pub(super) fn request(&self) -> Result<Request<()>, Problem> {
        let path = self.path.as_deref().unwrap_or("/");
        if !path.starts_with('/') {
            return Err(Problem::invalid(format_args!(
                "the path {path:?} is relative: begin it with /"
            )));
        }
        let mut request = Request::builder().uri(path);
        if let Some(method) = &self.method {
            request = request.method(method.as_str());
        }
        for (name, values) in &self.headers {
            let is_replaced = self.host.is_some() && name.eq_ignore_ascii_case("host");
            for value in values.0.iter().filter(|_| !is_replaced) {
                request = request.header(name, value);
            }
        }
        if let Some(host) = &self.host {
            request = request.header(HOST, host);
        }
        if let Some(address) = self.address {
            request = request.extension(address);
        }
        request = request.extension(Given {
            cost: self.cost,
            keys: self.keys.clone(),
        });
        match request.body(()) {
            Ok(request) => Ok(with_plain_path(request)),
            Err(error) => Err(Problem::invalid(format_args!(
                "the request cannot exist: {error}: describe it as the client sent it"
            ))),
        }
    }

    /// Returns the time of the reservation, if the call reserves.
    pub(super) fn reserved_time(&self, options: &HttpOptions) -> Result<Option<Duration>, Problem> {
        let Some(time) = self.reserve.map(Duration::from) else {
            return Ok(None);
        };
        let longest = options.longest_reservation;
        if self.peek {
            return Err(Problem::invalid(
                "a peek takes no units: leave out `peek` or `reserve`",
            ));
        }
        if time.is_zero() || time > longest {
            return Err(Problem::invalid(format_args!(
                "`reserve` is {time:?}: give a time above 0, up to {longest:?}"
            )));
        }
        Ok(Some(time))
    }
}
