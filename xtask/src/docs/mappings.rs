//! Everything that a mapping can be made of: `docs/mappings.md`, written from the JSON Schema that
//! `conductor config schema` prints, with the tests of each part. A part without tests is an error.

use std::{collections::BTreeMap, fmt::Write as _, fs, process::Command};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{host, process, repo::Repo};

/// The folder with the parts' tests.
const TESTS: &str = "host/host/tests/parts";

/// What the page says before a table of variants: of which definition, told apart by which key.
const UNIONS: [Union; 5] = [
    Union {
        title: "Triggers",
        kind: "trigger",
        definition: "Trigger",
        tag: "type",
        about: "What a mapping waits for. MIDI channels count from 0, as on the wire, and from 1 by name: `\"ch1\"`. \
                Where a number may be a range, it is written `\"36..51\"` or `\"C2..D#3\"`, with C4 as middle C, and \
                `{n}` in the action is the position in it, from 0. All of them take `device`:",
    },
    Union {
        title: "Conditions",
        kind: "condition",
        definition: "Condition",
        tag: "type",
        about: "What else must be so for a mapping to fire.",
    },
    Union { title: "Actions", kind: "action", definition: "Action", tag: "type", about: "What a mapping does." },
    Union {
        title: "MIDI messages",
        kind: "message",
        definition: "MidiMessage",
        tag: "message_type",
        about: "What `SendMidi` and `feedback` send, by `message_type`. A number may be fixed, or an \
                [expression](expressions.md) of the event's numbers and variables: `\"{n}+36\"`, \
                `\"{value -> 20..100}\"`.",
    },
    Union {
        title: "Matchers",
        kind: "matcher",
        definition: "Matcher",
        tag: "type",
        about: "What tells a port to be a binding's, the most specific first.",
    },
];

struct Union {
    title: &'static str,
    kind: &'static str,
    definition: &'static str,
    tag: &'static str,
    about: &'static str,
}

/// The tests of one part.
#[derive(Default)]
struct Proof {
    file: String,
    /// Tests on virtual time that say exactly which rules fire, and when.
    timelines: usize,
    /// Tests through a whole host, from port to effect.
    end_to_end: usize,
}

/// The proofs by the heading of their section: a kind and a name.
type Proofs = BTreeMap<String, Proof>;

/// The whole page.
pub fn page(repo: &Repo) -> Result<String> {
    let text = printed(repo, &["config", "schema"])?;
    let schema = serde_json::from_str(&text).context("what `conductor config schema` prints is no JSON")?;
    let page = Page { schema, proofs: proofs(repo)? };
    page.write()
}

/// What the host's program prints for these arguments.
pub fn printed(repo: &Repo, arguments: &[&str]) -> Result<String> {
    process::read(Command::new(host::ready(repo)?).args(arguments))
}

/// What the sections of the tests' files prove.
fn proofs(repo: &Repo) -> Result<Proofs> {
    let folder = repo.root().join(TESTS);
    let mut proofs = Proofs::new();
    let files = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for path in files.flatten().map(|file| file.path()).filter(|path| path.extension().is_some_and(|it| it == "txt")) {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for section in text.split("=== ").skip(1) {
            let (heading, rest) = section.split_once('\n').unwrap_or((section, ""));
            let proof = proofs.entry(heading.to_owned()).or_default();
            proof.file.clone_from(&file);
            for test in rest.split("\ntest \"").skip(1) {
                let has = |start: &str| test.lines().any(|line| line.starts_with(start));
                proof.timelines += usize::from(has("->"));
                proof.end_to_end += usize::from(has("=>"));
            }
        }
    }
    Ok(proofs)
}

struct Page {
    schema: Value,
    proofs: Proofs,
}

impl Page {
    fn write(&self) -> Result<String> {
        let mut out = String::from(
            "# What a mapping is made of\n\n\
             <!-- Written by `cargo xtask docs` from `conductor config schema` and host/host/tests/parts. -->\n\n\
             Every part with its parameters; those in **bold** have to be there. How parts go together is described in \
             [configuration.md](configuration.md). The last columns count each part's tests: **timelines** say which \
             rules fire at which time, **end to end** what comes out of a whole host for what comes in at its \
             ports. They are in [host/host/tests/parts](../host/host/tests/parts), readable as examples.\n",
        );
        let mapping = self.parameters(&self.schema["$defs"]["Mapping"], "").replace("<br>", "\n- ");
        let _ = write!(
            out,
            "\n## The mapping itself\n\nAn entry of a mode's `mappings`, or of `global_mappings`.\n\n- {mapping}\n"
        );
        let mut missing = Vec::new();
        for union in UNIONS {
            let definition = &self.schema["$defs"][union.definition];
            let _ = write!(out, "\n## {}\n\n{}\n", union.title, union.about);
            // What is common to all variants.
            let common = self.parameters(definition, union.tag);
            if !common.is_empty() {
                let _ = write!(out, "\n{}\n", common.replace("<br>", "\n"));
            }
            let _ = write!(
                out,
                "\n| {} | is | parameters | timelines | end to end |\n| --- | --- | --- | --- | --- |\n",
                union.tag
            );
            let variants = definition["oneOf"].as_array().or(definition["anyOf"].as_array());
            for variant in variants.with_context(|| format!("the schema has no {}", union.definition))? {
                let tag = &variant["properties"][union.tag];
                let name = tag["const"].as_str().or(tag["enum"][0].as_str()).unwrap_or("<feature>:<Action>");
                let parameters = self.parameters(variant, union.tag);
                self.row(&mut out, union.kind, name, &variant["description"], &parameters, &mut missing);
            }
        }
        self.transforms(&mut out, &mut missing)?;
        if !missing.is_empty() {
            bail!("{TESTS} has no timeline test, or no end-to-end test, of {}", missing.join(", "));
        }
        Ok(out)
    }

