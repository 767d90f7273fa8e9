//! `[llm]`: whether models and agents may be asked at all, and where models may be; and the tables under it that files
//! had before there were `[models]`, `[chat]` and `[mcp]`.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toml_edit::{Item, Table, TableLike};

use super::diagnostic::Diagnostic;
use conductor_config_text::keys::{put_first, rename};

/// Whether models and agents may be asked at all, and where models may be. No plan changes this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Llm {
    /// Whether models may be asked, and agents may work here over MCP; `false` switches both off. Default: true.
    pub enabled: bool,

    /// Whether only models on this computer may be asked: those whose address is one of this machine, unless their
    /// provider passes on to others what it is asked. Default: false.
    pub local_only: bool,
}

impl Default for Llm {
    fn default() -> Self {
        Self { enabled: true, local_only: false }
    }
}

/// The keys of `[llm]` that there were, and what they are for, in the JSON Schema.
pub(super) const OLD_KEYS: [(&str, &str); 4] = [
    ("default_provider", "The old form of `models` under `[chat]`."),
    ("providers", "The old form of `[models]`: `[llm.providers.NAME]` with `base_url` for `url`."),
    ("mcp", "The old form of `[mcp]`."),
    ("a2a", "Ignored: there is no such door."),
];

/// What a key of a model was called.
const OLD_NAMES: [(&str, &str); 1] = [("base_url", "url")];

/// The provider that spoke to what was called so.
fn provider_of(name: &str) -> &'static str {
    match name {
        "anthropic" => "anthropic",
        "openai" => "openai",
        "gemini" | "google" => "gemini",
        "openrouter" => "openrouter",
        "litellm" => "litellm",
        _ => "openai-compatible",
    }
}

/// What of `[llm.mcp]` has no place today, and what to do.
fn dropped(key: &str) -> Option<&'static str> {
    match key {
        "socket_path" => Some("agents find the host by `conductor mcp`, at the socket in its home"),
        "http_enabled" | "http_port" => Some("`http_port` under [api] is the port"),
        "auth_token_env" => Some("tokens are in files of the home, `api.token` among them"),
        _ => None,
    }
}

/// Makes `[models]`, `[chat]` and `[mcp]` of what stands under `[llm]`, in memory, and reports what is dropped. What is not
/// of the expected kind stays, for the checker to refuse.
pub(super) fn upgrade(root: &mut DeTable<'_>, report: &mut dyn FnMut(Diagnostic)) {
    let Some(DeValue::Table(llm)) = root.get_mut("llm").map(Spanned::get_mut) else { return };
    let mut taken = |key: &str, fits: fn(&DeValue<'_>) -> bool| {
        llm.get(key).is_some_and(|value| fits(value.get_ref())).then(|| llm.remove_entry(key)).flatten()
    };
    let is_table = |value: &DeValue<'_>| value.is_table();
    let (default, providers) = (taken("default_provider", |value| value.is_str()), taken("providers", is_table));
    let (mcp, a2a) = (taken("mcp", is_table), taken("a2a", is_table));

    if let Some((key, default)) = default {
        let chat = table_of(root, "chat", &key);
        if let Some(chat) = chat.filter(|chat| !chat.contains_key("models")) {
            let (place, key) = (default.span(), Spanned::new(key.span(), Cow::Borrowed("models")));
            let list = DeValue::Array([default].into_iter().collect());
            chat.insert(key, Spanned::new(place, list));
        }
    }
    if let Some((key, providers)) = providers
        && let DeValue::Table(providers) = providers.into_inner()
    {
        let Some(models) = table_of(root, "models", &key) else { return };
        for (name, mut model) in providers {
            if models.contains_key(name.get_ref().as_ref()) {
                let message = format!("the model `{}` stands under [models], too", name.get_ref());
                report(Diagnostic::error(name.span(), message).with_help("remove one of the two"));
                continue;
            }
            if let DeValue::Table(model) = model.get_mut() {
                for (old, new) in OLD_NAMES {
                    if !model.contains_key(new)
                        && let Some((key, value)) = model.remove_entry(old)
                    {
                        model.insert(Spanned::new(key.span(), Cow::Borrowed(new)), value);
                    }
                }
                if !model.contains_key("provider") {
                    let provider = DeValue::String(Cow::Borrowed(provider_of(name.get_ref())));
                    let key = Spanned::new(name.span(), Cow::Borrowed("provider"));
                    model.insert(key, Spanned::new(name.span(), provider));
                }
            }
            models.insert(name, model);
        }
    }
    if let Some((key, mcp)) = mcp
        && let DeValue::Table(old) = mcp.into_inner()
        && let Some(mcp) = table_of(root, "mcp", &key)
    {
        for (key, value) in old {
            match dropped(key.get_ref()) {
                Some(instead) => {
                    let message = format!("`{}` under [llm.mcp] is ignored", key.get_ref());
                    report(Diagnostic::warning(key.span(), message).with_help(instead));
                }
                None if mcp.contains_key(key.get_ref().as_ref()) => {}
                // What is no key of [mcp] is refused there.
                None => drop(mcp.insert(key, value)),
            }
        }
    }
    if let Some((key, _)) = a2a {
        let message = "[llm.a2a] is ignored: there is no such door";
        report(Diagnostic::warning(key.span(), message).with_help("agents reach the host by `conductor mcp`"));
    }
}

