//! A tool that waits for a server: nothing else is in it.

use std::cell::RefCell;

use conductor_feature::http::{Client, Request};
use conductor_feature::tool_registrar::Registrar;
use conductor_feature::{Context, Error, Invocation, Lifecycle, ReadOnlyTools, Reader};

struct PageReader;

thread_local! {
    static CLIENT: RefCell<Option<Client>> = const { RefCell::new(None) };
}

impl Lifecycle for PageReader {
    fn install(ctx: &Context) -> Result<(), Error> {
        CLIENT.set(Some(Client::open(ctx, "pages")?));
        Registrar::open(ctx)?.register("read_page", r#"{"type": "object"}"#, None)
    }
}

impl ReadOnlyTools for PageReader {
    fn call(_name: String, args: String, _: &Invocation, _: &Reader) -> Result<String, Error> {
        let args: serde_json::Value = serde_json::from_str(&args).unwrap_or_default();
        let url = args["url"].as_str().ok_or_else(|| Error::Invalid("`url` is missing".into()))?.to_owned();
        let request = Request { method: "GET".into(), url, headers: Vec::new(), body: Vec::new(), secret: None };
        CLIENT.with_borrow(|client| {
            let client = client.as_ref().ok_or_else(|| Error::Unavailable("there is no client".into()))?;
            let page = client.send(&request)?;
            Ok(serde_json::json!(String::from_utf8_lossy(&page.body)).to_string())
        })
    }
}

conductor_feature::feature!(PageReader, "../feature.toml", [read_only_tools]);
