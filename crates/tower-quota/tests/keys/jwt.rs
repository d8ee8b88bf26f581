//! Claims of verified and unverified tokens.

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use tower_quota::RequestHead;
use tower_quota::key::{self, JwtClaim, JwtKey, KeyExtractor};

use crate::{SHARED, one, read, with};

const SECRET: &[u8] = b"a secret of thirty-two bytes ...";
/// A time in 2001, in seconds since the epoch.
const PAST: u64 = 1_000_000_000;
/// A time in 2255, in seconds since the epoch.
const FUTURE: u64 = 9_000_000_000;

fn hmac() -> JwtKey {
    JwtKey::hmac(SECRET).unwrap()
}

fn signed(claims: &Value) -> String {
    encode(
        &Header::default(),
        claims,
        &EncodingKey::from_secret(SECRET),
    )
    .unwrap()
}

/// Returns the key of a request with this bearer token.
fn key_of_token(by: &JwtClaim, token: &str) -> Option<Vec<u8>> {
    read(by, &with(&[("authorization", &format!("Bearer {token}"))]))
}

#[test]
fn verified_claim_is_the_key() {
    let by = key::jwt_claim("sub", hmac());
    let cases = [
        (json!({ "sub": "ann" }), one("ann")),
        (
            json!({ "sub": "ann", "exp": FUTURE, "nbf": PAST, "aud": "other", "iss": "anyone" }),
            one("ann"),
        ),
        (json!({ "sub": 7 }), one("7")),
        (json!({ "sub": "7" }), one("7")),
        (json!({ "sub": true }), one("true")),
        (json!({ "sub": "" }), None),
        (json!({ "sub": null }), None),
        (json!({ "sub": ["ann"] }), None),
        (json!({ "user": "ann" }), None),
        (json!({ "sub": "ann", "exp": PAST }), None),
        (json!({ "sub": "ann", "nbf": FUTURE }), None),
        (json!({ "sub": "ann", "exp": "soon" }), None),
        (json!("ann"), None),
    ];
    for (claims, expected) in cases {
        assert_eq!(key_of_token(&by, &signed(&claims)), expected, "{claims}");
    }
}

#[test]
fn invalid_token_is_missing() {
    let by = key::jwt_claim("sub", hmac());
    let good = signed(&json!({ "sub": "ann" }));
    let (message, signature) = good.rsplit_once('.').unwrap();
    let (header, _) = message.split_once('.').unwrap();
    // {"alg":"none"}, {"sub":"ann"}.
    let (none, ann) = ("eyJhbGciOiJub25lIn0", "eyJzdWIiOiJhbm4ifQ");
    for token in [
        format!("{message}."),
        message.to_owned(),
        format!("{none}.{ann}."),
        format!("{none}.{ann}.{signature}"),
        // The signature belongs to other claims: {"sub":"bob"}.
        format!("{header}.eyJzdWIiOiJib2IifQ.{signature}"),
        encode(
            &Header::default(),
            &json!({ "sub": "ann" }),
            &EncodingKey::from_secret(b"another"),
        )
        .unwrap(),
        format!("{good}.x"),
        String::from("..."),
        String::from("abc"),
    ] {
        assert_eq!(key_of_token(&by, &token), None, "{token}");
    }
    assert_eq!(key_of_token(&by, &good), one("ann"));
    assert_eq!(read(&by, &with(&[])), None);
    let two = [
        ("authorization", format!("Bearer {good}")),
        ("authorization", String::from("Bearer x")),
    ];
    assert_eq!(
        read(&by, &with(&[(two[0].0, &two[0].1), (two[1].0, &two[1].1)])),
        SHARED
    );
}

#[test]
fn issuer_and_audience_are_required() {
    let by = key::jwt_claim("sub", hmac().issuer("us").audience("here"));
    assert_eq!(
        key_of_token(
            &by,
            &signed(&json!({ "sub": "ann", "iss": "us", "aud": "here" }))
        ),
        one("ann")
    );
    assert_eq!(
        key_of_token(
            &by,
            &signed(&json!({ "sub": "ann", "iss": "us", "aud": ["there", "here"] }))
        ),
        one("ann")
    );
    for claims in [
        json!({ "sub": "ann", "iss": "us" }),
        json!({ "sub": "ann", "aud": "here" }),
        json!({ "sub": "ann", "iss": "them", "aud": "here" }),
        json!({ "sub": "ann", "iss": "us", "aud": "there" }),
    ] {
        assert_eq!(key_of_token(&by, &signed(&claims)), None, "{claims}");
    }
}

