//! Forged addresses, and valid requests that look similar.

use std::net::IpAddr;

use http::Request;
use tower_quota::RequestHead;
use tower_quota::key::{self, Proxies, Source};

use Source::{CfConnectingIp, CloudFrontViewerAddress, Forwarded, XForwardedFor, XRealIp};

/// The nearest proxy. The networks 10.0.0.0/8 and fd00::/8 are trusted.
const PROXY: &str = "10.0.0.1";

/// Returns the client of a request from `peer` with these lines, by trusted networks.
fn client(source: Source, peer: &str, lines: &[(&str, &str)]) -> String {
    counted(
        Proxies::networks(["10.0.0.0/8", "fd00::/8"]),
        source,
        peer,
        lines,
    )
}

fn counted(proxies: Proxies, source: Source, peer: &str, lines: &[(&str, &str)]) -> String {
    let mut request = Request::get("/");
    for (name, value) in lines {
        request = request.header(*name, *value);
    }
    let mut request = request.body(()).unwrap();
    if !peer.is_empty() {
        request
            .extensions_mut()
            .insert(peer.parse::<IpAddr>().unwrap());
    }
    let address = key::client_ip()
        .behind(proxies, source)
        .address(&RequestHead::of(&request));
    address.map_or_else(String::new, |address| address.to_string())
}

#[test]
fn forwarded_for_is_read_from_right() {
    let cases: [(&str, &str, &[&str], &str); 38] = [
        ("one proxy", PROXY, &["192.0.2.1"], "192.0.2.1"),
        ("no header", PROXY, &[], PROXY),
        ("two proxies", PROXY, &["192.0.2.1, 10.0.0.2"], "192.0.2.1"),
        (
            "three, on lines of their own",
            PROXY,
            &["192.0.2.1", "10.0.0.3", "10.0.0.2"],
            "192.0.2.1",
        ),
        (
            "proxies of both families",
            PROXY,
            &["192.0.2.1, fd00::2, 10.0.0.2"],
            "192.0.2.1",
        ),
        (
            "a forged entry to the left",
            PROXY,
            &["198.51.100.9, 192.0.2.1"],
            "192.0.2.1",
        ),
        (
            "another: rotation buys nothing",
            PROXY,
            &["198.51.100.10, 192.0.2.1"],
            "192.0.2.1",
        ),
        (
            "a forged line before",
            PROXY,
            &["198.51.100.9", "192.0.2.1"],
            "192.0.2.1",
        ),
        (
            "a forged line before, two proxies",
            PROXY,
            &["198.51.100.9", "192.0.2.1, 10.0.0.2"],
            "192.0.2.1",
        ),
        (
            "a forged trusted entry to the left",
            PROXY,
            &["198.51.100.9, 10.0.0.7, 192.0.2.1"],
            "192.0.2.1",
        ),
        (
            "past the proxies: the peer is no proxy",
            "192.0.2.1",
            &["198.51.100.9"],
            "192.0.2.1",
        ),
        (
            "past the proxies, with a proxy's name",
            "192.0.2.1",
            &["198.51.100.9, 10.0.0.1"],
            "192.0.2.1",
        ),
        ("no peer, no trust", "", &["198.51.100.9"], ""),
        ("unknown", PROXY, &["unknown"], PROXY),
        (
            "unknown behind a trusted proxy",
            PROXY,
            &["198.51.100.9, unknown, 10.0.0.2"],
            "10.0.0.2",
        ),
        ("junk is not skipped", PROXY, &["198.51.100.9, junk"], PROXY),
        (
            "an empty entry is not skipped",
            PROXY,
            &["198.51.100.9, "],
            PROXY,
        ),
        (
            "an empty line is not skipped",
            PROXY,
            &["198.51.100.9", ""],
            PROXY,
        ),
        ("only commas", PROXY, &[",,,"], PROXY),
        (
            "an IPv4 address mapped into IPv6",
            PROXY,
            &["::ffff:192.0.2.1"],
            "192.0.2.1",
        ),
        (
            "mapped, with all zeros",
            PROXY,
            &["0000:0:0:0:0:FFFF:c000:0201"],
            "192.0.2.1",
        ),
        (
            "a mapped proxy",
            "::ffff:10.0.0.1",
            &["192.0.2.1, ::ffff:10.0.0.2"],
            "192.0.2.1",
        ),
        ("a port", PROXY, &["192.0.2.1:5678"], "192.0.2.1"),
        ("another port", PROXY, &["192.0.2.1:5679"], "192.0.2.1"),
        ("a port that is none", PROXY, &["192.0.2.1:http"], PROXY),
        ("bare IPv6", PROXY, &["2001:db8::1"], "2001:db8::1"),
        ("upper case", PROXY, &["2001:DB8::A"], "2001:db8::a"),
        ("brackets", PROXY, &["[2001:db8::1]"], "2001:db8::1"),
        (
            "brackets and a port",
            PROXY,
            &["[2001:db8::1]:443"],
            "2001:db8::1",
        ),
        ("brackets and junk", PROXY, &["[2001:db8::1]x"], PROXY),
        (
            "a bracket that is not closed",
            PROXY,
            &["[2001:db8::1"],
            PROXY,
        ),
        ("a zone", PROXY, &["fe80::1%eth0"], PROXY),
        ("a zone in brackets", PROXY, &["[fe80::1%25eth0]:80"], PROXY),
        (
            "leading zeros, which some read as octal",
            PROXY,
            &["192.0.02.1"],
            PROXY,
        ),
        ("an address in one number", PROXY, &["3221225985"], PROXY),
        ("quotes mean nothing here", PROXY, &["\"192.0.2.1\""], PROXY),
        (
            "all trusted: the left-most",
            PROXY,
            &["10.0.0.9, 10.0.0.2"],
            "10.0.0.9",
        ),
        (
            "blanks",
            PROXY,
            &[" \t192.0.2.1 \t,\t 10.0.0.2 "],
            "192.0.2.1",
        ),
    ];
    for (what, peer, lines, expected) in cases {
        let lines: Vec<_> = lines
            .iter()
            .map(|line| ("x-forwarded-for", *line))
            .collect();
        assert_eq!(
            client(XForwardedFor, peer, &lines),
            expected,
            "{what}: {lines:?}"
        );
    }
}

