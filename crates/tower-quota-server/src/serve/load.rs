//! Loads everything that a server needs, and collects all errors.

use std::collections::HashMap;

use tower_quota_redis::{RedisOptions, RedisStore};

use super::connections::Protocol;
use super::error::StartError;
use super::parts::{Documents, Parts};
use crate::envoy::{EnvoyConfig, EnvoyDoor, EnvoySource, Problems};
use crate::file::read;
use crate::options::{ConfigType, Options, StoreFlags, TlsFlags, unsupported, without_effect};
use crate::store::ServerStore;
use crate::tls::Certificates;

/// What a server has loaded.
pub(super) struct Loaded {
    pub(super) parts: Parts,
    pub(super) source: Option<LoadedSource>,
    /// The certificates of each port with TLS.
    pub(super) certificates: HashMap<&'static str, Certificates>,
}

/// The source of the limits of Envoy, and what it has said first.
pub(super) struct LoadedSource {
    pub(super) place: String,
    pub(super) source: EnvoySource,
    /// The first limits. An xDS server is asked while the server serves.
    pub(super) first: Option<Result<EnvoyConfig, Problems>>,
}

impl LoadedSource {
    /// Returns the place with the numbers of domains and limits.
    pub(super) fn summary(&self) -> String {
        let place = &self.place;
        match &self.first {
            Some(Ok(config)) => format!(
                "{place} (domains: {}, limits: {})",
                config.domains(),
                config.limits()
            ),
            Some(Err(_)) | None => format!("{place} (no limits yet)"),
        }
    }
}

impl Loaded {
    /// Loads what the flags name. A check keeps away from Redis, and writes no copy of documents.
    pub(super) async fn load(options: &Options, is_check: bool) -> Result<Self, StartError> {
        let mut errors = StartError::default();
        let variable = |name: &str| std::env::var(name).ok();
        for error in unsupported(variable) {
            errors.add(error);
        }
        for name in without_effect(variable) {
            tracing::warn!("{name} has no effect: read docs/reference/server.md for the reason");
        }
        let opened = open_source(options, is_check).await;
        if let (Ok(None), None) = (&opened, &options.rules.rules) {
            errors.add(
                "there are no limits to serve: give --rules PATH, --envoy PATH, or RUNTIME_ROOT",
            );
        }
        let source = errors.unless(opened).flatten();
        let store = errors.unless(open_store(&options.store).await);
        if options.rules.are_in_redis() && options.store.redis.is_none() {
            errors.add("--rules redis (TOWER_QUOTA_RULES) needs a Redis: give --redis URL");
        }
        let mut rules = options.rules.clone();
        if is_check {
            rules.rules_copy = None;
            rules.rules = rules.rules.filter(|_| !options.rules.are_in_redis());
        }
        let store = match (store, is_check) {
            (Some(store), false) => Some(store),
            _ => errors.unless(ServerStore::open(None, RedisStore::options(), None).await),
        };
        let documents = match &store {
            Some(store) => {
                let connections = options.ports.http_connections;
                let opened =
                    Documents::open(&rules, store, options.store.deadline, connections).await;
                let opened =
                    opened.map_err(|error| format!("--rules (TOWER_QUOTA_RULES): {error}"));
                errors.unless(opened).flatten()
            }
            None => None,
        };
        let mut certificates = HashMap::new();
        for protocol in [Protocol::Grpc, Protocol::Http, Protocol::Admin] {
            let opened = open_certificates(&options.tls, protocol);
            if let Some(opened) = errors.unless(opened).flatten() {
                certificates.insert(protocol.name(), opened);
            }
        }
        let Some(store) = store.filter(|_| errors.is_empty()) else {
            return Err(errors);
        };
        let mut settings = options.envoy.answers.clone();
        settings.deadline = options.store.deadline;
        let envoy = source
            .as_ref()
            .map(|_| EnvoyDoor::new(EnvoyConfig::default(), store.store().clone(), settings));
        Ok(Self {
            parts: Parts {
                store,
                envoy,
                documents,
            },
            source,
            certificates,
        })
    }
}

/// Opens the source of the limits of Envoy. Unusable files are an error, unless the server may start without limits.
async fn open_source(options: &Options, is_check: bool) -> Result<Option<LoadedSource>, String> {
    let flags = &options.envoy;
    if let Some(folder) = flags.folder() {
        let mut source = EnvoySource::files(&folder, flags.merge_domains);
        let first = source.next().await;
        return match first {
            Err(problems) if is_check || !flags.start_without_limits => {
                let place = folder.display();
                Err(format!("the limits in {place} cannot be used\n{problems}"))
            }
            first => Ok(Some(LoadedSource {
                place: folder.display().to_string(),
                source,
                first: Some(first),
            })),
        };
    }
    if flags.config_type == ConfigType::File {
        return Ok(None);
    }
    let source = EnvoySource::xds(&options.xds, flags.merge_domains);
    let source = source.map_err(|problems| problems.to_string())?;
    Ok(Some(LoadedSource {
        place: format!("the xDS server {}", options.xds.server),
        source,
        first: None,
    }))
}

fn open_certificates(flags: &TlsFlags, protocol: Protocol) -> Result<Option<Certificates>, String> {
    let port = protocol.name();
    let Some(files) = flags.files(port)? else {
        return Ok(None);
    };
    let opened = Certificates::open(files, protocol.alpn());
    opened.map(Some).map_err(|error| {
        format!("--{port}-tls-cert, --{port}-tls-key, --{port}-tls-client-ca: {error}")
    })
}

async fn open_store(flags: &StoreFlags) -> Result<ServerStore, String> {
    let options = redis_options(flags)?;
    let opened = ServerStore::open(flags.redis_url().as_deref(), options, flags.lease).await;
    opened.map_err(|error| error.to_string())
}

fn redis_options(flags: &StoreFlags) -> Result<RedisOptions, String> {
    let read = |flag: &str, path| read(path).map_err(|error| format!("{flag}: {error}"));
    // Redis ends first. If a door left the call before, the units of an answer just in time would stay taken.
    let mut options = RedisStore::options()
        .deadline(flags.deadline / 8 * 7)
        .prefix(&flags.prefix);
    if let Some(path) = &flags.redis_tls_ca {
        options = options.root_certificates(read("--redis-tls-ca (REDIS_TLS_CACERT)", path)?);
    }
    if let (Some(certificate), Some(key)) = (&flags.redis_tls_cert, &flags.redis_tls_key) {
        options = options.client_certificate(
            read("--redis-tls-cert (REDIS_TLS_CLIENT_CERT)", certificate)?,
            read("--redis-tls-key (REDIS_TLS_CLIENT_KEY)", key)?,
        );
    }
    Ok(options)
}
