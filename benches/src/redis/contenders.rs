//! The contenders over Redis, and the limits of the requests.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo, Pipeline, Script};
use tower_quota_core::{Charge, Key, Name, Quota, Store};
use tower_quota_redis::RedisStore;

use crate::Outcome;

pub(super) const TOWER_QUOTA: &str = "tower-quota";
pub(super) const SCRIPT: &str = "a script per limit";
pub(super) const LIMITADOR: &str = "limitador, exact";

/// A deadline that no decision misses on a busy machine.
pub(super) const DEADLINE: Duration = Duration::from_secs(5);

/// The script of the peers, the usual GCRA limiter: one limit, one key, one call.
///
/// `KEYS[1]` is the counter. `ARGV` has the emission interval and the burst tolerance in microseconds.
const GCRA: &str = "
local interval, tolerance = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local arrival = tonumber(redis.call('GET', KEYS[1])) or now
if arrival < now then arrival = now end
if arrival - now > tolerance then
  return { 0, 0, arrival - now - tolerance }
end
arrival = arrival + interval
redis.call('SET', KEYS[1], string.format('%.0f', arrival), 'PX', math.ceil((arrival - now) / 1000))
return { 1, math.floor((tolerance + interval - (arrival - now)) / interval), 0 }
";

/// A contender.
#[derive(Clone)]
pub(super) enum Limiter {
    TowerQuota(RedisStore),
    /// The peer's connection, and the name of its script.
    Script(MultiplexedConnection, String),
    #[cfg(feature = "limitador")]
    Limitador(std::sync::Arc<limitador::AsyncRateLimiter>),
}

impl Limiter {
    /// Connects all contenders.
    pub(super) async fn all(url: &str) -> Outcome<Vec<(&'static str, Self)>> {
        Ok(Vec::from([
            (TOWER_QUOTA, Self::tower_quota(url, DEADLINE).await?),
            (SCRIPT, Self::script(url, DEADLINE).await?),
            #[cfg(feature = "limitador")]
            (LIMITADOR, limitador(url).await?),
        ]))
    }

    /// Connects tower-quota.
    pub(super) async fn tower_quota(url: &str, deadline: Duration) -> Outcome<Self> {
        let options = RedisStore::options().deadline(deadline);
        Ok(Self::TowerQuota(options.connect(url).await?))
    }

    /// Connects the script per limit.
    pub(super) async fn script(url: &str, deadline: Duration) -> Outcome<Self> {
        let (connection, sha) = connect(url, deadline, GCRA).await?;
        Ok(Self::Script(connection, sha))
    }

    /// Decides a request. Returns whether there was an answer.
    pub(super) async fn decide(&self, shape: &'static Shape, draw: u64) -> bool {
        match self {
            Self::TowerQuota(store) => tower_quota(store, shape, draw).await,
            Self::Script(connection, sha) => {
                script_per_limit(&mut connection.clone(), sha, shape, draw).await
            }
            #[cfg(feature = "limitador")]
            Self::Limitador(limiter) => ask_limitador(limiter, shape, draw).await,
        }
    }
}

/// Opens a peer's connection, with TCP_NODELAY as tower-quota's, and loads its script. Returns its name too.
pub(crate) async fn connect(
    url: &str,
    deadline: Duration,
    script: &str,
) -> Outcome<(MultiplexedConnection, String)> {
    let settings = redis::io::tcp::TcpSettings::default().set_nodelay(true);
    let info = url.into_connection_info()?.set_tcp_settings(settings);
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(deadline));
    let mut connection = Client::open(info)?
        .get_multiplexed_async_connection_with_config(&config)
        .await?;
    let script = Script::new(script);
    script.prepare_invoke().load_async(&mut connection).await?;
    Ok((connection, script.get_hash().to_owned()))
}

/// Decides all limits at once with tower-quota.
async fn tower_quota(store: &RedisStore, shape: &'static Shape, draw: u64) -> bool {
    let (client, asks) = shape.request(draw);
    let (client, team, everyone) = (
        Key::number(Name::new(shape.scope), client),
        Key::number(Name::new("team"), client / 2),
        Key::EVERYONE,
    );
    let charges: [Charge<'_>; 4] = std::array::from_fn(|ask| {
        let ask = &asks[ask.min(asks.len() - 1)];
        let key = match ask.by {
            By::Client => &client,
            By::Team => &team,
            By::Everyone => &everyone,
        };
        Charge::new(Name::new(ask.name), &ask.quota, key)
    });
    store.check(&charges[..asks.len()]).await.is_ok()
}

