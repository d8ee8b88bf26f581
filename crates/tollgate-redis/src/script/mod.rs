//! The script that decides, and the call of it.

use std::sync::LazyLock;

use redis::aio::ConnectionLike;
use redis::{ErrorKind, RedisResult, Script, ServerErrorKind, Value, cmd};

/// The Lua that Redis runs; the first file begins with its contract.
const SOURCE: &str = concat!(
    include_str!("numbers.lua"),
    include_str!("bucket.lua"),
    include_str!("fixed_window.lua"),
    include_str!("sliding_window.lua"),
    include_str!("sliding_log.lua"),
    include_str!("state.lua"),
    include_str!("convert.lua"),
    include_str!("subject.lua"),
    include_str!("main.lua"),
);

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(SOURCE));

/// Runs the script once on these keys and this request.
///
/// A server that does not know the script has certainly not run it: then, and only then, the source is sent, which
/// also makes it known.
pub(crate) async fn run(connection: &mut impl ConnectionLike, keys: &[String], request: &[u8]) -> RedisResult<Value> {
    match call(connection, "EVALSHA", SCRIPT.get_hash(), keys, request).await {
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
            call(connection, "EVAL", SOURCE, keys, request).await
        }
        answer => answer,
    }
}

async fn call(
    connection: &mut impl ConnectionLike,
    command: &str,
    script: &str,
    keys: &[String],
    request: &[u8],
) -> RedisResult<Value> {
    cmd(command).arg(script).arg(keys.len()).arg(keys).arg(request).query_async(connection).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Request;
    use tollgate_core::{Charge, Key, Name, Operation, Quota};
    use tollgate_testkit::RedisServer;

    #[tokio::test]
    async fn one_call_carries_several_decisions_each_counted_after_the_last() {
        let server = RedisServer::start();
        let client = redis::Client::open(server.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let quota = Quota::per_hour(10);
        let ann = Key::new(Name::new("user"), b"ann");
        let charges = [Charge::new("hour", &quota, &ann)];
        let mut request = Request::new(None);
        for operation in [Operation::Check, Operation::Charge, Operation::Reset, Operation::Check] {
            request.decide(operation, &charges, |_| 0);
        }

        let reply = run(&mut connection, &["ann".to_owned()], request.as_bytes()).await.unwrap();

        let Value::BulkString(bytes) = reply else { panic!("{reply:?}") };
        let left: Vec<u8> = bytes.chunks(8 + 25).map(|decision| decision[8]).collect();
        assert_eq!(left, [9, 8, 10, 9]);
    }
}
