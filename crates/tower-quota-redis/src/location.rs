#[cfg(feature = "pool")]
use deadpool_redis::Pool;
use redis::ConnectionInfo;

use crate::config_error::RedisConfigError;
use crate::link::{self, Certificates, Link, LinkSettings, Servers};

const SENTINEL_PORT: u16 = 26_379;

#[derive(Clone)]
pub(crate) struct Location {
    pub(crate) name: String,
    pub(crate) servers: Servers,
}

impl Location {
    pub(crate) fn parse(url: &str, certificates: &Certificates) -> Result<Self, RedisConfigError> {
        match url
            .split_once("://")
            .and_then(|(scheme, rest)| Some((scheme.split_once('+')?, rest)))
        {
            Some(((scheme, "sentinel"), rest)) => {
                let (hosts, primary) = rest.split_once('/').unwrap_or((rest, ""));
                if primary.is_empty() {
                    let url = without_credentials(url);
                    return Err(RedisConfigError::NoPrimary { url });
                }
                let sentinels = each_host(scheme, hosts, "", Some(SENTINEL_PORT))?;
                Self::sentinels(sentinels, &format!("{scheme}://{primary}"), certificates)
            }
            Some(((scheme, "cluster"), rest)) => {
                let end = rest.find(['/', '?']).unwrap_or(rest.len());
                let (hosts, settings) = rest.split_at(end);
                Self::cluster(each_host(scheme, hosts, settings, None)?, certificates)
            }
            _ => Ok(Self::server(address(url, certificates)?)),
        }
    }

    pub(crate) fn server(server: ConnectionInfo) -> Self {
        Self {
            name: server.addr().to_string(),
            servers: Servers::One(server),
        }
    }

    /// Takes a name, or a URL with the name in place of the host.
    pub(crate) fn sentinels(
        sentinels: impl IntoIterator<Item = impl AsRef<str>>,
        primary: &str,
        certificates: &Certificates,
    ) -> Result<Self, RedisConfigError> {
        let primary = if primary.contains("://") {
            primary.to_owned()
        } else {
            format!("redis://{primary}/")
        };
        let name = without_credentials(&primary);
        let (sentinels, primary) = (
            addresses(sentinels, certificates)?,
            address(&primary, certificates)?,
        );
        Ok(Self {
            name,
            servers: Servers::Sentinels { sentinels, primary },
        })
    }

    pub(crate) fn cluster(
        nodes: impl IntoIterator<Item = impl AsRef<str>>,
        certificates: &Certificates,
    ) -> Result<Self, RedisConfigError> {
        let nodes = addresses(nodes, certificates)?;
        let names: Vec<String> = nodes.iter().map(|node| node.addr().to_string()).collect();
        let name = format!("the cluster of {}", names.join(", "));
        Ok(Self {
            name,
            servers: Servers::Cluster {
                nodes,
                certificates: certificates.clone(),
            },
        })
    }

    #[cfg(feature = "pool")]
    pub(crate) fn pool(pool: Pool) -> Self {
        Self {
            name: "the pool".to_owned(),
            servers: Servers::Pool(pool),
        }
    }

    pub(crate) fn link(&self, settings: LinkSettings) -> Result<Link, RedisConfigError> {
        Link::new(self.servers.clone(), settings).map_err(|source| RedisConfigError::Url {
            url: self.name.clone(),
            source,
        })
    }
}

fn each_host(
    scheme: &str,
    hosts: &str,
    settings: &str,
    port: Option<u16>,
) -> Result<Vec<String>, RedisConfigError> {
    let (credentials, hosts) = hosts.rsplit_once('@').unwrap_or(("", hosts));
    if credentials.contains('@') && credentials.contains(',') {
        // Refuse a second user, because the client would read it as a part of the first password.
        return Err(RedisConfigError::RepeatedUser {
            url: format!("{scheme}://...@{hosts}"),
        });
    }
    let at = if credentials.is_empty() { "" } else { "@" };
    let url = |host: &str| {
        // Skip the brackets, because colons within belong to an IPv6 address.
        let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
        let port = port
            .filter(|_| !has_port)
            .map(|port| format!(":{port}"))
            .unwrap_or_default();
        format!("{scheme}://{credentials}{at}{host}{port}{settings}")
    };
    Ok(hosts.split(',').map(url).collect())
}

