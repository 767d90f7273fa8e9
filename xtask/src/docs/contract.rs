//! The author's reference, `docs/contract.md`, and the list of files in `wit/README.md`, written from the contract's own
//! comments.

use std::{fmt::Write as _, fs};

use anyhow::{Context, Result};
use wit_parser::{Docs, Function, Interface, InterfaceId, Resolve, Type, TypeDefKind, TypeId, WorldItem};

use crate::repo::Repo;

/// The whole page.
pub fn page(repo: &Repo) -> Result<String> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(repo.root().join("wit/v0.1"))?;
    let package = &resolve.packages[package];
    let mut out = format!(
        "# The contract\n\n<!-- Written by `cargo xtask docs` from the comments in wit/. Change those. -->\n\nThe WIT package \
         `{}`: everything that a feature may import and export. Names here are WIT's; each language's bindings turn \
         them into its own.\n",
        package.name
    );
    let mut interfaces: Vec<(&String, InterfaceId)> = package.interfaces.iter().map(|(name, id)| (name, *id)).collect();
    interfaces.sort();
    let exported = exported(&resolve);
    for (title, about, wanted) in [
        ("What a feature imports", "Services, and registrars for what it contributes.", false),
        ("What a feature exports", "`lifecycle`, and an interface for each kind of contribution.", true),
    ] {
        let _ = write!(out, "\n## {title}\n\n{about}\n");
        for (name, id) in interfaces.iter().filter(|(_, id)| exported.contains(id) == wanted) {
            interface(&mut out, &resolve, name, &resolve.interfaces[*id]);
        }
    }
    out.push_str("\n## Worlds\n\nWhat bindings are generated from.\n\n| world | is |\n| --- | --- |\n");
    for (name, id) in &package.worlds {
        let about = resolve.worlds[*id].docs.contents.as_deref().unwrap_or_default();
        let _ = writeln!(out, "| `{name}` | {} |", about.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    Ok(out)
}

/// The page about the folder, with the list of its files as they say of themselves.
pub fn readme(repo: &Repo) -> Result<String> {
    let path = repo.root().join("wit/README.md");
    let page = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let (head, rest) = page.split_once(LIST).with_context(|| format!("{} has no list of files", path.display()))?;
    let tail = rest.trim_start();
    let rows = tail.lines().take_while(|line| line.starts_with('|'));
    let tail = &tail[rows.map(|row| row.len() + 1).sum::<usize>()..];
    let folder = repo.root().join("wit/v0.1");
    let mut files: Vec<_> = fs::read_dir(&folder)?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    let mut out = format!("{head}{LIST}\n| --- | --- |\n");
    for file in files {
        let text = fs::read_to_string(file.path())?;
        let _ = writeln!(out, "| `{}` | {} |", file.file_name().display(), abouts(&text).join(" "));
    }
    Ok(out + tail)
}

/// The head of the list in [`readme`].
const LIST: &str = "| file | what |";

/// What a file of the contract says of each of its interfaces, in a sentence, and of its grant; or what it says of itself,
/// without one.
fn abouts(file: &str) -> Vec<String> {
    let about = |text: &str| {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut sentences = text.trim_end_matches('.').split(". ");
        let first = sentences.next().unwrap_or_default();
        let grant = sentences.find(|it| it.starts_with("Capability ") || it.starts_with("Needs no capability"));
        let grant = grant.map(|grant| format!(" {grant}.")).unwrap_or_default();
        format!("{first}.{grant}")
    };
    let (mut found, mut above) = (Vec::new(), String::new());
    for line in file.lines() {
        if let Some(comment) = line.strip_prefix("///") {
            above.push_str(comment);
            above.push('\n');
        } else {
            // What follows a blank line is not about what comes first.
            let first = above.split("\n\n").next().unwrap_or_default();
            if line.starts_with("interface ") {
                found.push(about(first));
            }
            above.clear();
        }
    }
    if found.is_empty() {
        found.extend(file.lines().find_map(|line| line.strip_prefix("// ")).map(about));
    }
    found
}

/// The interfaces that some world exports.
fn exported(resolve: &Resolve) -> Vec<InterfaceId> {
    let exports = resolve.worlds.iter().flat_map(|(_, world)| world.exports.values());
    exports
        .filter_map(|item| match item {
            WorldItem::Interface { id, .. } => Some(*id),
            _ => None,
        })
        .collect()
}

fn interface(out: &mut String, resolve: &Resolve, name: &str, interface: &Interface) {
    let _ = write!(out, "\n### {name}\n");
    paragraph(out, &interface.docs, "");
    for (name, id) in &interface.types {
        let definition = &resolve.types[*id];
        // What is used from another interface is documented there.
        if matches!(definition.kind, TypeDefKind::Type(Type::Id(_))) {
            continue;
        }
        let _ = write!(out, "\n#### {} `{name}`\n", definition.kind.as_str());
        paragraph(out, &definition.docs, "");
        members(out, resolve, &definition.kind);
        let methods: Vec<&Function> =
            interface.functions.values().filter(|function| function.kind.resource() == Some(*id)).collect();
        if !methods.is_empty() {
            out.push('\n');
            methods.iter().for_each(|method| item(out, &signature(resolve, method), &method.docs));
        }
    }
    let free: Vec<&Function> =
        interface.functions.values().filter(|function| function.kind.resource().is_none()).collect();
    if !free.is_empty() {
        out.push('\n');
        free.iter().for_each(|function| item(out, &signature(resolve, function), &function.docs));
    }
}

/// Fields and cases.
fn members(out: &mut String, resolve: &Resolve, kind: &TypeDefKind) {
    let with = |name: &str, ty: Option<&Type>| match ty {
        Some(ty) => format!("{name}({})", type_name(resolve, ty)),
        None => name.to_owned(),
    };
    let members: Vec<(String, &Docs)> = match kind {
        TypeDefKind::Record(record) => {
            let field = |field: &wit_parser::Field| format!("{}: {}", field.name, type_name(resolve, &field.ty));
            record.fields.iter().map(|it| (field(it), &it.docs)).collect()
        }
        TypeDefKind::Variant(variant) => {
            variant.cases.iter().map(|it| (with(&it.name, it.ty.as_ref()), &it.docs)).collect()
        }
        TypeDefKind::Enum(cases) => cases.cases.iter().map(|it| (it.name.clone(), &it.docs)).collect(),
        TypeDefKind::Flags(flags) => flags.flags.iter().map(|it| (it.name.clone(), &it.docs)).collect(),
        _ => Vec::new(),
    };
    if !members.is_empty() {
        out.push('\n');
        members.iter().for_each(|(name, docs)| item(out, name, docs));
    }
}

fn item(out: &mut String, code: &str, docs: &Docs) {
    // A line of its own, as Markdown has it.
    let end = if docs.contents.is_some() { "\\" } else { "" };
    let _ = writeln!(out, "- `{code}`{end}");
    paragraph(out, docs, "  ");
}

fn paragraph(out: &mut String, docs: &Docs, indent: &str) {
    let Some(text) = &docs.contents else { return };
    if indent.is_empty() {
        out.push('\n');
    }
    for line in text.trim().lines() {
        let line = format!("{indent}{line}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// `send: func(data: list<u8>) -> result<_, error>`, without the receiver of a method.
fn signature(resolve: &Resolve, function: &Function) -> String {
    let is_static = matches!(function.kind, wit_parser::FunctionKind::Static(_));
    let receiver = usize::from(function.kind.resource().is_some() && !is_static);
    let params = function.params.iter().skip(receiver);
    let params: Vec<String> =
        params.map(|param| format!("{}: {}", param.name, type_name(resolve, &param.ty))).collect();
    let result = function.result.as_ref().map(|ty| format!(" -> {}", type_name(resolve, ty))).unwrap_or_default();
    let word = if is_static { "static func" } else { "func" };
    format!("{}: {word}({}){result}", function.item_name(), params.join(", "))
}

fn type_name(resolve: &Resolve, ty: &Type) -> String {
    match ty {
        Type::Id(id) => defined(resolve, *id),
        Type::Bool => "bool".into(),
        Type::String => "string".into(),
        Type::Char => "char".into(),
        // `U8` is `u8`, and so on.
        other => format!("{other:?}").to_lowercase(),
    }
}

fn defined(resolve: &Resolve, id: TypeId) -> String {
    let definition = &resolve.types[id];
    if let Some(name) = &definition.name {
        return name.clone();
    }
    let name = |ty: &Type| type_name(resolve, ty);
    let part = |ty: &Option<Type>| ty.as_ref().map_or_else(|| "_".to_owned(), name);
    match &definition.kind {
        TypeDefKind::List(ty) => format!("list<{}>", name(ty)),
        TypeDefKind::Option(ty) => format!("option<{}>", name(ty)),
        TypeDefKind::Result(result) if result.ok.is_none() && result.err.is_none() => "result".into(),
        TypeDefKind::Result(result) => format!("result<{}, {}>", part(&result.ok), part(&result.err)),
        TypeDefKind::Tuple(tuple) => {
            format!("tuple<{}>", tuple.types.iter().map(name).collect::<Vec<_>>().join(", "))
        }
        TypeDefKind::Handle(wit_parser::Handle::Borrow(id)) => format!("borrow<{}>", defined(resolve, *id)),
        TypeDefKind::Handle(wit_parser::Handle::Own(id)) => defined(resolve, *id),
        other => other.as_str().to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is a result")]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_it_is_in_a_sentence_an_interface() {
        let file = "// Lights. For all.\npackage a:b;\n\n/// A lamp. It\n/// shines. Capability `x`.\ninterface lamp {\n    /// On. Off.\n    \
                    on: func();\n}\n\n/// What a lamp\n/// exports\n///\n/// Always.\ninterface bulb {}\n";
        assert_eq!(abouts(file), ["A lamp. Capability `x`.", "What a lamp exports."]);
        assert_eq!(abouts("// Worlds. Of all.\nworld w {}\n"), ["Worlds."]);
    }

    #[test]
    fn the_page_about_the_folder_has_every_file() {
        let repo = Repo::open(true).unwrap();
        let page = fs::read_to_string(repo.root().join("wit/README.md")).unwrap();
        assert_eq!(page, readme(&repo).unwrap(), "write it with `cargo xtask docs`");
        assert!(page.contains("| `timers.wit` | ") && !page.contains(" |  |"), "{page}");
    }
}
