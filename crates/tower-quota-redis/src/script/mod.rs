//! The script that decides, and the calls of it.

mod inner_error;

use std::sync::LazyLock;

use redis::aio::ConnectionLike;
use redis::{ErrorKind, RedisResult, Script, ServerErrorKind, Value, cmd};

use crate::wire::{self, Call};

/// The Lua that Redis runs, with names in place of shared constants. `numbers.lua` describes requests and replies.
const BODY: &str = concat!(
    include_str!("numbers.lua"),
    include_str!("request.lua"),
    include_str!("lows.lua"),
    include_str!("buckets.lua"),
    "local function model()\n",
    include_str!("algorithms.lua"),
    include_str!("bucket.lua"),
    include_str!("window.lua"),
    include_str!("sliding_log.lua"),
    include_str!("hold.lua"),
    include_str!("convert.lua"),
    include_str!("entry.lua"),
    include_str!("decide.lua"),
    "return decide\nend\n",
    include_str!("main.lua"),
);

/// The script, and the hash that a server knows it by.
static SCRIPT: LazyLock<(String, Script)> = LazyLock::new(|| {
    let source = wire::with_constants(BODY);
    let script = Script::new(&source);
    (source, script)
});

/// Makes a call once on a partition. `key` stands for the partition in calls without clients.
///
/// A server that does not know the script has certainly not run it: then, and only then, the source is sent, which
/// also makes it known.
pub(crate) async fn run(
    connection: &mut impl ConnectionLike,
    key: &str,
    call: &Call,
) -> RedisResult<Value> {
    let (source, script) = &*SCRIPT;
    match send(connection, "EVALSHA", script.get_hash(), key, call).await {
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
            send(connection, "EVAL", source, key, call).await
        }
        answer => answer,
    }
}

async fn send(
    connection: &mut impl ConnectionLike,
    command: &str,
    script: &str,
    key: &str,
    call: &Call,
) -> RedisResult<Value> {
    let mut command = cmd(command);
    command.arg(script).arg(call.keys.len().max(1));
    call.keys.iter().for_each(|key| {
        command.arg(key.as_bytes());
    });
    if call.keys.is_empty() {
        command.arg(key);
    }
    command
        .arg(&call.request)
        .query_async(connection)
        .await
        .map_err(inner_error::unwrap)
}