fn addresses(
    urls: impl IntoIterator<Item = impl AsRef<str>>,
    certificates: &Certificates,
) -> Result<Vec<ConnectionInfo>, RedisConfigError> {
    urls.into_iter()
        .map(|url| address(url.as_ref(), certificates))
        .collect()
}

fn address(url: &str, certificates: &Certificates) -> Result<ConnectionInfo, RedisConfigError> {
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    let ends_early = rest
        .split_once(['/', '?', '#'])
        .is_some_and(|(_, settings)| settings.contains('@'));
    if ends_early && !is_of_socket(url) {
        return Err(RedisConfigError::Unencoded {
            url: without_credentials(url),
        });
    }
    if cfg!(not(feature = "tls")) && url.starts_with("rediss:") {
        return Err(RedisConfigError::NoTls {
            url: without_credentials(url),
        });
    }
    link::address(url, certificates).map_err(|source| RedisConfigError::Url {
        url: without_credentials(url),
        source,
    })
}

/// Returns the scheme and the host of a URL, or the path of a socket.
fn without_credentials(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let separator = if scheme.is_empty() { "" } else { "://" };
    let is_path = is_of_socket(url) && (rest.starts_with('/') || scheme.is_empty());
    let before_settings = rest.split('?').next().unwrap_or_default();
    let shown = match rest.rsplit_once('@') {
        _ if is_path => before_settings.to_owned(),
        None if link::address(url, &Certificates::default()).is_ok() => before_settings.to_owned(),
        Some((before, host)) if !before.contains('?') => {
            format!("...@{}", host.split('?').next().unwrap_or_default())
        }
        // Hide everything. The @ may belong to a password among the settings, or may be encoded
        // behind a password.
        _ => "...".to_owned(),
    };
    format!("{scheme}{separator}{shown}")
}

