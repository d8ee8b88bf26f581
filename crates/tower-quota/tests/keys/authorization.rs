//! Bearer tokens and Basic credentials.

use tower_quota::key;

use crate::{SHARED, one, read, with};

#[test]
fn bearer_token_is_read_from_authorization() {
    let cases = [
        (&["Bearer abc"] as &[&str], one("abc")),
        (&["bearer abc"], one("abc")),
        (&["BEARER   abc  "], one("abc")),
        (&["Bearer abc", "Bearer abc"], one("abc")),
        (&["Bearer abc", "Bearer abd"], SHARED),
        (&["Bearer abc", "Basic YTpi"], SHARED),
        (&["Basic YTpi"], None),
        (&["Bearer"], None),
        (&["Bearer "], None),
        (&["Bearerabc"], None),
        (&["abc"], None),
        (&[""], None),
        (&[], None),
    ];
    for (lines, expected) in cases {
        let lines: Vec<_> = lines.iter().map(|line| ("authorization", *line)).collect();
        assert_eq!(read(&key::bearer(), &with(&lines)), expected, "{lines:?}");
    }
}

#[test]
fn basic_user_is_read_without_password() {
    let cases = [
        // The example of RFC 7617: Aladdin, with the password "open sesame".
        (
            &["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="] as &[&str],
            one("Aladdin"),
        ),
        (&["basic QWxhZGRpbjpvcGVuIHNlc2FtZQ"], one("Aladdin")),
        // The same user and another password.
        (&["Basic QWxhZGRpbjp4"], one("Aladdin")),
        // Colons belong to the password: "a:b:c".
        (&["Basic YTpiOmM="], one("a")),
        // "a" without a colon, ":b" without a user, no base64.
        (&["Basic YQ=="], None),
        (&["Basic OmI="], None),
        (&["Basic !!!"], None),
        (&["Bearer YTpi"], None),
        // "a:b" and "a:c", then "a:b" and "b:b".
        (&["Basic YTpi", "Basic YTpj"], one("a")),
        (&["Basic YTpi", "Basic Yjpi"], SHARED),
    ];
    for (lines, expected) in cases {
        let lines: Vec<_> = lines.iter().map(|line| ("authorization", *line)).collect();
        assert_eq!(
            read(&key::basic_user(), &with(&lines)),
            expected,
            "{lines:?}"
        );
    }
}

#[test]
fn debug_output_shows_no_secret() {
    let request = with(&[
        ("authorization", "Bearer secret"),
        ("cookie", "session=secret"),
    ]);
    let head = tower_quota::RequestHead::of(&request);
    for text in [
        format!("{:?}", key::KeyExtractor::extract(&key::bearer(), &head)),
        format!(
            "{:?}",
            key::KeyExtractor::extract(&key::cookie("session"), &head)
        ),
        format!("{head:?}"),
    ] {
        assert!(!text.contains("secret"), "{text}");
    }
}
