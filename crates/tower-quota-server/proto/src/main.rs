//! Generates the messages of the server, or with `--check` compares them with the committed files.

use std::path::Path;
use std::{env, fs};

const PROTOS: [&str; 3] = [
    "envoy/service/discovery/v3/ads.proto",
    "envoy/service/ratelimit/v3/rls.proto",
    "ratelimit/config/ratelimit/v3/rls_conf.proto",
];

/// The messages that `/json` reads.
const JSON: [&str; 2] = [
    ".envoy.service.ratelimit.v3.RateLimitRequest",
    ".envoy.extensions.common.ratelimit.v3",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let protos = Path::new(env!("CARGO_MANIFEST_DIR"));
    let committed = protos.join("../src/messages/generated");
    if env::args().nth(1).as_deref() != Some("--check") {
        fs::create_dir_all(&committed)?;
        return generate(protos, &committed);
    }
    let generated = tempfile::tempdir()?;
    generate(protos, generated.path())?;
    for file in fs::read_dir(generated.path())? {
        let name = file?.file_name();
        if fs::read(generated.path().join(&name))? != fs::read(committed.join(&name))? {
            return Err(format!("{} differs: run scripts/messages", name.display()).into());
        }
    }
    Ok(())
}

fn generate(protos: &Path, out: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let files = protox::compile(PROTOS, [protos])?;
    let mut builder = tonic_prost_build::configure();
    for message in JSON {
        let reader = "#[derive(::serde::Deserialize)]\n\
            #[serde(default, deny_unknown_fields, rename_all = \"camelCase\")]";
        builder = builder.message_attribute(message, reader);
    }
    builder
        .build_transport(false)
        .emit_rerun_if_changed(false)
        .out_dir(out)
        .include_file("mod.rs")
        .compile_fds(files)?;
    Ok(())
}
