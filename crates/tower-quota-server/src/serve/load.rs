//! Loads everything that a server needs, and collects all errors.

use std::fs;
use std::path::{Path, PathBuf};

use tower_quota_redis::{RedisOptions, RedisStore};

use super::connections::Protocol;
use super::error::{StartError, StartErrors};
use super::parts::{Documents, Parts};
use crate::envoy::{EnvoyConfig, EnvoyDoor, EnvoyFiles, Problems};
use crate::options::{ConfigType, Foreign, Options, StoreFlags, TlsFiles, foreign};
use crate::store::ServerStore;
use crate::tls::{Certificates, LastRead};

/// What a server has loaded.
pub(super) struct Loaded {
    pub(super) parts: Parts,
    pub(super) files: Option<LoadedFiles>,
    pub(super) grpc: Option<(Certificates, LastRead)>,
    pub(super) http: Option<(Certificates, LastRead)>,
    pub(super) admin: Option<(Certificates, LastRead)>,
}

/// The files with the limits of Envoy, and what they say.
pub(super) struct LoadedFiles {
    pub(super) folder: PathBuf,
    pub(super) files: EnvoyFiles,
    pub(super) limits: Result<(usize, usize), Problems>,
}

impl Loaded {
    /// Loads what the flags name. A check keeps away from Redis, and writes no copy of documents.
    pub(super) async fn load(options: &Options, is_check: bool) -> Result<Self, StartErrors> {
        let mut errors = StartErrors::default();
        for foreign in foreign(|name| std::env::var(name).ok()) {
            match foreign {
                Foreign::Error(message) => errors.add(StartError::Flags(message)),
                Foreign::Note(message) => tracing::warn!("{message}"),
            }
        }
        let opened = open_files(options);
        let (files, config) = errors.unless(opened).flatten().unzip();
        let has_limits = files.is_some() || options.rules.rules.is_some();
        if !has_limits && options.envoy.folder().is_none() {
            errors.add(StartError::NoLimits);
        }
        let store = errors.unless(open_store(&options.store).await);
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
            Some(store) => errors
                .unless(Documents::open(&rules, store, options.store.deadline).await)
                .flatten(),
            None => None,
        };
        let flags = &options.tls;
        let mut certificates =
            |port, files: Result<Option<TlsFiles>, String>, protocol: Protocol| {
                let opened = files.map_err(StartError::Flags).and_then(|files| {
                    let opened = files.map(|files| Certificates::open(files, protocol.alpn()));
                    opened
                        .transpose()
                        .map_err(|error| StartError::Tls { port, error })
                });
                errors.unless(opened).flatten()
            };
        let grpc = certificates("grpc", flags.grpc(), Protocol::Grpc);
        let http = certificates("http", flags.http(), Protocol::Http);
        let admin = certificates("admin", flags.admin(), Protocol::Admin);
        let Some(store) = store.filter(|_| errors.is_empty()) else {
            return Err(errors);
        };
        let mut settings = options.envoy.options();
        settings.deadline = options.store.deadline;
        let envoy = config.map(|config| EnvoyDoor::new(config, store.cached().clone(), settings));
        Ok(Self {
            parts: Parts {
                store,
                envoy,
                documents,
            },
            files,
            grpc,
            http,
            admin,
        })
    }
}

/// Opens the files with the limits of Envoy. Unusable files are an error, unless the server may start without limits.
fn open_files(options: &Options) -> Result<Option<(LoadedFiles, EnvoyConfig)>, StartError> {
    let flags = &options.envoy;
    let Some(folder) = flags.folder() else {
        return match flags.config_type {
            ConfigType::File => Ok(None),
            ConfigType::GrpcXdsSotw => Err(StartError::Flags(
                "--config-type GRPC_XDS_SOTW (CONFIG_TYPE) is not supported yet: give --envoy PATH"
                    .into(),
            )),
        };
    };
    let (files, opened) = EnvoyFiles::watch(&folder, flags.merge_domains);
    let (config, limits) = match opened {
        Ok(config) => {
            let limits = (config.domains(), config.limits());
            (config, Ok(limits))
        }
        Err(problems) if flags.start_without_limits => (EnvoyConfig::default(), Err(problems)),
        Err(problems) => return Err(StartError::Limits { folder, problems }),
    };
    let files = LoadedFiles {
        folder,
        files,
        limits,
    };
    Ok(Some((files, config)))
}

async fn open_store(flags: &StoreFlags) -> Result<ServerStore, StartError> {
    let options = redis_options(flags)?;
    Ok(ServerStore::open(flags.redis_url().as_deref(), options, flags.lease).await?)
}

fn redis_options(flags: &StoreFlags) -> Result<RedisOptions, StartError> {
    let mut options = RedisStore::options()
        .deadline(flags.deadline)
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

fn read(flag: &str, path: &Path) -> Result<Vec<u8>, StartError> {
    fs::read(path).map_err(|error| {
        let path = path.display();
        StartError::Flags(format!(
            "{flag}: {path}: {error}: check the path and its permissions"
        ))
    })
}
