//! Hostile input: every extractor returns a key or none, and does not panic.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue, Request, Version};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tower_quota::RequestHead;
use tower_quota::key::{self, KeyExtractor, Proxies, Source};

const PEER: &str = "10.0.0.1";

/// Generates bytes that are significant in one of the parsers, and other bytes.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let token = select(vec![
        "for=",
        "\"",
        "\\",
        ",",
        ";",
        "=",
        ":80",
        "[",
        "]",
        "192.0.2.1",
        "10.0.0.2",
        "2001:db8::1",
        "::ffff:10.0.0.3",
        "unknown",
        "session",
        "Bearer ",
        "Basic YTpi",
        "%61",
        " ",
    ]);
    prop_oneof![
        vec(token, 0..40).prop_map(|tokens| tokens.concat().into_bytes()),
        vec(prop_oneof![0x20_u8..0x7f, 0x80_u8..=0xff], 0..200),
    ]
}

fn request(name: &HeaderName, lines: &[Vec<u8>]) -> Request<()> {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(name, HeaderValue::from_bytes(line).unwrap());
    }
    let mut request = Request::post("/a/b")
        .version(Version::HTTP_2)
        .body(())
        .unwrap();
    *request.headers_mut() = headers;
    request
        .extensions_mut()
        .insert(PEER.parse::<IpAddr>().unwrap());
    request
}

/// Returns the addresses that a text contains between separators.
fn addresses(lines: &[Vec<u8>]) -> Vec<IpAddr> {
    let texts = lines
        .iter()
        .map(|line| String::from_utf8_lossy(line).replace('\\', ""));
    texts.flat_map(|text| substrings(&text)).collect()
}

fn substrings(text: &str) -> Vec<IpAddr> {
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let piece = |from: usize| {
        let tail = &text[from..];
        let end = tail
            .find(|sign: char| !sign.is_ascii_hexdigit() && !":.".contains(sign))
            .unwrap_or(tail.len());
        (0..=end)
            .filter_map(|end| tail[..end].parse::<IpAddr>().ok())
            .map(|address| address.to_canonical())
            .collect()
    };
    starts
        .into_iter()
        .flat_map(|from| -> Vec<IpAddr> { piece(from) })
        .collect()
}

proptest! {
    #[test]
    fn client_is_peer_or_sent_address(lines in vec(line(), 0..5), hops in 0_u8..4) {
        let sources = [
            Source::XForwardedFor,
            Source::Forwarded,
            Source::XRealIp,
            Source::CloudFrontViewerAddress,
        ];
        let names = ["x-forwarded-for", "forwarded", "x-real-ip", "cloudfront-viewer-address"];
        for (source, name) in sources.into_iter().zip(names) {
            let proxies = if hops == 0 { Proxies::networks(["10.0.0.0/8"]) } else { Proxies::hops(hops) };
            let request = request(&HeaderName::from_static(name), &lines);
            let client = key::client_ip().behind(proxies, source).address(&RequestHead::of(&request));
            let client = client.expect("the peer is known");
            let peer: IpAddr = PEER.parse().unwrap();
            prop_assert!(client == peer || addresses(&lines).contains(&client), "{client} in {lines:?}");
        }
    }

    #[test]
    fn every_extractor_returns_on_any_lines(lines in vec(line(), 0..5)) {
        let extractors: Vec<(&str, Box<dyn KeyExtractor>)> = vec![
            ("authorization", Box::new(key::bearer())),
            ("authorization", Box::new(key::basic_user())),
            ("cookie", Box::new(key::cookie("session"))),
            ("host", Box::new(key::host())),
            ("x-id-bin", Box::new(key::metadata("x-id-bin"))),
            ("x-id", Box::new(key::metadata("x-id"))),
            ("x-id", Box::new(key::header("x-id").or(key::client_ip()))),
        ];
        for (name, extractor) in extractors {
            let request = request(&HeaderName::from_static(name), &lines);
            let key = extractor.extract(&RequestHead::of(&request));
            let longest: usize = lines.iter().map(Vec::len).sum();
            prop_assert!(key.is_none_or(|key| key.as_bytes().len() <= longest.max("10.0.0.1/32".len())), "{name}: {lines:?}");
        }
    }

    #[cfg(feature = "jwt")]
    #[test]
    fn jwt_claim_returns_on_any_token(lines in vec(line(), 0..5), parts in vec("[A-Za-z0-9_-]{0,40}", 0..5)) {
        let token = format!("Bearer {}", parts.join("."));
        for lines in [lines, vec![token.into_bytes()]] {
            let request = request(&http::header::AUTHORIZATION, &lines);
            let key = key::jwt_claim("sub", key::JwtKey::hmac(b"secret").unwrap()).extract(&RequestHead::of(&request));
            prop_assert!(key.is_none_or(|key| key.as_bytes().is_empty()), "{lines:?}");
            let _ = key::unverified_jwt_claim("sub").extract(&RequestHead::of(&request));
        }
    }

    #[test]
    fn every_extractor_returns_on_any_target(path in "/[ -~]{0,60}") {
        let Ok(uri) = path.parse::<http::Uri>() else { return Ok(()) };
        let mut request = Request::new(());
        *request.uri_mut() = uri;
        let extractors: [Box<dyn KeyExtractor>; 6] = [
            Box::new(key::path()),
            Box::new(key::path_segment(0)),
            Box::new(key::query("a")),
            Box::new(key::host()),
            Box::new(key::grpc_service()),
            Box::new(key::grpc_method()),
        ];
        for extractor in extractors {
            let key = extractor.extract(&RequestHead::of(&request));
            prop_assert!(key.is_none_or(|key| key.as_bytes().len() <= 3 * path.len()));
        }
    }

    #[test]
    fn address_key_is_its_network(address in any::<u128>(), other in any::<u128>(), bits in 1_u8..=128) {
        let client = key::client_ip().prefix_v6(bits);
        let (one, two) = (std::net::Ipv6Addr::from_bits(address), std::net::Ipv6Addr::from_bits(address ^ other));
        prop_assume!(IpAddr::from(one).to_canonical().is_ipv6() && IpAddr::from(two).to_canonical().is_ipv6());
        let is_same_network = u32::from(bits) <= other.leading_zeros();
        prop_assert_eq!(client.key_of(one.into()) == client.key_of(two.into()), is_same_network);
    }

    /// Asserts that the part that a trusted proxy appends decides, whatever is before it.
    #[test]
    fn client_cannot_change_what_the_proxy_appends(forged in line(), v6 in any::<bool>()) {
        let address = if v6 { "2001:db8::7" } else { "203.0.113.7" };
        let element = if v6 { format!("for=\"[{address}]:1\"") } else { format!("for={address}") };
        for (source, name, appended) in [
            (Source::XForwardedFor, "x-forwarded-for", address.to_owned()),
            (Source::Forwarded, "forwarded", element),
        ] {
            let name = HeaderName::from_static(name);
            let joined = [forged.as_slice(), b", ", appended.as_bytes()].concat();
            for lines in [vec![joined], vec![forged.clone(), appended.into_bytes()]] {
                let request = request(&name, &lines);
                let client = key::client_ip().behind(Proxies::networks(["10.0.0.0/8"]), source.clone());
                let client = client.address(&RequestHead::of(&request));
                prop_assert_eq!(client, Some(address.parse().unwrap()), "{:?}", lines);
            }
        }
    }
}
