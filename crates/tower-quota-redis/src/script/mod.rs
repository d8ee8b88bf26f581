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
    include_str!("straight.lua"),
    include_str!("templates.lua"),
    include_str!("plain.lua"),
    include_str!("main.lua"),
);

/// The functions that a call of plain decisions seldom needs.
const SLOW: &str = concat!(
    include_str!("arithmetic.lua"),
    include_str!("low_marks.lua"),
    include_str!("quotas.lua"),
    include_str!("slots.lua"),
    include_str!("charges.lua"),
    include_str!("algorithms.lua"),
    include_str!("bucket.lua"),
    include_str!("window.lua"),
    include_str!("sliding_log.lua"),
    include_str!("hold.lua"),
    include_str!("convert.lua"),
    include_str!("entry.lua"),
    include_str!("decide.lua"),
);

static SCRIPT: LazyLock<(String, Script)> = LazyLock::new(|| {
    let source = wire::with_constants(&BODY.replace("--SLOW", SLOW));
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

#[cfg(test)]
mod tests;
