//! The scripts that decide, and the calls of them.

use std::sync::LazyLock;

use redis::aio::ConnectionLike;
use redis::{ErrorKind, RedisResult, Script, ServerErrorKind, Value, cmd};

/// The Lua that Redis runs for any call; the first file begins with its contract.
const ANY: &str = concat!(
    include_str!("numbers.lua"),
    include_str!("request.lua"),
    include_str!("clock.lua"),
    include_str!("shelves.lua"),
    include_str!("changes.lua"),
    include_str!("fast.lua"),
    "local function model(is_confused)\n",
    include_str!("model.lua"),
    include_str!("bucket.lua"),
    include_str!("fixed_window.lua"),
    include_str!("sliding_window.lua"),
    include_str!("sliding_log.lua"),
    include_str!("state.lua"),
    include_str!("convert.lua"),
    include_str!("subject.lua"),
    include_str!("decide.lua"),
    "return decide\nend\n",
    include_str!("main.lua"),
    include_str!("save.lua"),
    "return table.concat(replies)\n",
);

/// The Lua for a call with one plain decision about one subject.
const LONE: &str = concat!(
    include_str!("numbers.lua"),
    include_str!("lone_request.lua"),
    include_str!("clock.lua"),
    include_str!("shelves.lua"),
    include_str!("lone.lua"),
    include_str!("save.lua"),
    "return reply\n",
);

static SCRIPTS: LazyLock<[Script; 2]> = LazyLock::new(|| [Script::new(ANY), Script::new(LONE)]);

/// What one call asks: the bytes, and the script that reads them.
pub(crate) enum Call {
    /// Any number of decisions, of any kind.
    Any(Vec<u8>),
    /// One plain decision about one subject. The reply is empty, and nothing was done, where the other script is needed.
    Lone(Vec<u8>),
}

impl Call {
    fn parts(&self) -> (&'static str, usize, &[u8]) {
        match self {
            Self::Any(request) => (ANY, 0, request),
            Self::Lone(request) => (LONE, 1, request),
        }
    }
}

/// Makes a call once on the partition that a key stands for.
///
/// A server that does not know the script has certainly not run it: then, and only then, the source is sent, which
/// also makes it known.
pub(crate) async fn run(connection: &mut impl ConnectionLike, key: &str, call: &Call) -> RedisResult<Value> {
    let (source, number, request) = call.parts();
    match send(connection, "EVALSHA", SCRIPTS[number].get_hash(), key, request).await {
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
            send(connection, "EVAL", source, key, request).await
        }
        answer => answer,
    }
}

async fn send(
    connection: &mut impl ConnectionLike,
    command: &str,
    script: &str,
    key: &str,
    request: &[u8],
) -> RedisResult<Value> {
    cmd(command).arg(script).arg(1).arg(key).arg(request).query_async(connection).await
}
