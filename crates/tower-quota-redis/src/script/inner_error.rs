use redis::{ErrorKind, RedisError, ServerErrorKind, parse_redis_value};

/// Returns the error of the command that stopped the script.
///
/// Before version 7, servers wrap the error in a text: `ERR Error running script (call to f_HASH): @user_script:7:
/// @user_script: 7: -READONLY You can't write ...`. The code in the text says whether the call may succeed later, and
/// whether the server is still the primary.
pub(super) fn unwrap(error: RedisError) -> RedisError {
    match inner(&error) {
        Some(inner) => inner,
        None => error,
    }
}

fn inner(error: &RedisError) -> Option<RedisError> {
    let detail = error
        .detail()
        .filter(|_| error.kind() == ErrorKind::Server(ServerErrorKind::ResponseError))?;
    let (_, reply) = detail
        .strip_prefix("Error running script")?
        .split_once(": -")?;
    parse_redis_value(format!("-{reply}\r\n").as_bytes())
        .ok()?
        .extract_error()
        .err()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unwrapped(reply: &str) -> RedisError {
        let value = parse_redis_value(format!("-{reply}\r\n").as_bytes()).unwrap();
        unwrap(value.extract_error().unwrap_err())
    }

    #[test]
    fn wrapped_error_keeps_its_code() {
        let wrapped = |inner| {
            format!(
                "ERR Error running script (call to f_58): @user_script:7: @user_script: 7: {inner}"
            )
        };
        let error = unwrapped(&wrapped(
            "-READONLY You can't write against a read only replica.",
        ));
        assert_eq!(error.kind(), ErrorKind::Server(ServerErrorKind::ReadOnly));
        assert_eq!(
            error.detail(),
            Some("You can't write against a read only replica.")
        );
        let error = unwrapped(&wrapped(
            "-OOM command not allowed when used memory > 'maxmemory'.",
        ));
        assert_eq!(error.code(), Some("OOM"));
    }

    #[test]
    fn other_errors_stay_as_they_are() {
        for reply in [
            "ERR Error running script (call to f_58): @user_script:7: 7: Lua script attempted to access a non local key",
            "ERR no such command: -OOM",
            "OOM command not allowed",
        ] {
            let (code, detail) = reply.split_once(' ').unwrap();
            let error = unwrapped(reply);
            assert_eq!((error.code(), error.detail()), (Some(code), Some(detail)));
        }
    }
}