/// Calls a script per limit with redis-rs, all sent together.
async fn script_per_limit(
    connection: &mut MultiplexedConnection,
    sha: &str,
    shape: &'static Shape,
    draw: u64,
) -> bool {
    let (client, asks) = shape.request(draw);
    let mut calls = Pipeline::with_capacity(asks.len());
    for ask in asks {
        let counter = match ask.by {
            By::Client => client,
            By::Team => client / 2,
            By::Everyone => 0,
        };
        let key = format!("{}:{}:{counter:016}", shape.scope, ask.name);
        let interval = ask.period / ask.units;
        let tolerance = ask.period - interval;
        calls
            .cmd("EVALSHA")
            .arg(sha)
            .arg(1)
            .arg(key)
            .arg(interval)
            .arg(tolerance);
    }
    calls
        .query_async::<Vec<(u8, u64, u64)>>(connection)
        .await
        .is_ok()
}

/// limitador with its Redis storage, as its server uses it: it reads counters in one command and updates them in a
/// pipeline of one script call per limit.
#[cfg(feature = "limitador")]
async fn limitador(url: &str) -> Outcome<Limiter> {
    use limitador::limit::Limit;
    use limitador::storage::redis::AsyncRedisStorage;

    let storage = AsyncRedisStorage::new(url).await?;
    let limiter = limitador::AsyncRateLimiter::new_with_storage(Box::new(storage));
    // What limitador calls a namespace is a list of limits.
    for shape in [&ONE, &THREE] {
        for ask in shape.request(0).1 {
            let variables = vec!["user".try_into()?];
            let seconds = ask.period / 1_000_000;
            limiter.add_limit(Limit::new(
                shape.scope,
                ask.units,
                seconds,
                vec![],
                variables,
            ));
        }
    }
    Ok(Limiter::Limitador(std::sync::Arc::new(limiter)))
}

#[cfg(feature = "limitador")]
async fn ask_limitador(
    limiter: &limitador::AsyncRateLimiter,
    shape: &'static Shape,
    draw: u64,
) -> bool {
    use limitador::limit::Context;

    let (client, _) = shape.request(draw);
    let variables = [("user".to_owned(), format!("{client:016}"))];
    let context = Context::from(std::collections::HashMap::from(variables));
    limiter
        .check_rate_limited_and_update(&shape.scope.into(), &context, 1)
        .await
        .is_ok()
}

/// One limit of a request.
struct Ask {
    name: &'static str,
    quota: Quota,
    units: u64,
    /// Microseconds.
    period: u64,
    by: By,
}

/// Who is counted. A team is two clients.
enum By {
    Client,
    Team,
    Everyone,
}

const fn ask(name: &'static str, units: u64, seconds: u64) -> Ask {
    Ask {
        name,
        quota: Quota::new(units, Duration::from_secs(seconds)),
        units,
        period: seconds * 1_000_000,
        by: By::Client,
    }
}

const fn windows(quota: Quota, ask: Ask) -> Ask {
    Ask { quota, ..ask }
}

const fn by(by: By, ask: Ask) -> Ask {
    Ask { by, ..ask }
}

/// The requests of a row.
pub(super) struct Shape {
    /// The scope of the clients' keys. Each shape has its own, so that rows share no entries.
    scope: &'static str,
    clients: u64,
    /// The limits of a request. Requests with different ones are equally likely.
    sets: &'static [&'static [Ask]],
}

impl Shape {
    /// Returns whether `limitador` has the limits of these requests.
    pub(super) fn is_known_to_limitador(&self) -> bool {
        [ONE.scope, THREE.scope].contains(&self.scope)
    }

    /// Returns the client and the limits of a random number's request.
    fn request(&self, draw: u64) -> (u64, &'static [Ask]) {
        let (client, draw) = (draw % self.clients, draw / self.clients);
        (client, self.sets[draw as usize % self.sets.len()])
    }
}