/// The table at the top that has this name, made if there is none. `None` if something else has the name.
fn table_of<'r, 'i>(
    root: &'r mut DeTable<'i>,
    name: &'static str,
    old: &Spanned<Cow<'_, str>>,
) -> Option<&'r mut DeTable<'i>> {
    if !root.contains_key(name) {
        let key = Spanned::new(old.span(), Cow::Borrowed(name));
        root.insert(key, Spanned::new(old.span(), DeValue::Table(DeTable::new())));
    }
    match root.get_mut(name).map(Spanned::get_mut) {
        Some(DeValue::Table(table)) => Some(table),
        _ => None,
    }
}

/// The same in the text: each table stays where it stands, under its name of today.
pub(super) fn migrate(root: &mut Table) {
    let Some(llm) = root.get_mut("llm").and_then(Item::as_table_like_mut) else { return };
    let (default, providers) = (llm.remove("default_provider"), llm.remove("providers"));
    let (mcp, _) = (llm.remove("mcp"), llm.remove("a2a"));
    if let Some(default) = default.and_then(|default| default.into_value().ok()) {
        let chat = within(root, "chat");
        if let Some(chat) = chat.filter(|chat| !chat.contains_key("models")) {
            let list: toml_edit::Array = std::iter::once(default.decorated("", "")).collect();
            chat.insert("models", toml_edit::value(list));
        }
    }
    if let Some(mut providers) = providers
        && let Some(old) = providers.as_table_like_mut()
        && let Some(models) = within(root, "models")
    {
        for (name, mut model) in taken(old) {
            if let Some(model) = model.as_table_like_mut() {
                for (old, new) in OLD_NAMES {
                    rename(model, old, new);
                }
                if !model.contains_key("provider") {
                    model.insert("provider", toml_edit::value(provider_of(&name)));
                    put_first(model, "provider");
                }
            }
            models.insert(&name, model);
        }
    }
    if let Some(mut old) = mcp
        && let Some(old) = old.as_table_like_mut()
    {
        let stays: Vec<_> = taken(old).into_iter().filter(|(key, _)| dropped(key).is_none()).collect();
        if !stays.is_empty()
            && let Some(mcp) = within(root, "mcp")
        {
            for (key, value) in stays {
                if !mcp.contains_key(&key) {
                    mcp.insert(&key, value);
                }
            }
        }
    }
    let is_empty = root.get("llm").and_then(Item::as_table).is_some_and(Table::is_empty);
    if is_empty && root.get("llm").and_then(Item::as_table).is_some_and(|llm| llm.decor().prefix().is_none()) {
        root.remove("llm");
    }
}

/// The table at the top that has this name, made if there is none.
fn within<'r>(root: &'r mut Table, name: &str) -> Option<&'r mut dyn TableLike> {
    if !root.contains_key(name) {
        let mut table = Table::new();
        table.set_implicit(true);
        root.insert(name, Item::Table(table));
    }
    root.get_mut(name)?.as_table_like_mut()
}

/// The entries of a table, in their order.
fn taken(table: &mut dyn TableLike) -> Vec<(String, Item)> {
    let names: Vec<String> = table.iter().map(|(name, _)| name.to_owned()).collect();
    names.into_iter().filter_map(|name| table.remove(&name).map(|item| (name, item))).collect()
}

