//! Keys from closures and extensions, and the key of all requests.

use http::Request;
use tower_quota::key::{self, KeyExtractor};
use tower_quota::{ConfigError, Key, Limit, Name, Policy, Quota, RequestHead};

use crate::{one, read, to};

#[derive(Clone)]
struct User {
    name: &'static str,
    team: Option<&'static str>,
}

fn of(name: &'static str, team: Option<&'static str>) -> Request<()> {
    let mut request = to("/");
    request.extensions_mut().insert(User { name, team });
    request
}

fn limit(name: &'static str, by: impl KeyExtractor) -> Limit {
    Limit::new(name, Quota::per_minute(1)).by(by)
}

/// Counts by four bytes, in a scope that looks like the scope of addresses.
struct Plan;

impl KeyExtractor for Plan {
    fn scope(&self) -> Name {
        Name::new("ip plan")
    }

    fn extract<'r>(&self, _: &RequestHead<'r>) -> Option<Key<'r>> {
        Some(Key::new(self.scope(), b"gold"))
    }
}

#[test]
fn scope_like_addresses_makes_no_address() {
    let request = to("/");
    let key = Plan.extract(&RequestHead::of(&request)).unwrap();
    assert_eq!(key.to_address(), None);
    let by = key::first_of((Box::new(Plan) as Box<dyn KeyExtractor>, key::client_ip()));
    assert_eq!(by.parse("gold"), Some(key));
    let address = by.parse("192.0.2.7").unwrap();
    assert_eq!(address, key::client_ip().key_of([192, 0, 2, 7].into()));
}

#[test]
fn closure_returns_the_key() {
    let by_path = key::from_fn("path", |head| Some(head.path().to_owned()));
    assert_eq!(read(&by_path, &to("/a")), one("/a"));
    let by_id = key::from_fn("id", |head| {
        Some(head.extensions().get::<u64>()?.to_be_bytes())
    });
    let mut request = to("/");
    assert_eq!(read(&by_id, &request), None);
    request.extensions_mut().insert(7_u64);
    assert_eq!(read(&by_id, &request), one([0, 0, 0, 0, 0, 0, 0, 7]));
}

#[test]
fn empty_key_of_a_closure_is_missing() {
    assert_eq!(read(&key::from_fn("empty", |_| Some("")), &to("/")), None);
}

#[test]
fn extension_is_read_by_its_closure() {
    let by_user = key::extension("user", |user: &User| Some(user.name));
    assert_eq!(read(&by_user, &to("/")), None);
    assert_eq!(read(&by_user, &of("ann", None)), one("ann"));
    assert_eq!(read(&by_user, &of("", None)), None);
    let by_team = key::extension("team", |user: &User| user.team);
    assert_eq!(read(&by_team, &of("ann", Some("red"))), one("red"));
    assert_eq!(read(&by_team.clone(), &of("ann", None)), None);
}

/// Asserts this with closures of one type, made by one line of code.
#[test]
fn closures_with_other_captures_need_other_names() {
    let by_header = |header: &'static str| {
        key::from_fn("header", move |head| {
            Some(head.headers().get(header)?.as_bytes().to_vec())
        })
    };
    let policy = Policy::new().limit(limit("user", by_header("x-user")));
    let error = policy
        .try_limit(limit("team", by_header("x-team")))
        .unwrap_err();
    assert_eq!(error, ConfigError::SharedScope(Name::new("fn header")));

    let by_part = |first: bool| {
        key::extension(
            "part",
            move |user: &User| if first { Some(user.name) } else { user.team },
        )
    };
    let policy = Policy::new().limit(limit("user", by_part(true)));
    let error = policy.try_limit(limit("team", by_part(false))).unwrap_err();
    assert_eq!(error, ConfigError::SharedScope(Name::new("extension part")));
}

#[test]
fn cloned_closure_counts_for_several_limits() {
    let header = String::from("x-user");
    let by = key::from_fn("header", move |head| {
        Some(head.headers().get(&header)?.as_bytes().to_vec())
    });
    assert!(
        Policy::new()
            .limit(limit("minute", by.clone()))
            .try_limit(limit("hour", by))
            .is_ok()
    );
    let by = |_: ()| key::from_fn("path", |head| Some(head.path().to_owned()));
    assert!(
        Policy::new()
            .limit(limit("minute", by(())))
            .try_limit(limit("hour", by(())))
            .is_ok()
    );
}

#[test]
fn everyone_has_one_key() {
    assert_eq!(
        key::everyone().extract(&RequestHead::of(&to("/"))),
        Some(Key::EVERYONE)
    );
}