/// Rates that nearly never refuse, so that all contenders do their full work. A request is forgotten within 36 ms, so
/// most requests find a full bucket.
static SHORT: [Ask; 3] = [
    ask("second", 1_000, 1),
    ask("minute", 10_000, 60),
    ask("hour", 100_000, 3_600),
];
/// Quotas that remember a request for a minute or longer: requests find what earlier ones have left.
static LASTING: [Ask; 3] = [
    ask("hour", 6_000, 360_000),
    ask("day", 14_400, 864_000),
    ask("week", 50_400, 6_048_000),
];
static WITH_LOGIN: [Ask; 4] = [
    ask("hour", 6_000, 360_000),
    ask("day", 14_400, 864_000),
    ask("week", 50_400, 6_048_000),
    ask("login", 28_800, 1_728_000),
];

/// One limit.
pub(super) static ONE: Shape = Shape {
    scope: "one",
    clients: 1_000_000,
    sets: &[&[ask("second", 1_000, 1)]],
};
/// Three limits on one key.
pub(super) static THREE: Shape = Shape {
    scope: "three",
    clients: 1_000_000,
    sets: &[&SHORT],
};
/// Three limits, two of them on one key and one on another.
pub(super) static TWO_KEYS: Shape = Shape {
    scope: "two",
    clients: 1_000_000,
    sets: &[&[
        ask("second", 1_000, 1),
        ask("minute", 10_000, 60),
        by(By::Team, ask("hour", 100_000, 3_600)),
    ]],
};
/// The limits of README, by few clients who return often. The limit of everyone is so high that no request is refused.
pub(super) static README: Shape = Shape {
    scope: "readme",
    clients: 20_000,
    sets: &[&[
        ask("burst", 20, 2),
        ask("hour", 1_000, 3_600),
        by(By::Everyone, ask("everyone", 1_000_000, 1)),
    ]],
};
/// Three limits on one key, by few clients who return often.
pub(super) static RETURNING: Shape = Shape {
    scope: "lasting",
    clients: 20_000,
    sets: &[&LASTING],
};
/// The same, and one request in ten has a fourth limit.
pub(super) static MIXED: Shape = Shape {
    scope: "mixed",
    clients: 20_000,
    sets: &[
        &WITH_LOGIN,
        &LASTING,
        &LASTING,
        &LASTING,
        &LASTING,
        &LASTING,
        &LASTING,
        &LASTING,
        &LASTING,
        &LASTING,
    ],
};
/// The same, and half of the requests come with earlier quotas of all limits.
pub(super) static QUOTAS_IN_TURN: Shape = Shape {
    scope: "turns",
    clients: 20_000,
    sets: &[
        &LASTING,
        &[
            ask("hour", 12_000, 360_000),
            ask("day", 12_000, 864_000),
            ask("week", 100_800, 6_048_000),
        ],
    ],
};
/// One limit of a request, by few clients who return often and are never refused.
pub(super) static BUCKET: Shape = Shape {
    scope: "bucket",
    clients: 1_000,
    sets: &[&[ask("hour", 1_000_000, 3_600)]],
};
pub(super) static THREE_BUCKETS: Shape = Shape {
    scope: "buckets",
    clients: 1_000,
    sets: &[&[
        ask("hour", 1_000_000, 3_600),
        ask("day", 2_400_000, 86_400),
        ask("week", 4_200_000, 604_800),
    ]],
};
pub(super) static FIXED_WINDOW: Shape = Shape {
    scope: "fixed",
    clients: 1_000,
    sets: &[&[windows(
        Quota::per_hour(1_000_000).fixed_window(),
        ask("hour", 1_000_000, 3_600),
    )]],
};
pub(super) static SLIDING_WINDOW: Shape = Shape {
    scope: "sliding",
    clients: 1_000,
    sets: &[&[windows(
        Quota::per_hour(1_000_000).sliding_window(),
        ask("hour", 1_000_000, 3_600),
    )]],
};
static HOURS: [Ask; 3] = [
    ask("hour", 100, 360_000),
    ask("day", 240, 864_000),
    ask("week", 1_680, 6_048_000),
];
/// The first of the clients of `STORED`.
pub(super) static FEW: Shape = Shape {
    scope: "stored",
    clients: 10_000,
    sets: &[&HOURS],
};
/// Three limits on one key that remember requests for an hour, by ten million clients, for entries that are counted.
pub(super) static STORED: Shape = Shape {
    scope: "stored",
    clients: 10_000_000,
    sets: &[&HOURS],
};
