#[cfg(feature = "pool")]
use deadpool_redis::Pool;
use redis::{ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, RedisError};

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
                if primary.is_empty() || hosts.contains(['?', '#']) {
                    let url = without_secrets(url);
                    return Err(RedisConfigError::NoPrimary { url });
                }
                let sentinels = each_host(scheme, hosts, "", Some(SENTINEL_PORT))?;
                Self::sentinels(sentinels, &format!("{scheme}://{primary}"), certificates)
            }
            Some(((scheme, "cluster"), rest)) => {
                let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
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
        let sentinels = addresses(sentinels, certificates)?;
        let primary = address(&primary, certificates)?;
        let name = link::host_of(&primary).unwrap_or_default();
        Ok(Self {
            name: format!("{name} of the sentinels"),
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

    pub(crate) fn has_tls(&self) -> bool {
        let address = match &self.servers {
            Servers::One(address) => Some(address),
            Servers::Sentinels { sentinels, .. } => sentinels.first(),
            Servers::Cluster { nodes, .. } => nodes.first(),
            #[cfg(feature = "pool")]
            Servers::Pool(_) => None,
        };
        address.is_some_and(|address| matches!(address.addr(), ConnectionAddr::TcpTls { .. }))
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
            url: format!("{scheme}://..."),
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
            url: without_secrets(url),
        });
    }
    if cfg!(not(feature = "tls")) && is_of_tls(url) {
        return Err(RedisConfigError::NoTls {
            url: without_secrets(url),
        });
    }
    let address = url
        .into_connection_info()
        .map_err(|error| RedisConfigError::Url {
            url: without_secrets(url),
            source: without_detail(error),
        })?;
    if link::host_of(&address).is_some_and(|host| host.contains(['%', ','])) {
        // A part of the password, or several hosts, which only clusters and sentinels have.
        return Err(RedisConfigError::Url {
            url: without_secrets(url),
            source: (
                ErrorKind::InvalidClientConfig,
                "the host has a % or a comma",
            )
                .into(),
        });
    }
    link::with_certificates(address, certificates)
        .map_err(|source| RedisConfigError::Certificate { source })
}

/// Returns the scheme of a URL, because a password may be in any place of a malformed URL.
fn without_secrets(url: &str) -> String {
    let known = [
        "redis", "rediss", "valkey", "valkeys", "unix", "sentinel", "cluster",
    ];
    match url.split_once("://") {
        Some((scheme, _)) if scheme.split('+').all(|part| known.contains(&part)) => {
            format!("{scheme}://...")
        }
        _ => "...".to_owned(),
    }
}

/// Replaces an error with a detail, which is a part of the URL.
fn without_detail(error: RedisError) -> RedisError {
    match error.detail() {
        Some(_) => (error.kind(), "a setting has an unknown value").into(),
        None => error,
    }
}

fn is_of_tls(url: &str) -> bool {
    let scheme = url.split(':').next().unwrap_or_default();
    ["rediss", "valkeys"].contains(&scheme.to_ascii_lowercase().as_str())
}

fn is_of_socket(url: &str) -> bool {
    url.split_once(':')
        .is_some_and(|(scheme, _)| scheme.to_ascii_lowercase().ends_with("unix"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_is_named_by_its_path() {
        for socket in ["redis+unix:///run/redis.sock", "UNIX:///run/a@1/redis.sock"] {
            let parsed = Location::parse(&format!("{socket}?pass=p@ss"), &Certificates::default());
            // The Redis client has such sockets on Unix only.
            let name = parsed.ok().map(|location| location.name);
            let path = socket.split_once("://").unwrap().1.to_owned();
            assert_eq!(name, cfg!(unix).then_some(path));
        }
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn tls_url_without_tls_names_feature() {
        for url in [
            "rediss://host",
            "VALKEYS://host",
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

    /// Returns forms of URLs with a host and a password, for each scheme and each mistake.
    fn forms(password: &str) -> Vec<String> {
        let schemes = [
            "redis://",
            "REDISS://",
            "valkeys://",
            "unix://",
            "redis+unix://",
            "redis+sentinel://",
            "rediss+sentinel://",
            "redis+cluster://",
            "valkey+cluster://",
            "http://",
            "redis:",
            "",
        ];
        let authorities = [
            "u:P@h",
            ":P@h",
            "P@h",
            "u:P@h,i",
            "h,u:P@i",
            "u:P@h,u:P@i",
            "u:P@[::1",
            "u:P@h:port",
            "u:P%40h",
            "u:P%40h,i",
            "/run/x?pass=P",
            "/run/x?pass=P&db=x",
            "/run/x?user=u&pass=P@h",
            "h",
            "h:1,i:2",
        ];
        let ends = [
            "",
            "/",
            "/0",
            "/x",
            "/m",
            "/m/0",
            "/m/x",
            "/u:P@m",
            "/u:P@m/0",
            "/:P@m/x",
            "/u:P%40m",
            "?password=P",
            "/?password=P",
            "/0?protocol=P",
            "?protocol=resp9?password=P",
            "/m?protocol=resp9&password=P",
            "/m/0?password=P",
            "#P",
            "/0#P",
            "/m#P",
            " P",
            "\\P",
        ];
        let mut forms = Vec::new();
        for scheme in schemes {
            for authority in authorities {
                for end in ends {
                    let form = format!("{authority}{end}").replace('P', password);
                    forms.push(format!("{scheme}{form}"));
                }
            }
        }
        forms
    }

    #[test]
    fn urls_show_no_part_of_password() {
        let mut leaks = Vec::new();
        let between = [
            "", "/", "?", "#", "@", ",", ":", "%", "&", "=", "[", "]", " ", "\\", ";", "+", "//",
            "://", "%40", "%2F", "%zz", "/@", "?@", "@/", "@,", ",@", "@ ", "/,", "?,", "#,", "\n",
        ];
        for between in between {
            for form in forms(&format!("HUNTER{between}SESAME")) {
                // The text after the last @ is a host, so this URL may be right.
                if form.ends_with("@SESAME") {
                    continue;
                }
                let shown = match Location::parse(&form, &Certificates::default()) {
                    Ok(location) => location.name,
                    Err(error) => format!("{error} {error:?}"),
                };
                let shown = shown.to_uppercase();
                if shown.contains("HUNTER") || shown.contains("SESAME") {
                    leaks.push(format!("{form} shows {shown}"));
                }
            }
        }
        assert!(
            leaks.is_empty(),
            "{} leaks: {:#?}",
            leaks.len(),
            &leaks[..leaks.len().min(20)]
        );
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
        assert_eq!(location.name, "mymaster of the sentinels");
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