#[test]
fn forwarded_is_read_from_the_right() {
    let cases: [(&str, &[&str], &str); 34] = [
        ("one proxy", &["for=192.0.2.1"], "192.0.2.1"),
        (
            "all parameters",
            &["For=192.0.2.1;proto=http;by=203.0.113.43"],
            "192.0.2.1",
        ),
        (
            "in another order",
            &["proto=http ; by=203.0.113.43 ; FOR=192.0.2.1"],
            "192.0.2.1",
        ),
        ("two proxies", &["for=192.0.2.1, for=10.0.0.2"], "192.0.2.1"),
        (
            "on lines of their own",
            &["for=192.0.2.1", "for=10.0.0.2"],
            "192.0.2.1",
        ),
        ("IPv6", &["for=\"[2001:db8::1]\""], "2001:db8::1"),
        (
            "IPv6 and a port",
            &["for=\"[2001:db8::1]:4711\""],
            "2001:db8::1",
        ),
        (
            "IPv6 and a hidden port",
            &["for=\"[2001:db8::1]:_web\""],
            "2001:db8::1",
        ),
        (
            "IPv6 without quotes, as some write it",
            &["for=[2001:db8::1]:4711"],
            "2001:db8::1",
        ),
        ("IPv6 without brackets", &["for=\"2001:db8::1\""], PROXY),
        ("a zone", &["for=\"[fe80::1%25eth0]\""], PROXY),
        ("IPv4 and a port", &["for=\"192.0.2.1:4711\""], "192.0.2.1"),
        ("mapped", &["for=\"[::ffff:192.0.2.1]\""], "192.0.2.1"),
        ("escapes", &["for=\"\\1\\92.0.2.\\1\""], "192.0.2.1"),
        (
            "an escaped quote in another parameter",
            &["x=\"a\\\"b\";for=192.0.2.1"],
            "192.0.2.1",
        ),
        (
            "a comma in a string",
            &["x=\"a, for=198.51.100.9\";for=192.0.2.1"],
            "192.0.2.1",
        ),
        (
            "a semicolon in a string",
            &["x=\"a;for=198.51.100.9\";for=192.0.2.1"],
            "192.0.2.1",
        ),
        (
            "a forged element to the left",
            &["for=198.51.100.9, for=192.0.2.1"],
            "192.0.2.1",
        ),
        (
            "a forged line before",
            &["for=198.51.100.9", "for=192.0.2.1"],
            "192.0.2.1",
        ),
        (
            "an unfinished string to the left",
            &["for=\"198.51.100.9, for=192.0.2.1"],
            "192.0.2.1",
        ),
        (
            "one that swallows a quote",
            &["for=\"a\\, for=\"[2001:db8::1]\""],
            "2001:db8::1",
        ),
        (
            "an unfinished string on a line before",
            &["for=\"", "for=192.0.2.1, for=10.0.0.2"],
            "192.0.2.1",
        ),
        ("unknown", &["for=198.51.100.9, for=unknown"], PROXY),
        ("hidden", &["for=198.51.100.9, for=_hidden"], PROXY),
        (
            "hidden behind a trusted proxy",
            &["for=198.51.100.9, for=\"_gazonk\", for=10.0.0.2"],
            "10.0.0.2",
        ),
        (
            "an element without for is a hop",
            &["for=198.51.100.9, proto=https"],
            PROXY,
        ),
        ("an empty element is a hop", &["for=198.51.100.9, "], PROXY),
        ("for twice", &["for=192.0.2.1;for=198.51.100.9"], PROXY),
        ("no pair", &["192.0.2.1"], PROXY),
        ("junk after a string", &["for=\"192.0.2.1\"x"], PROXY),
        (
            "a name that only ends in for",
            &["xfor=198.51.100.9"],
            PROXY,
        ),
        ("empty pairs", &[";for=192.0.2.1;"], "192.0.2.1"),
        ("blanks around the sign", &["for = 192.0.2.1"], PROXY),
        (
            "all trusted: the left-most",
            &["for=10.0.0.9, for=10.0.0.2"],
            "10.0.0.9",
        ),
    ];
    for (what, lines, expected) in cases {
        let lines: Vec<_> = lines.iter().map(|line| ("forwarded", *line)).collect();
        assert_eq!(
            client(Forwarded, PROXY, &lines),
            expected,
            "{what}: {lines:?}"
        );
    }
}

