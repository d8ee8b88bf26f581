//! The script that decides, and the call of it.

use std::sync::LazyLock;

use redis::aio::ConnectionLike;
use redis::{ErrorKind, RedisResult, Script, ServerErrorKind, Value, cmd};

/// The Lua that Redis runs; the first file begins with its contract.
const SOURCE: &str = concat!(
    include_str!("numbers.lua"),
    include_str!("request.lua"),
    include_str!("shelves.lua"),
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

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(SOURCE));

/// Runs the script once on the partition that a key stands for.
///
/// A server that does not know the script has certainly not run it: then, and only then, the source is sent, which
/// also makes it known.
pub(crate) async fn run(connection: &mut impl ConnectionLike, key: &str, request: &[u8]) -> RedisResult<Value> {
    match call(connection, "EVALSHA", SCRIPT.get_hash(), key, request).await {
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
            call(connection, "EVAL", SOURCE, key, request).await
        }
        answer => answer,
    }
}

async fn call(
    connection: &mut impl ConnectionLike,
    command: &str,
    script: &str,
    key: &str,
    request: &[u8],
) -> RedisResult<Value> {
    cmd(command).arg(script).arg(1).arg(key).arg(request).query_async(connection).await
}