    fn transforms(&self, out: &mut String, missing: &mut Vec<String>) -> Result<()> {
        out.push_str(
            "\n## Transforms\n\nWhat `MidiForward` may change on the way, under `transform`, in this order: smoothing, \
             `input_range`, `velocity_scale`, `velocity_offset`, `invert_value`, `curve`, `output_range`, takeover.\n\n\
             | key | is | parameters | timelines | end to end |\n| --- | --- | --- | --- | --- |\n",
        );
        let keys = &self.schema["$defs"]["MidiTransform"]["properties"];
        for (key, schema) in keys.as_object().context("the schema has no transforms")? {
            let refers = self.resolve(schema);
            if key == "curve" {
                for curve in refers["oneOf"].as_array().context("the schema has no curves")? {
                    let table = curve["properties"].as_object().and_then(|keys| keys.keys().next());
                    let name = curve["const"].as_str().or(table.map(String::as_str)).unwrap_or_default();
                    self.row(out, "transform", &format!("curve {name}"), &curve["description"], "", missing);
                }
                continue;
            }
            let inside =
                if refers["properties"].is_object() { self.parameters(refers, "") } else { self.choices(refers) };
            self.row(out, "transform", key, &schema["description"], &inside, missing);
        }
        Ok(())
    }

    fn row(&self, out: &mut String, kind: &str, name: &str, is: &Value, parameters: &str, missing: &mut Vec<String>) {
        let heading = format!("{kind} {name}");
        match self.proofs.get(&heading) {
            Some(proof) if proof.timelines > 0 && proof.end_to_end > 0 => {
                let _ = writeln!(
                    out,
                    "| `{name}` | {} | {parameters} | {} | {} in [{file}](../{TESTS}/{file}) |",
                    cell(is.as_str().unwrap_or_default()),
                    proof.timelines,
                    proof.end_to_end,
                    file = proof.file,
                );
            }
            _ => missing.push(heading),
        }
    }

    /// The keys of a table, each with what its own description says of range, unit and default.
    fn parameters(&self, table: &Value, tag: &str) -> String {
        let required = |key: &str| table["required"].as_array().is_some_and(|keys| keys.iter().any(|it| it == key));
        let keys = table["properties"].as_object().into_iter().flatten().filter(|(key, _)| *key != tag);
        let lines = keys.map(|(key, schema)| {
            let name = if required(key) { format!("**`{key}`**") } else { format!("`{key}`") };
            let of = if schema["items"].is_object() { &schema["items"] } else { schema };
            let choices = self.choices(self.resolve(of));
            let about = cell(schema["description"].as_str().unwrap_or_default());
            format!("{name}: {about}{}{choices}", if choices.is_empty() { "" } else { " One of " })
        });
        let mut lines: Vec<String> = lines.collect();
        // Where a table is one of several, they are a list of their own.
        if table["oneOf"].is_array() && !tag.is_empty() && table["properties"][tag].is_object() {
            lines.push("and those of one of the [MIDI messages](#midi-messages)".to_owned());
        }
        lines.join("<br>")
    }

    /// What a schema refers to, or itself.
    fn resolve<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let name = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/$defs/"));
        name.map_or(schema, |name| &self.schema["$defs"][name])
    }

    /// The texts that a value may be, where there are only some.
    fn choices(&self, schema: &Value) -> String {
        let variants = schema["oneOf"].as_array().into_iter().flatten();
        let named = variants.filter_map(|variant| variant["const"].as_str());
        let listed = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let all: Vec<String> = named.chain(listed).map(|choice| format!("`\"{choice}\"`")).collect();
        if all.is_empty() { String::new() } else { format!("{}.", all.join(", ")) }
    }
}

/// A text that fits into a cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
