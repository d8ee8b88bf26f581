//! Tokens, users, cookies and API keys.

use tower_quota::key;

use crate::{NOBODY, one, read, to, with};

#[test]
fn bearer_tokens() {
    let cases = [
        (&["Bearer abc"] as &[&str], one("abc")),
        (&["bearer abc"], one("abc")),
        (&["BEARER   abc  "], one("abc")),
        (&["Bearer abc", "Bearer abc"], one("abc")),
        (&["Bearer abc", "Bearer abd"], NOBODY),
        (&["Bearer abc", "Basic YTpi"], NOBODY),
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
fn basic_users() {
    let cases = [
        // RFC 7617's own: Aladdin, with the password "open sesame".
        (&["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="] as &[&str], one("Aladdin")),
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
        (&["Basic YTpi", "Basic YTpj"], NOBODY),
    ];
    for (lines, expected) in cases {
        let lines: Vec<_> = lines.iter().map(|line| ("authorization", *line)).collect();
        assert_eq!(read(&key::basic_user(), &with(&lines)), expected, "{lines:?}");
    }
}

#[test]
fn cookies() {
    let cases = [
        (&["session=abc"] as &[&str], one("abc")),
        (&["theme=dark; session=abc; lang=de"], one("abc")),
        (&["theme=dark", "session=abc"], one("abc")),
        (&["theme=dark;session = abc "], one("abc")),
        (&["session=\"abc\""], one("abc")),
        (&["session=%61bc"], one("abc")),
        (&["%73ession=abc"], one("abc")),
        (&["session=a=b"], one("a=b")),
        (&["session=abc; session=abc"], one("abc")),
        (&["session=abc; session=abd"], NOBODY),
        (&["session=abc", "session=abd"], NOBODY),
        (&["session=abc; %73ession=abd"], NOBODY),
        (&["Session=abc"], None),
        (&["xsession=abc; session2=abc"], None),
        (&["session="], None),
        (&["session"], None),
        (&[";;=;"], None),
        (&[], None),
    ];
    for (lines, expected) in cases {
        let lines: Vec<_> = lines.iter().map(|line| ("cookie", *line)).collect();
        assert_eq!(read(&key::cookie("session"), &with(&lines)), expected, "{lines:?}");
    }
}

#[test]
fn query_parameters() {
    let cases = [
        ("/?key=abc", one("abc")),
        ("/?a=b&key=abc&c=d", one("abc")),
        ("/?%6Bey=%61bc", one("abc")),
        ("/?key=a+b", one("a b")),
        ("/?key=a%20b", one("a b")),
        ("/?key=abc&key=abc", one("abc")),
        ("/?key=abc&key=abd", NOBODY),
        ("/?key=abc&%6bey=abd", NOBODY),
        ("/?key=&key=abc", NOBODY),
        ("/?Key=abc", None),
        ("/?key=", None),
        ("/?key", None),
        ("/?", None),
        ("/", None),
    ];
    for (uri, expected) in cases {
        assert_eq!(read(&key::query("key"), &to(uri)), expected, "{uri}");
    }
}

#[test]
fn no_debug_output_shows_a_secret() {
    let request = with(&[("authorization", "Bearer secret"), ("cookie", "session=secret")]);
    let head = tower_quota::RequestHead::of(&request);
    for text in [
        format!("{:?}", key::KeyExtractor::extract(&key::bearer(), &head)),
        format!("{:?}", key::KeyExtractor::extract(&key::cookie("session"), &head)),
        format!("{head:?}"),
    ] {
        assert!(!text.contains("secret"), "{text}");
    }
}
