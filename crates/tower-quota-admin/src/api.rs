use core::convert::Infallible;
use core::net::IpAddr;
use core::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::Deserialize;
use tower_quota::key::{ClientIp, client_ip};
use tower_quota::{RequestHead, metrics};
use tower_quota_live::{LiveRules, RuleStoreError, Version};

use crate::auth::Role;
use crate::extract::Query;
use crate::figures::NamedFigures;
use crate::places::{Place, Places};
use crate::problem::{Problem, ProblemKind, Result};
use crate::recent::Feed;
use crate::shedding::Shedding;
use crate::{AdminOptions, Author};

#[derive(Clone)]
pub(crate) struct Api(pub(crate) Arc<ApiState>);

pub(crate) struct ApiState {
    pub(crate) live: LiveRules,
    pub(crate) title: Option<String>,
    pub(crate) instance: String,
    pub(crate) figures: Vec<NamedFigures>,
    pub(crate) shedding: Vec<Arc<dyn Shedding>>,
    pub(crate) streams: Arc<Places>,
    checks: Arc<Places>,
    changes: Arc<Places>,
    pub(crate) feed: Feed,
    pub(crate) show_keys: bool,
    client_ip: ClientIp,
}

impl Deref for Api {
    type Target = ApiState;

    fn deref(&self) -> &ApiState {
        &self.0
    }
}

pub(crate) struct Caller(pub(crate) Option<IpAddr>);

pub(crate) struct ShowKeys(pub(crate) bool);

/// A place for a check, a comparison or a changed text of documents, which take seconds. A request
/// has one.
#[derive(Clone)]
pub(crate) struct CheckPlace(pub(crate) Arc<Place>);

/// A place for a change of the document.
pub(crate) struct ChangePlace(pub(crate) Arc<Place>);

#[derive(Deserialize)]
pub(crate) struct ShowQuery {
    #[serde(default)]
    show_keys: bool,
}

impl Api {
    pub(crate) fn new(live: LiveRules, options: &AdminOptions) -> Self {
        Self(Arc::new(ApiState {
            live,
            title: options.title.clone(),
            instance: options.instance.clone().unwrap_or_else(this_process),
            figures: options.figures.clone(),
            shedding: options.shedding.clone(),
            streams: Arc::new(Places::new(
                AdminOptions::MOST_STREAMS,
                AdminOptions::MOST_STREAMS_EACH,
            )),
            checks: Arc::new(Places::new(AdminOptions::MOST_CHECKS, 1)),
            changes: Arc::new(Places::new(AdminOptions::MOST_CHANGES, 2)),
            feed: Feed::new(),
            show_keys: options.show_keys,
            client_ip: options.client_ip.clone().unwrap_or_else(client_ip),
        }))
    }

    /// Returns the hashes of the clients that a text can name.
    pub(crate) fn hashes(&self, text: &str) -> Vec<String> {
        let clients = self.live.clients(text);
        clients.iter().map(|key| self.live.key_hash(key)).collect()
    }

    pub(crate) async fn version(&self, number: u64) -> Result<Version> {
        let version = self.live.version(number).await?;
        Ok(version.ok_or(RuleStoreError::UnknownVersion(number))?)
    }
}

impl FromRequestParts<Api> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        api: &Api,
    ) -> core::result::Result<Self, Infallible> {
        let head = RequestHead::from_parts(parts);
        Ok(Self(api.client_ip.address(&head)))
    }
}

impl FromRequestParts<Api> for ShowKeys {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let Query(ShowQuery { show_keys }) = Query::from_request_parts(parts, api).await?;
        if show_keys && !api.show_keys {
            let detail = "this server does not show readable keys: leave out show_keys, or set `allow_showing_keys`";
            return Err(Problem::new(ProblemKind::KeysHidden, detail));
        }
        if show_keys {
            let role = parts.extensions.get::<Role>().copied();
            metrics::record_shown_keys(role.unwrap_or(Role::Rules).as_str());
        }
        Ok(Self(show_keys))
    }
}

/// Refuses a check before its body is read, if too many are under way.
impl FromRequestParts<Api> for CheckPlace {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        if let Some(taken) = parts.extensions.get::<Self>() {
            return Ok(taken.clone());
        }
        let place = Self(place(&api.checks, parts, "checks and comparisons")?);
        parts.extensions.insert(place.clone());
        Ok(place)
    }
}

impl FromRequestParts<Api> for ChangePlace {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        place(&api.changes, parts, "changes of the rules").map(Self)
    }
}

fn place(places: &Arc<Places>, parts: &Parts, what: &str) -> Result<Arc<Place>> {
    let author = parts.extensions.get::<Author>();
    let author = author.map_or("", |author| author.0.as_str());
    let place = places.enter(author).ok_or_else(|| {
        let detail = format_args!(
            "too many {what} of your token, or of all tokens, are under way: wait for their end, also after a timeout"
        );
        Problem::new(ProblemKind::TooManyChecks, detail)
    });
    place.map(Arc::new)
}

/// Names this process by its host and its process number.
fn this_process() -> String {
    let number = std::process::id();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::env::var("HOSTNAME"))
        .or_else(|_| std::env::var("COMPUTERNAME")); // Windows
    match host.ok() {
        Some(host) => format!("{}, process {number}", host.trim()),
        None => format!("process {number}"),
    }
}