#[test]
fn public_key_verifies_its_own_family() {
    let rsa = (
        include_bytes!("pem/rsa.private.pem"),
        include_bytes!("pem/rsa.public.pem"),
    );
    let ec = (
        include_bytes!("pem/ec.private.pem"),
        include_bytes!("pem/ec.public.pem"),
    );
    let ed = (
        include_bytes!("pem/ed.private.pem"),
        include_bytes!("pem/ed.public.pem"),
    );
    let claims = json!({ "sub": "ann" });
    let token =
        |algorithm, key: &EncodingKey| encode(&Header::new(algorithm), &claims, key).unwrap();
    let tokens = [
        token(Algorithm::RS256, &EncodingKey::from_rsa_pem(rsa.0).unwrap()),
        token(Algorithm::PS512, &EncodingKey::from_rsa_pem(rsa.0).unwrap()),
        token(Algorithm::ES384, &EncodingKey::from_ec_pem(ec.0).unwrap()),
        token(Algorithm::EdDSA, &EncodingKey::from_ed_pem(ed.0).unwrap()),
        // A token signed with the public key as if it were a shared secret.
        token(Algorithm::HS256, &EncodingKey::from_secret(rsa.1)),
    ];
    let keys = [
        (JwtKey::rsa_pem(rsa.1).unwrap(), 0..2),
        (JwtKey::ec_pem(ec.1).unwrap(), 2..3),
        (JwtKey::ed_pem(ed.1).unwrap(), 3..4),
    ];
    for (key, fitting) in keys {
        let by = key::jwt_claim("sub", key.clone());
        for (position, token) in tokens.iter().enumerate() {
            let expected = if fitting.contains(&position) {
                one("ann")
            } else {
                None
            };
            assert_eq!(key_of_token(&by, token), expected, "{key:?} {position}");
        }
    }
    let either =
        key::jwt_claim("sub", JwtKey::ec_pem(ec.1).unwrap()).or_key(JwtKey::ed_pem(ed.1).unwrap());
    assert_eq!(key_of_token(&either, &tokens[2]), one("ann"));
    assert_eq!(key_of_token(&either, &tokens[3]), one("ann"));
    assert_eq!(key_of_token(&either, &tokens[0]), None);
}

#[test]
fn invalid_key_is_refused_at_start() {
    let ec = include_bytes!("pem/ec.public.pem");
    for error in [
        JwtKey::hmac(b"").unwrap_err(),
        JwtKey::rsa_pem(b"").unwrap_err(),
        JwtKey::rsa_pem(ec).unwrap_err(),
        JwtKey::ed_pem(ec).unwrap_err(),
        JwtKey::ec_pem(include_bytes!("pem/ed.public.pem")).unwrap_err(),
        JwtKey::ec_pem(include_bytes!("pem/ec.private.pem")).unwrap_err(),
    ] {
        assert!(
            error
                .to_string()
                .starts_with("this key cannot verify tokens: "),
            "{error}"
        );
    }
    assert!(!format!("{:?}", hmac()).contains("secret"));
}

#[test]
fn unverified_claim_is_read_from_any_token() {
    let by = key::unverified_jwt_claim("sub");
    assert_eq!(
        key_of_token(&by, "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.x"),
        one("ann")
    );
    assert_eq!(key_of_token(&by, "abc"), None);
    assert_eq!(
        by.scope().as_str(),
        "unverified jwt claim sub of bearer token"
    );
    assert_eq!(
        key::jwt_claim("sub", hmac()).scope().as_str(),
        "jwt claim sub of bearer token"
    );
    assert_eq!(
        by.or_key(hmac()).scope(),
        key::jwt_claim("sub", hmac()).scope()
    );
}

#[test]
fn token_is_read_from_other_places() {
    let by = key::jwt_claim("sub", hmac()).token_from(key::cookie("token"));
    let token = signed(&json!({ "sub": "ann" }));
    assert_eq!(
        read(&by, &with(&[("cookie", &format!("token={token}"))])),
        one("ann")
    );
    assert_eq!(
        read(
            &by,
            &with(&[("cookie", &format!("token={token}; token=x"))])
        ),
        SHARED
    );
    assert_eq!(key_of_token(&by, &token), None);
    assert_eq!(by.scope().as_str(), "jwt claim sub of cookie token");
}

#[test]
fn surplus_tokens_are_visited_unverified() {
    let by = key::jwt_claim("sub", hmac());
    let forged = |number: usize| {
        let claims = json!({ "sub": "ann", "jti": number });
        let other = EncodingKey::from_secret(b"another secret");
        encode(&Header::default(), &claims, &other).unwrap()
    };
    for (tokens, expected) in [(4, 0), (5, 1), (100, 96)] {
        let mut request = with(&[]);
        for number in 0..tokens {
            let value = format!("Bearer {}", forged(number)).parse().unwrap();
            request.headers_mut().append("authorization", value);
        }
        let head = RequestHead::of(&request);
        let mut visited = 0;
        by.each_key(&head, &mut |key| {
            assert_eq!(key.as_bytes(), b"ann");
            visited += 1;
        });
        assert_eq!(visited, expected);
        assert_eq!(read(&by, &request), SHARED, "no token is verified to count");
    }
}
