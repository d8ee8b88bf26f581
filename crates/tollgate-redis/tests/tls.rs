//! A server that speaks TLS.

#![cfg(feature = "tls")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod common;

use std::fs;

use tollgate_core::{Charge, Quota, Store};
use tollgate_redis::RedisStoreError;
use tollgate_testkit::{RedisServer, TlsFiles};

use self::common::{options, user};

const QUOTA: Quota = Quota::per_hour(10);

#[tokio::test]
async fn a_server_that_is_trusted_is_used() {
    let files = TlsFiles::new();
    let server = RedisServer::start_tls(&files);
    let trust = fs::read(files.certificate()).unwrap();
    let ann = user("ann");
    for (left, query) in [(9, ""), (8, "?protocol=resp3")] {
        let url = format!("rediss://localhost:{}/{query}", server.port());
        let store = options().root_certificates(trust.clone()).connect(&url).await.unwrap();
        let decision = store.check(&[Charge::new("hour", &QUOTA, &ann)]).await.unwrap();
        assert_eq!(decision.standings()[0].remaining, left);
    }
}

#[tokio::test]
async fn a_server_that_is_not_is_not() {
    let files = TlsFiles::new();
    let server = RedisServer::start_tls(&files);
    let url = format!("rediss://localhost:{}/", server.port());
    // The system has never heard of it; and of another, it is not the one.
    let another = fs::read(TlsFiles::new().certificate()).unwrap();
    for options in [options(), options().root_certificates(another)] {
        let error = options.connect(&url).await.unwrap_err();
        assert!(matches!(error, RedisStoreError::Connect { .. }), "{error:?}");
    }
    let error = options().root_certificates("no certificate").connect(&url).await.unwrap_err();
    assert!(!matches!(error, RedisStoreError::Deadline { .. }), "{error:?}");
    // Plain text is not understood there.
    assert!(options().connect(&format!("redis://localhost:{}/", server.port())).await.is_err());
}