fn is_of_socket(url: &str) -> bool {
    url.split_once(':')
        .is_some_and(|(scheme, _)| scheme.to_ascii_lowercase().ends_with("unix"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_is_shown_without_credentials() {
        assert_eq!(without_credentials("redis://host:1/0"), "redis://host:1/0");
        assert_eq!(
            without_credentials("redis://:pa@ss@host"),
            "redis://...@host"
        );
        assert_eq!(without_credentials("user:pass@host"), "...@host");
        assert_eq!(
            without_credentials("redis://user:pass%40host:1"),
            "redis://..."
        );
        assert_eq!(
            without_credentials("redis://:pass@host/?protocol=resp3"),
            "redis://...@host/"
        );
        for socket in [
            "redis+unix:///run/redis.sock",
            "UNIX:///run/a@1/redis.sock",
            "unix:/run/redis.sock",
        ] {
            let url = format!("{socket}?pass=p@ss");
            assert_eq!(without_credentials(&url), socket);
            let parsed = Location::parse(&url, &Certificates::default());
            // The Redis client has such sockets on Unix only.
            assert_eq!(parsed.is_ok(), cfg!(unix), "{url}");
        }
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn tls_url_without_tls_names_feature() {
        for url in [
            "rediss://host",
            "rediss+cluster://host",
            "rediss+sentinel://host/primary",
        ] {
            let error = Location::parse(url, &Certificates::default())
                .err()
                .unwrap();
            assert!(matches!(error, RedisConfigError::NoTls { .. }), "{error:?}");
            assert!(error.to_string().contains("\"tls\""), "{error}");
        }
    }

    #[test]
    fn errors_of_urls_show_no_password() {
        for url in [
            "redis+sentinel://finder:s3cr/et@one/mymaster",
            "redis+sentinel://finder:s3cr?et@one/mymaster",
            "redis+sentinel://finder:s3cr#et@one/mymaster",
            "redis+sentinel://one/app:s3cr/et@mymaster",
            "redis+sentinel://one/app:s3cr?et@mymaster",
            "redis+cluster://finder:s3cr?et@one",
            "redis+cluster://finder:s3cr#et@one",
            "redis+cluster://finder:s3cr,et@one:x",
            "redis+cluster://finder:s3cr/et@one",
            "redis://finder:s3cr/et@one",
            "redis+unix:///run/redis.sock?db=cache&pass=s3cret",
            "redis+unix://run/redis.sock?pass=s3cret",
            "redis+unix://:s3cret@127.0.0.1",
            "redis:///run/x?user=u&pass=a@s3cret",
            "redis://:s3cr?et@host:port",
            "redis://limiter:s3cret%40host:6379",
            "redis+unix://:s3cret%40host",
            "redis+cluster://limiter:s3cret%40one:1,two:2",
            "redis+sentinel://finder:s3cret%40one/mymaster",
            "redis+sentinel://one/limiter:s3cret%40mymaster",
            "redis+sentinel://finder:s3cret%40one",
            "limiter:s3cret%40host:6379",
        ] {
            let error = Location::parse(url, &Certificates::default())
                .err()
                .unwrap();
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("s3cr"), "{shown}");
        }
    }

    #[test]
    fn password_that_ends_early_is_refused() {
        for (character, encoded) in [('?', "%3F"), ('#', "%23"), ('/', "%2F")] {
            // The user would be taken for the host, and the beginning of the password for its port.
            let error = Location::parse(
                &format!("redis://app:12{character}34@one:1/"),
                &Certificates::default(),
            )
            .err()
            .unwrap();
            assert!(
                matches!(error, RedisConfigError::Unencoded { .. }),
                "{error:?}"
            );
            let shown = format!("{error} {error:?}");
            assert!(
                shown.contains(encoded) && !shown.contains("app") && !shown.contains("34"),
                "{shown}"
            );
            let Location { servers, .. } = Location::parse(
                &format!("redis://app:12{encoded}34@one:1/"),
                &Certificates::default(),
            )
            .unwrap();
            let Servers::One(server) = servers else {
                panic!("one server")
            };
            assert_eq!(
                server.redis_settings().password(),
                Some(&*format!("12{character}34"))
            );
        }
    }

    #[test]
    fn url_of_sentinels_names_all_parts() {
        let location = Location::parse(
            "redis+sentinel://a:b@one,two:7,[::1]/c:d@mymaster/2",
            &Certificates::default(),
        )
        .unwrap();
        assert_eq!(location.name, "redis://...@mymaster/2");
        let Servers::Sentinels { sentinels, primary } = location.servers else {
            panic!("no sentinels")
        };
        let shown: Vec<String> = sentinels
            .iter()
            .map(|sentinel| sentinel.addr().to_string())
            .collect();
        assert_eq!(shown, ["one:26379", "two:7", "::1:26379"]);
        assert!(
            sentinels
                .iter()
                .all(|sentinel| sentinel.redis_settings().username() == Some("a"))
        );
        let settings = primary.redis_settings();
        assert_eq!(
            (settings.username(), settings.password(), settings.db()),
            (Some("c"), Some("d"), 2)
        );
        for url in ["redis+sentinel://one", "redis+sentinel://secret@one/"] {
            let error = Location::parse(url, &Certificates::default())
                .err()
                .unwrap();
            assert!(
                matches!(error, RedisConfigError::NoPrimary { .. }),
                "{error:?}"
            );
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn url_of_cluster_names_each_node() {
        let location = Location::parse(
            "redis+cluster://a:b@one:1,two:2/?protocol=resp3",
            &Certificates::default(),
        )
        .unwrap();
        assert_eq!(location.name, "the cluster of one:1, two:2");
        let Servers::Cluster { nodes, .. } = location.servers else {
            panic!("no cluster")
        };
        assert!(
            nodes
                .iter()
                .all(|node| node.redis_settings().password() == Some("b"))
        );
        assert!(Location::parse("redis+ring://one", &Certificates::default()).is_err());
        let error = Location::parse(
            "redis+cluster://a:secret@one,a:secret@two",
            &Certificates::default(),
        )
        .err()
        .unwrap();
        assert!(
            matches!(error, RedisConfigError::RepeatedUser { .. }),
            "{error:?}"
        );
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
