//! Headers that hold one address.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_quota::key::Source;
use tower_quota_fuzz::{clients, request};

fuzz_target!(|bytes: &[u8]| {
    for (source, name) in [
        (Source::XRealIp, "x-real-ip"),
        (Source::CloudFrontViewerAddress, "cloudfront-viewer-address"),
    ] {
        if let Some(request) = request(name, bytes) {
            let [by_network, by_hops] = clients(&source, &request);
            assert_eq!(by_network, by_hops);
        }
    }
});
