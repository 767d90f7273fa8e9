//! The pages, and the headers that browsers get with them.

use std::io::{Read as _, Write as _};

use conductor_web::Pages;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::stage::SHELL;
use super::{Limits, Stage};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      font-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

fn stage() -> Stage {
    let file = |(name, text): (&str, &str)| {
        let mut compressed = GzEncoder::new(Vec::new(), Compression::best());
        compressed.write_all(text.as_bytes()).unwrap();
        (name.to_owned(), compressed.finish().unwrap().into())
    };
    let files = [("index.html", "<!doctype html>index"), ("assets/app-0a1b2c3d.js", "script"), ("icon.svg", "<svg/>")];
    Stage::with(Limits::default(), Pages::of(files.map(file)))
}

#[test]
fn every_path_without_a_file_is_the_page_and_needs_no_session() {
    let stage = stage();
    for path in ["/", "/index.html", "/live", "/plans/0123?x=1", "/mappings/pad%201"] {
        let answer = stage.ask(&format!("GET {path}"), &[], b"");
        assert_eq!((answer.status, answer.text()), (200, "<!doctype html>index".to_owned()), "{path}");
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(answer.header("cache-control"), Some("no-cache"), "{path}");
    }
    assert_eq!(stage.ask("GET /missing.js", &[], b"").code(), "not_found");
    assert_eq!(stage.ask("POST /live", &[SHELL], b"{}").status, 405);
    assert_eq!(stage.ask("HEAD /", &[], b"").text(), "");
    assert!(stage.host.heads().is_empty(), "the host is not asked for pages");
}

#[test]
fn every_answer_has_the_policy() {
    let stage = stage();
    let cookie = stage.sign_in();
    for (line, headers, status) in [
        ("GET /", vec![], 200),
        ("GET /assets/app-0a1b2c3d.js", vec![], 200),
        ("GET /missing.js", vec![], 404),
        ("GET /sign-in/0", vec![], 401),
        ("GET /v1/status", vec![], 401),
        ("GET /v1/status", vec![&*cookie], 200),
        ("POST /v1/undo", vec![&*cookie], 403),
        ("GET /v1/../x", vec![], 400),
    ] {
        let answer = stage.ask(line, &headers, b"");
        assert_eq!(answer.status, status, "{line}");
        assert_eq!(answer.header("content-security-policy"), Some(POLICY.to_ascii_lowercase().as_str()), "{line}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{line}");
        }
        let kept = status == 200 && !line.contains("/v1/");
        assert!(kept || answer.header("cache-control") == Some("no-store"), "{line}: {answer:?}");
    }
}

#[test]
fn a_file_is_compressed_tagged_and_kept_by_the_browser() {
    let stage = stage();
    let ask = |headers: &[&str]| stage.ask("GET /assets/app-0a1b2c3d.js", headers, b"");
    let (plain, compressed) = (ask(&[]), ask(&["accept-encoding: br, gzip"]));
    let mut text = String::new();
    GzDecoder::new(&*compressed.body).read_to_string(&mut text).unwrap();
    assert_eq!((plain.text(), text), ("script".to_owned(), "script".to_owned()));
    assert_eq!((plain.header("content-encoding"), compressed.header("content-encoding")), (None, Some("gzip")));
    for answer in [&plain, &compressed] {
        assert_eq!(answer.header("content-type"), Some("text/javascript; charset=utf-8"));
        assert_eq!(answer.header("cache-control"), Some("public, max-age=31536000, immutable"));
        assert_eq!(answer.header("vary"), Some("accept-encoding"));
    }
    let (one, other) = (plain.header("etag").unwrap(), compressed.header("etag").unwrap());
    assert!(one != other && one.starts_with('"'), "a strong tag is of the bytes that are sent: {one} {other}");
    let known = ask(&["accept-encoding: gzip", &format!("if-none-match: \"x\", {other}")]);
    assert_eq!((known.status, known.body.len(), known.header("etag")), (304, 0, Some(other)));
    assert_eq!(ask(&[&format!("if-none-match: {other}")]).status, 200);
}

#[test]
fn without_pages_the_server_says_how_to_build_them_and_serves_the_api() {
    let stage = Stage::new(Limits::default());
    let answer = stage.ask("GET /", &[], b"");
    assert!(answer.status == 503 && answer.text().contains("cargo xtask web"), "{answer:?}");
    assert_eq!(stage.ask("GET /v1/status", &[&stage.sign_in()], b"").status, 200);
}
