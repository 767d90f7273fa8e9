//! An OCI registry of others on this machine: Docker's, which Debian has as `docker-registry`.

use std::env;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::home::Home;
use crate::process::Process;

/// What a package's layer is called.
const LAYER: &str = "application/wasm";
/// The digest of `{}`, which stands where an image has its configuration.
const EMPTY: &str = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

/// The password of [`Registry::ACCOUNT`], as bcrypt has it.
const HASH: &str = "$2a$05$abcdefghijklmnopqrstuupx2xBUC4954936wVIjyyPHmUBFu0wCW";

/// A registry that serves on loopback, in a folder of its own. Dropping it ends it.
#[derive(Debug)]
pub struct Registry {
    address: String,
    _process: Process,
    _folder: Home,
}

impl Registry {
    /// The account that [`start_with_account`](Self::start_with_account) lets in: name and password.
    pub const ACCOUNT: (&str, &str) = ("anna", "open sesame");

    /// Starts one, if the program is there: `CONDUCTOR_REGISTRY` says where, and `cargo xtask test` sets it.
    pub fn start() -> Option<Self> {
        Self::start_as(false)
    }

    /// The same; it accepts only [`ACCOUNT`](Self::ACCOUNT).
    pub fn start_with_account() -> Option<Self> {
        Self::start_as(true)
    }

    fn start_as(account: bool) -> Option<Self> {
        let Some(program) = env::var_os("CONDUCTOR_REGISTRY") else {
            eprintln!("SKIPPED: CONDUCTOR_REGISTRY names no docker-registry; `cargo xtask test` says why");
            return None;
        };
        let folder = Home::untouched();
        let mut config = json!({
            "version": "0.1",
            "storage": { "filesystem": { "rootdirectory": folder.path() } },
            // Any port that is free.
            "http": { "addr": "127.0.0.1:0" },
        });
        if account {
            let accounts = folder.write("accounts", format!("{}:{HASH}\n", Self::ACCOUNT.0));
            config["auth"] = json!({ "htpasswd": { "realm": "tests", "path": accounts } });
        }
        // JSON is YAML.
        let config = folder.write("registry.yml", config.to_string());
        let process =
            Process::start(Command::new(program).arg("serve").arg(config).env("OTEL_TRACES_EXPORTER", "none"));
        let line = process.err.line("listening on ");
        let address = line.split("listening on ").nth(1).unwrap();
        let address = address.split(['"', ' ', ',']).next().unwrap().to_owned();
        Some(Self { address, _process: process, _folder: folder })
    }

    /// `oci://<this registry>/<name>:<tag>`.
    pub fn reference(&self, name: &str, tag: &str) -> String {
        format!("oci://{}/{name}:{tag}", self.address)
    }

    /// Puts a package there, as an image with one layer. `digest` is its SHA-256, in hex.
    pub fn push(&self, name: &str, tag: &str, package: &Path, digest: &str) {
        let package = std::fs::read(package).unwrap();
        self.blob(name, digest, &package);
        self.blob(name, EMPTY, b"{}");
        let entry = |kind: &str, digest: &str, size: usize| json!({ "mediaType": kind, "digest": format!("sha256:{digest}"), "size": size });
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": entry("application/vnd.oci.empty.v1+json", EMPTY, 2),
            "layers": [entry(LAYER, digest, package.len())],
        });
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let path = format!("/v2/{name}/manifests/{tag}");
        self.ask("PUT", &path, kind, manifest.to_string().as_bytes(), 201);
    }

    /// Uploads are begun, and then put where the registry says.
    fn blob(&self, name: &str, digest: &str, content: &[u8]) {
        let head = self.ask("POST", &format!("/v2/{name}/blobs/uploads/"), LAYER, b"", 202);
        let location = head.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap();
        let path = location.trim_start_matches("http://").trim_start_matches(&self.address);
        self.ask("PUT", &format!("{path}&digest=sha256:{digest}"), "application/octet-stream", content, 201);
    }

    /// One request; returns the head of the answer.
    fn ask(&self, method: &str, path: &str, kind: &str, body: &[u8], wanted: u16) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (host, length) = (&self.address, body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: {kind}\r\n\
             content-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {wanted}")), "{method} {path}: {answer}");
        answer.split("\r\n\r\n").next().unwrap().to_owned()
    }
}
