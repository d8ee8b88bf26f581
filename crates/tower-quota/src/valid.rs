use core::fmt::Display;

use http::header::HeaderName;

#[track_caller]
pub(crate) fn valid<T, E: Display>(built: Result<T, E>) -> T {
    match built {
        Ok(built) => built,
        #[expect(
            clippy::panic,
            reason = "documented: what is written in code fails at start"
        )]
        Err(error) => panic!("{error}"),
    }
}

#[track_caller]
pub(crate) fn valid_header(name: &str) -> HeaderName {
    valid(HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
        format!("{name:?} cannot be the name of a header: give a token such as \"x-api-key\"")
    }))
}