#[test]
fn source_is_never_replaced_by_another() {
    let both = [
        ("forwarded", "for=198.51.100.9"),
        ("x-forwarded-for", "192.0.2.1"),
    ];
    assert_eq!(client(XForwardedFor, PROXY, &both), "192.0.2.1");
    assert_eq!(client(Forwarded, PROXY, &both), "198.51.100.9");
    assert_eq!(client(Forwarded, PROXY, &both[1..]), PROXY);
    assert_eq!(client(XForwardedFor, PROXY, &both[..1]), PROXY);
    assert_eq!(client(XRealIp, PROXY, &both), PROXY);
}

#[test]
fn single_header_holds_one_address() {
    let cases: [(&str, Source, &str, &[&str], &str); 15] = [
        (
            "from a proxy",
            CfConnectingIp,
            PROXY,
            &["192.0.2.1"],
            "192.0.2.1",
        ),
        (
            "IPv6",
            CfConnectingIp,
            PROXY,
            &["2001:db8::1"],
            "2001:db8::1",
        ),
        (
            "from another peer",
            CfConnectingIp,
            "192.0.2.1",
            &["198.51.100.9"],
            "192.0.2.1",
        ),
        ("absent", CfConnectingIp, PROXY, &[], PROXY),
        (
            "twice",
            CfConnectingIp,
            PROXY,
            &["198.51.100.9", "192.0.2.1"],
            PROXY,
        ),
        (
            "twice the same",
            CfConnectingIp,
            PROXY,
            &["192.0.2.1", "192.0.2.1"],
            PROXY,
        ),
        (
            "a list",
            CfConnectingIp,
            PROXY,
            &["198.51.100.9, 192.0.2.1"],
            PROXY,
        ),
        ("junk", CfConnectingIp, PROXY, &["localhost"], PROXY),
        ("empty", CfConnectingIp, PROXY, &[""], PROXY),
        (
            "CloudFront",
            CloudFrontViewerAddress,
            PROXY,
            &["192.0.2.1:46532"],
            "192.0.2.1",
        ),
        (
            "CloudFront, IPv6",
            CloudFrontViewerAddress,
            PROXY,
            &["2001:db8::1:46532"],
            "2001:db8::1",
        ),
        (
            "CloudFront, long",
            CloudFrontViewerAddress,
            PROXY,
            &["2001:db8:1:2:3:4:5:6:80"],
            "2001:db8:1:2:3:4:5:6",
        ),
        (
            "CloudFront, no port",
            CloudFrontViewerAddress,
            PROXY,
            &["192.0.2.1"],
            PROXY,
        ),
        (
            "CloudFront, an empty port",
            CloudFrontViewerAddress,
            PROXY,
            &["192.0.2.1:"],
            PROXY,
        ),
        (
            "CloudFront, from another peer",
            CloudFrontViewerAddress,
            "192.0.2.1",
            &["198.51.100.9:1"],
            "192.0.2.1",
        ),
    ];
    for (what, source, peer, lines, expected) in cases {
        let name = if source == CfConnectingIp {
            "cf-connecting-ip"
        } else {
            "cloudfront-viewer-address"
        };
        let lines: Vec<_> = lines.iter().map(|line| (name, *line)).collect();
        assert_eq!(client(source, peer, &lines), expected, "{what}: {lines:?}");
    }
}