#[cfg(test)]
mod tests {
    use crate::migrate::migrated;
    use crate::{Llm, parse};

    /// As files had it.
    const OLD: &str = "\
# models
[llm]
enabled = true
default_provider = \"anthropic\"

# the one that is asked
[llm.providers.anthropic] # best
api_key_env = \"ANTHROPIC_API_KEY\" # where it is
model = \"claude\"
max_tokens = 4096
temperature = 0.7

[llm.providers.home]
base_url = \"http://localhost:8000\" # own
model = \"m\"

[llm.mcp]
enabled = true
socket_path = \"~/x.sock\"
http_enabled = false

[llm.a2a]
enabled = true
agent_name = \"Conductor MIDI Mapper\"

[[modes]]
name = \"Play\"
";

    // LLM-7
    #[test]
    fn the_tables_of_old_files_are_read() {
        let loaded = parse(OLD, "c.toml").map_err(|wrong| wrong.render(false)).unwrap();
        let config = &loaded.config;
        assert_eq!((config.llm, &config.chat.models[..]), (Llm::default(), &["anthropic".to_owned()][..]));
        let (claude, home) = (&config.models["anthropic"], &config.models["home"]);
        assert_eq!((&*claude.provider, &*claude.model, claude.max_tokens), ("anthropic", "claude", Some(4096)));
        assert_eq!((claude.api_key_env.as_deref(), claude.temperature), (Some("ANTHROPIC_API_KEY"), Some(0.7)));
        assert_eq!((&*home.provider, home.url.as_deref()), ("openai-compatible", Some("http://localhost:8000")));
        assert!(config.mcp.enabled);
        let warnings = loaded.warnings.render(false);
        for ignored in ["socket_path", "http_enabled", "[llm.a2a]"] {
            assert!(warnings.contains(ignored), "{warnings}");
        }
    }

    #[test]
    fn one_switch_is_for_all_and_one_keeps_to_this_machine() {
        let read = |text: &str| parse(text, "c.toml").unwrap().config.llm;
        assert_eq!(read("[llm]\nenabled = false"), Llm { enabled: false, local_only: false });
        assert_eq!(read("[llm]\nlocal_only = true"), Llm { enabled: true, local_only: true });
    }

    // CFG-3: comments and layout stay.
    #[test]
    fn the_tables_stay_where_they_stand_under_their_names_of_today() {
        let new = migrated(OLD, "c.toml").unwrap();
        assert!(new.starts_with("# models\n[llm]\nenabled = true\n"), "{new}");
        let models = "\
# the one that is asked
[models.anthropic] # best
provider = \"anthropic\"
api_key_env = \"ANTHROPIC_API_KEY\" # where it is
model = \"claude\"
max_tokens = 4096
temperature = 0.7

[models.home]
provider = \"openai-compatible\"
url = \"http://localhost:8000\" # own
model = \"m\"
";
        assert!(new.contains(models), "{new}");
        assert!(new.contains("[mcp]\nenabled = true\n") && new.contains("[chat]\nmodels = [\"anthropic\"]\n"), "{new}");
        assert!(!new.contains("llm.") && !new.contains("default_provider"), "{new}");
        assert_eq!(migrated(&new, "c.toml").unwrap(), new);
        let inline = "llm = { default_provider = 'x', providers = { x = { model = 'm' } } }\n";
        let new = migrated(inline, "c.toml").unwrap();
        assert!(parse(&new, "c.toml").unwrap().config.models.contains_key("x"), "{new}");
    }

    #[test]
    fn what_is_wrong_is_told_where_it_stands() {
        let wrong = |text: &str| parse(text, "c.toml").unwrap_err().render(false);
        let twice = "[models.x]\nprovider = 'p'\nmodel = 'm'\n[llm.providers.x]\nmodel = 'n'\n";
        assert!(wrong(twice).contains("the model `x` stands under [models], too"), "{}", wrong(twice));
        let none = "[llm.providers.x]\nbase_url = 'http://localhost'\n";
        assert!(wrong(none).contains("model"), "{}", wrong(none));
        assert!(wrong("[llm]\nproviders = 1\n").contains("providers"));
        assert!(wrong("[llm.providers.x]\nmodel = 'm'\ntemperature = 9\n").contains("temperature"));
    }
}
