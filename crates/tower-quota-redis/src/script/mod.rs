mod inner_error;

use std::sync::LazyLock;

use redis::aio::ConnectionLike;
use redis::{ErrorKind, RedisResult, Script, ServerErrorKind, Value, cmd};

use crate::keys::EntryKey;
use crate::wire::{self, Call};

/// The Lua files in order, with names for constants. `numbers.lua` describes requests and replies.
const BODY: &str = concat!(
    include_str!("numbers.lua"),
    include_str!("request.lua"),
    include_str!("low_marks.lua"),
    include_str!("quotas.lua"),
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

static SCRIPT: LazyLock<(String, Script)> = LazyLock::new(|| {
    let source = wire::with_constants(BODY);
    let script = Script::new(&source);
    (source, script)
});

/// Calls the script on a partition. A call without clients needs the `key` of the partition.
///
/// On `NOSCRIPT`, sends the script once with `EVAL`, because the server has not run the call.
pub(crate) async fn run(
    connection: &mut impl ConnectionLike,
    key: &str,
    call: &Call,
) -> RedisResult<Value> {
    let (source, script) = &*SCRIPT;
    match send(connection, "EVALSHA", script.get_hash(), key, call).await {
        Err(error)
            if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) && !call.is_late() =>
        {
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
    let mut keys: Vec<&[u8]> = call.keys.iter().map(EntryKey::as_bytes).collect();
    if keys.is_empty() {
        keys.push(key.as_bytes());
    }
    cmd(command)
        .arg(script)
        .arg(keys.len())
        .arg(keys)
        .arg(&call.request)
        .query_async(connection)
        .await
        .map_err(inner_error::unwrap)
}