#[test]
fn hops_are_trusted_by_their_number() {
    let cases: [(&str, u8, &str, &str, &str); 10] = [
        ("one", 1, PROXY, "198.51.100.9, 192.0.2.1", "192.0.2.1"),
        (
            "two",
            2,
            PROXY,
            "198.51.100.9, 192.0.2.1, 203.0.113.7",
            "192.0.2.1",
        ),
        (
            "rotation buys nothing",
            2,
            PROXY,
            "198.51.100.10, 192.0.2.1, 203.0.113.7",
            "192.0.2.1",
        ),
        (
            "trusted whatever their addresses",
            1,
            "203.0.113.7",
            "192.0.2.1",
            "192.0.2.1",
        ),
        (
            "without the peer's address",
            1,
            "",
            "198.51.100.9, 192.0.2.1",
            "192.0.2.1",
        ),
        ("too few: the peer", 2, PROXY, "192.0.2.1", PROXY),
        (
            "junk before the client",
            2,
            PROXY,
            "198.51.100.9, junk",
            PROXY,
        ),
        (
            "junk in the client's place",
            2,
            PROXY,
            "198.51.100.9, junk, 203.0.113.7",
            "203.0.113.7",
        ),
        (
            "junk beyond the client",
            1,
            PROXY,
            "junk, 192.0.2.1",
            "192.0.2.1",
        ),
        ("the other family", 1, PROXY, "2001:db8::1", "2001:db8::1"),
    ];
    for (what, hops, peer, line, expected) in cases {
        let lines = [("x-forwarded-for", line)];
        assert_eq!(
            counted(Proxies::hops(hops), XForwardedFor, peer, &lines),
            expected,
            "{what}"
        );
    }
    let lines = [("forwarded", "for=198.51.100.9, for=192.0.2.1, proto=https")];
    assert_eq!(
        counted(Proxies::hops(1), Forwarded, PROXY, &lines),
        PROXY,
        "the client's hop has no address"
    );
    let lines = [("x-real-ip", "192.0.2.1")];
    assert_eq!(
        counted(Proxies::hops(1), XRealIp, "203.0.113.7", &lines),
        "192.0.2.1"
    );
}

#[test]
fn long_list_is_read_partially() {
    let mut entries = vec!["198.51.100.9"; 5_000];
    entries.push("192.0.2.1");
    let long = entries.join(",");
    assert_eq!(
        client(XForwardedFor, PROXY, &[("x-forwarded-for", &long)]),
        "192.0.2.1"
    );

    // 32 entries of trusted proxies are read, the 33rd is not.
    let behind = |proxies: usize| {
        let list = format!("192.0.2.1{}", ", 10.0.0.2".repeat(proxies));
        client(XForwardedFor, PROXY, &[("x-forwarded-for", &list)])
    };
    assert_eq!(behind(31), "192.0.2.1");
    assert_eq!(behind(32), "10.0.0.2");

    // 4 KiB are read, and an entry that is cut off there is ignored.
    let padded = |blanks: usize| {
        let list = format!("192.0.2.1,{}10.0.0.2", " ".repeat(blanks));
        client(XForwardedFor, PROXY, &[("x-forwarded-for", &list)])
    };
    assert_eq!(padded(4_079), "192.0.2.1");
    assert_eq!(padded(4_080), "10.0.0.2");
    assert_eq!(padded(4_088), "10.0.0.2");
    assert_eq!(padded(4_089), PROXY);

    // The bounds are the same for many lines, and for strings that do not end.
    let lines = vec![("x-forwarded-for", "10.0.0.2"); 40];
    assert_eq!(client(XForwardedFor, PROXY, &lines), "10.0.0.2");
    let escapes = format!("for=198.51.100.9, for=\"{}\"", "\\".repeat(50_000));
    assert_eq!(client(Forwarded, PROXY, &[("forwarded", &escapes)]), PROXY);
}
