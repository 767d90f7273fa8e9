//! Schema validation of a parsed file: finds every mistake in it, each with its place.
//!
//! Serde would stop at the first mistake and, inside a union, lose its place. So the tree is walked here
//! beforehand; a tree without mistakes can be deserialized.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use toml::Spanned;
use toml::de::{DeArray, DeFloat, DeInteger, DeTable, DeValue};

use super::action::HOST_ACTIONS;
use super::clock::CLOCK_VARIABLES;
use super::diagnostic::{Diagnostic, Severity};
use super::names::Names;
use super::schema::json_schema;
use super::shape::{Array, Field, Limits, Pair, PairRule, Rest, Role, Shape, ShapeId, Shapes, Table, Text, Variants};
use conductor_expression::Expression;
use conductor_quantity::{CHANNEL, CONTROLLER, NOTE, Note, NumberExpr, PLAIN};
use conductor_stdx::nearest::nearest;
use conductor_stdx::plural::plural;
use conductor_text_formats::hex_len;

static SHAPES: LazyLock<Shapes> = LazyLock::new(|| Shapes::compile(&json_schema()));

/// Finds every mistake in a tree of today's form, and the names in it, which are left to be held against each other.
/// Other spellings of a `type` are replaced with the one that serde knows, and mappings with a mistake by one that does
/// nothing. `guessed` are places where the parser has guessed after a syntax error: nothing is said of those.
pub(super) fn check(
    tree: &mut Spanned<DeTable<'_>>,
    guessed: &[Range<usize>],
    report: &mut dyn FnMut(Diagnostic),
) -> Names<'static> {
    let shapes = &*SHAPES;
    let mut checker = Checker { shapes, names: Names::default(), guessed, errors: Vec::new(), report };
    if let Some((key, _)) = tree.get_ref().get_key_value("clock") {
        CLOCK_VARIABLES.into_iter().for_each(|name| checker.names.give("variable", name, key.span()));
    }
    if let Some(root) = &shapes.root().table {
        let place = tree.span();
        checker.table(place, tree.get_mut(), root);
    }
    checker.names
}

struct Checker<'s, 'r> {
    shapes: &'s Shapes,
    names: Names<'s>,
    guessed: &'r [Range<usize>],
    /// Where the errors are that were found so far.
    errors: Vec<Range<usize>>,
    report: &'r mut dyn FnMut(Diagnostic),
}

/// The keys of lists whose items stand for themselves: with a mistake in one, the others can still be looked at.
const SEPARATE: [&str; 2] = ["mappings", "global_mappings"];

/// What stands for a mapping with a mistake, so that those after it keep their numbers. It does nothing.
const NO_MAPPING: &str =
    "trigger = { type = 'GamepadAnalogStick', axis = 128, dead_zone = 1 }\naction = { type = 'Suppress' }";

fn no_mapping() -> DeValue<'static> {
    DeTable::parse(NO_MAPPING).map_or(DeValue::Boolean(false), |table| DeValue::Table(table.into_inner()))
}

/// Replaces the mappings in which one of these places is, so that a later stage does not say the same again.
pub(super) fn leave_out(root: &mut DeTable<'_>, places: &[Range<usize>]) {
    if let Some(DeValue::Array(modes)) = root.get_mut("modes").map(Spanned::get_mut) {
        for mode in modes.iter_mut() {
            if let DeValue::Table(mode) = mode.get_mut() {
                leave_out_of(mode.get_mut("mappings"), places);
            }
        }
    }
    leave_out_of(root.get_mut("global_mappings"), places);
}

fn leave_out_of(mappings: Option<&mut Spanned<DeValue<'_>>>, places: &[Range<usize>]) {
    let Some(DeValue::Array(mappings)) = mappings.map(Spanned::get_mut) else { return };
    for mapping in mappings.iter_mut() {
        if places.iter().any(|place| holds(mapping, place)) {
            *mapping.get_mut() = what_is_left(mapping, places);
        }
    }
}

/// A mapping that stands for one with mistakes at these places. It does nothing, but for a feature's action in which
/// none is: of that the feature has more to say.
fn what_is_left<'t>(mapping: &mut Spanned<DeValue<'t>>, places: &[Range<usize>]) -> DeValue<'t> {
    let mut left = no_mapping();
    if let (DeValue::Table(left), DeValue::Table(mapping)) = (&mut left, mapping.get_mut())
        && let Some((key, action)) = mapping.remove_entry("action")
    {
        let name = action.get_ref().get("type").and_then(|name| name.get_ref().as_str());
        let is_features = name.is_some_and(|name| !HOST_ACTIONS.contains(&name));
        if is_features && !places.iter().any(|place| holds(&action, place)) {
            left.insert(key, action);
        }
    }
    left
}

/// Whether a place is in a value, or in what belongs to it.
fn holds(value: &Spanned<DeValue<'_>>, place: &Range<usize>) -> bool {
    let within = |span: Range<usize>| span.start <= place.start && place.end <= span.end;
    within(value.span())
        || match value.get_ref() {
            DeValue::Array(items) => items.iter().any(|item| holds(item, place)),
            DeValue::Table(entries) => entries.iter().any(|(key, value)| within(key.span()) || holds(value, place)),
            _ => false,
        }
}

/// What a value is called in a message.
#[derive(Clone, Copy)]
enum Label<'l> {
    Key(&'l str),
    Item(&'l Label<'l>),
}

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => write!(f, "`{}`", key.escape_debug()),
            Self::Item(array) => write!(f, "an item of {array}"),
        }
    }
}

impl<'s> Checker<'s, '_> {
    fn report(&mut self, diagnostic: Diagnostic) {
        if diagnostic.severity == Severity::Error {
            self.errors.push(diagnostic.place.clone());
        }
        let place = &diagnostic.place;
        if !self.guessed.iter().any(|guessed| place.end > guessed.start && place.start < guessed.end) {
            (self.report)(diagnostic);
        }
    }

    /// Reports that something is absent, unless it may be in the part that was not understood.
    fn report_absence(&mut self, diagnostic: Diagnostic) {
        if self.guessed.is_empty() {
            self.report(diagnostic);
        }
    }

    fn value(&mut self, label: Label<'_>, value: &mut Spanned<DeValue<'_>>, shape: ShapeId) {
        let shape = &self.shapes[shape];
        let place = value.span();
        if shape.anything {
            return self.anything(label, value);
        }
        match value.get_mut() {
            DeValue::Boolean(_) if shape.boolean => return,
            DeValue::Integer(integer) => {
                if let Some(limits) = &shape.integer {
                    return self.integer(label, place, integer, shape, limits);
                }
                if let Some(limits) = &shape.number {
                    let written = integer.to_string();
                    let number = to_i64(integer).map(|number| number as f64);
                    return self.number(label, place, number, &written, shape, limits);
                }
            }
            DeValue::Float(float) => {
                if let Some(limits) = &shape.number {
                    let number = to_f64(float);
                    return self.number(label, place, number, float.as_str(), shape, limits);
                }
            }
            DeValue::String(string) => {
                if let Some(text) = &shape.text {
                    return self.text(label, place, string, text);
                }
            }
            DeValue::Array(items) => {
                if let Some(array) = &shape.array {
                    return self.array(label, place, items, array);
                }
            }
            DeValue::Table(entries) => {
                if let Some(table) = &shape.table {
                    return self.table(place, entries, table);
                }
            }
            DeValue::Boolean(_) | DeValue::Datetime(_) => {}
        }
        let found = kind(value.get_ref());
        let message = format!("{label} must be {}, not {found}", kinds(shape));
        self.report(Diagnostic::error(place, message).with_allowed(allowed(shape)));
    }

    fn integer(
        &mut self,
        label: Label<'_>,
        place: Range<usize>,
        integer: &DeInteger<'_>,
        shape: &Shape,
        limits: &Limits<i64>,
    ) {
        let inside = |number| (limits.min..=limits.max).contains(&number);
        if !to_i64(integer).is_some_and(inside) {
            let message = format!("{label} is out of range: {integer}");
            self.report(Diagnostic::error(place, message).with_allowed(allowed(shape)));
        }
    }

    fn number(
        &mut self,
        label: Label<'_>,
        place: Range<usize>,
        number: Option<f64>,
        written: &str,
        shape: &Shape,
        limits: &Limits<f64>,
    ) {
        // Neither infinity nor what is not a number lies between two finite limits.
        let inside = |number| (limits.min..=limits.max).contains(&number);
        if !number.is_some_and(inside) {
            let message = format!("{label} is out of range: {written}");
            self.report(Diagnostic::error(place, message).with_allowed(allowed(shape)));
        }
    }

    fn text(&mut self, label: Label<'_>, place: Range<usize>, string: &str, text: &'s Text) {
        if !text.choices.is_empty() {
            if !text.choices.iter().any(|choice| choice == string) {
                let choices = text.choices.iter().map(String::as_str);
                let message = format!("{label} cannot be {string:?}");
                let diagnostic = Diagnostic::error(place, message)
                    .with_allowed(quoted(choices.clone()))
                    .with_nearest(nearest(string, choices));
                self.report(diagnostic);
            }
            return;
        }
        if let Some(length) = &text.length {
            let characters = string.chars().count();
            if !(length.min..=length.max).contains(&characters) {
                let message = match characters {
                    0 => format!("{label} is empty"),
                    _ => format!("{label} has {characters} characters"),
                };
                let allowed = counted(length, "character");
                return self.report(Diagnostic::error(place, message).with_allowed(allowed));
            }
        }
        if let Some(format) = text.format
            && let Err(why) = (format.check)(string)
        {
            let message = format!("{label} cannot be {string:?}: {why}");
            // Where nothing is escaped, a part of the text has its own place.
            let place = match why.place {
                Some(part) if place.len() == string.len() + 2 && part.end > part.start => {
                    place.start + 1 + part.start..place.start + 1 + part.end
                }
                _ => place,
            };
            return self.report(Diagnostic::error(place, message).with_allowed(format.allowed));
        }
        let expression = match text.format.map(|format| format.name) {
            Some("number-expression") => calculated::<PLAIN>(string),
            Some("note-expression") => calculated::<NOTE>(string),
            Some("controller-expression") => calculated::<CONTROLLER>(string),
            Some("channel-expression") => calculated::<CHANNEL>(string),
            _ => None,
        };
        if let Some(expression) = expression {
            self.variables(&place, string, &expression);
        }
        match &text.role {
            Some(Role::Names(kind)) => self.names.give(kind, string, place),
            Some(Role::RefersTo(kind)) => self.names.refer(kind, string.into(), place, true),
            Some(Role::Mentions(kind)) => self.names.refer(kind, string.into(), place, false),
            None => {}
        }
    }

    /// The variables in an expression are referred to by name.
    fn variables(&mut self, place: &Range<usize>, string: &str, expression: &Expression) {
        for (name, part) in expression.variables() {
            let is_plain = place.len() == string.len() + 2;
            let place = if is_plain { place.start + 1 + part.start..place.start + 1 + part.end } else { place.clone() };
            self.names.refer("variable", name.into(), place, true);
        }
    }

    fn array(&mut self, label: Label<'_>, place: Range<usize>, items: &mut DeArray<'_>, array: &Array) {
        if !(array.length.min..=array.length.max).contains(&items.len()) {
            let message = format!("{label} has {}", plural(items.len(), "item"));
            let allowed = counted(&array.length, "item");
            self.report(Diagnostic::error(place.clone(), message).with_allowed(allowed));
        } else if array.ascending
            && let [low, high] = &items[..]
            && descends(low.get_ref(), high.get_ref())
        {
            let message = format!("{label} has nothing in it: the first number is above the second");
            self.report(Diagnostic::error(place, message).with_allowed("the lower number first"));
        }
        let are_separate = matches!(label, Label::Key(key) if SEPARATE.contains(&key));
        for item in items.iter_mut() {
            let before = self.errors.len();
            self.value(Label::Item(&label), item, array.item);
            if are_separate && self.errors.len() > before {
                *item.get_mut() = what_is_left(item, &self.errors[before..]);
            }
        }
    }

    fn table(&mut self, place: Range<usize>, entries: &mut DeTable<'_>, table: &'s Table) {
        let layers = self.layers(&place, entries, table);

        for (key, value) in entries.iter_mut() {
            let name: &str = key.get_ref();
            let label = Label::Key(name);
            if layers.is_tag(name) {
                // Looked at already, to find the variant.
            } else if let Some(field) = layers.field(name) {
                self.value(label, value, field.shape);
            } else {
                match layers.rest() {
                    Rest::Allowed(shape) => {
                        self.rest_name(key, &layers);
                        self.value(label, value, shape);
                    }
                    Rest::Refused if layers.complete => self.unknown_key(key, &layers),
                    Rest::Refused | Rest::Unsaid => {}
                }
            }
        }

        for (depth, layer) in layers.tables().enumerate() {
            let absent = |field: &&Field| field.required && !entries.contains_key(field.name.as_str());
            for field in layer.fields.iter().filter(absent) {
                // What the table itself demands, it demands of every variant.
                let situation = if depth == 0 { String::new() } else { layers.situation() };
                if !layers.is_tag(&field.name) {
                    let message = format!("missing key `{}`{situation}", field.name);
                    let allowed = allowed(&self.shapes[field.shape]);
                    let diagnostic = Diagnostic::error(place.clone(), message);
                    self.report_absence(diagnostic.with_allowed(allowed));
                }
            }
        }
        for pair in layers.tables().flat_map(|table| &table.pairs) {
            self.pair(entries, pair);
        }
    }

    /// The tables whose fields are those of this one: itself, the variant that its tag names, the variant
    /// of that, and so on.
    fn layers(&mut self, place: &Range<usize>, entries: &mut DeTable<'_>, table: &'s Table) -> Layers<'s> {
        let mut layers = Layers::of(table);
        let mut innermost = table;
        let mut depth = 0;
        while let Some(variants) = &innermost.variants {
            if depth == layers.tags.len() {
                break;
            }
            let Some((table, name)) = self.variant(place, entries, variants) else {
                layers.complete = false;
                layers.tags[depth] = Some((&variants.tag, None));
                break;
            };
            layers.tags[depth] = Some((&variants.tag, name));
            depth += 1;
            layers.tables[depth] = Some(table);
            innermost = table;
        }
        layers
    }

    /// The variant of a table, with its name; reports it if the tag is ambiguous.
    fn variant(
        &mut self,
        place: &Range<usize>,
        entries: &mut DeTable<'_>,
        variants: &'s Variants,
    ) -> Option<(&'s Table, Option<&'s str>)> {
        let Some(value) = entries.get_mut(variants.tag.as_str()) else {
            if let Some(default) = variants.default {
                let variant = &variants.known[default];
                return Some((&variant.table, variant.names.first().map(String::as_str)));
            }
            let message = format!("missing key `{}`", variants.tag);
            let mut diagnostic = Diagnostic::error(place.clone(), message).with_allowed(tags(variants));
            let misspelt = entries.keys().map(Spanned::get_ref).find(|key| nearest(key, [&*variants.tag]).is_some());
            diagnostic.help = misspelt.map(|key| format!("{} is not a key; write `{}`", Label::Key(key), variants.tag));
            self.report_absence(diagnostic);
            return None;
        };

        let place = value.span();
        let label = Label::Key(&variants.tag);
        let DeValue::String(tag) = value.get_mut() else {
            let message = format!("{label} must be a string, not {}", kind(value.get_ref()));
            self.report(Diagnostic::error(place, message).with_allowed(tags(variants)));
            return None;
        };
        let known = variants.known.iter();
        for variant in known {
            if let Some(at) = variant.names.iter().position(|name| name == tag) {
                if at > 0 {
                    *tag = Cow::Owned(variant.names[0].clone());
                }
                return Some((&variant.table, Some(&variant.names[0])));
            }
        }
        if let Some(other) = &variants.other {
            let field = other.fields.iter().find(|field| field.name == variants.tag);
            if let Some(text) = field.and_then(|field| self.shapes[field.shape].text.as_ref()) {
                self.text(label, place, tag, text);
            }
            return Some((other, None));
        }
        let message = format!("{label} cannot be {tag:?}");
        let names = variants.known.iter().flat_map(|variant| &variant.names);
        let diagnostic = Diagnostic::error(place, message)
            .with_allowed(tags(variants))
            .with_nearest(nearest(tag, names.map(String::as_str)));
        self.report(diagnostic);
        None
    }

    fn unknown_key(&mut self, key: &Spanned<Cow<'_, str>>, layers: &Layers<'_>) {
        let name = key.get_ref();
        let message = format!("unknown key {}{}", Label::Key(name), layers.situation());
        let offered = layers.fields().filter(|field| !field.deprecated);
        let fields = || offered.clone().map(|field| field.name.as_str());
        let listed: Vec<String> = fields().map(|name| format!("`{name}`")).collect();
        let mut diagnostic = Diagnostic::error(key.span(), message)
            .with_allowed(listed.join(", "))
            .with_nearest(nearest(name, fields()));
        if diagnostic.nearest.is_none() {
            diagnostic.help = layers.home_of(name);
        }
        self.report(diagnostic);
    }

    /// Checks the name of a key that the author has chosen.
    fn rest_name(&mut self, key: &Spanned<Cow<'_, str>>, layers: &Layers<'_>) {
        let format = layers.tables().find_map(|table| table.rest_names);
        if let Some(format) = format
            && let Err(why) = (format.check)(key.get_ref())
        {
            let message = format!("the key {} cannot be used: {why}", Label::Key(key.get_ref()));
            self.report(Diagnostic::error(key.span(), message).with_allowed(format.allowed));
        }
    }

    fn pair(&mut self, entries: &DeTable<'_>, Pair { rule, keys }: &Pair) {
        let [first_key, second_key] = keys;
        let Some(first) = entries.get(first_key.as_str()) else { return };
        let Some(second) = entries.get(second_key.as_str()) else { return };
        match rule {
            PairRule::Ascending if descends(first.get_ref(), second.get_ref()) => {
                let message = format!("`{first_key}` is above `{second_key}`");
                let allowed = format!("the lower number as `{first_key}`");
                self.report(Diagnostic::error(first.span(), message).with_allowed(allowed));
            }
            PairRule::SameLength => {
                let (Some(first), Some(text)) = (first.get_ref().as_str(), second.get_ref().as_str()) else {
                    return;
                };
                let (wanted, found) = (hex_len(first), hex_len(text));
                if wanted != found {
                    let message = format!("`{second_key}` has {}", plural(found, "byte"));
                    let allowed = format!("{}, as `{first_key}` has", plural(wanted, "byte"));
                    self.report(Diagnostic::error(second.span(), message).with_allowed(allowed));
                }
            }
            PairRule::Ascending => {}
        }
    }

    /// Looks for what TOML has and JSON has not: such a value would change on its way to a feature.
    fn anything(&mut self, label: Label<'_>, value: &mut Spanned<DeValue<'_>>) {
        let place = value.span();
        let unfit = match value.get_mut() {
            DeValue::Datetime(_) => Some("a date or a time"),
            DeValue::Float(float) if !to_f64(float).is_some_and(f64::is_finite) => {
                Some("a number without a finite value")
            }
            DeValue::Integer(integer) if to_i64(integer).is_none() => Some("an integer of more than 64 bits"),
            DeValue::Array(items) => {
                for item in items.iter_mut() {
                    self.anything(Label::Item(&label), item);
                }
                None
            }
            DeValue::Table(entries) => {
                for (key, value) in entries.iter_mut() {
                    self.anything(Label::Key(key.get_ref()), value);
                }
                None
            }
            _ => None,
        };
        if let Some(unfit) = unfit {
            let message = format!("{label} is {unfit}, which cannot be passed on");
            self.report(Diagnostic::error(place, message).with_help("write it as a string"));
        }
    }
}

/// The deepest nesting of variants that the schema has: an action, sending MIDI, of one kind of message.
const MAX_LAYERS: usize = 3;

/// A table and the variants in it, from the outside in.
struct Layers<'s> {
    tables: [Option<&'s Table>; MAX_LAYERS],
    /// The tag of each layer but the last, and the name of the variant under it where that is known.
    tags: [Option<(&'s str, Option<&'s str>)>; MAX_LAYERS - 1],
    /// Whether all of them are known, so that a key in none of them is wrong.
    complete: bool,
}

impl<'s> Layers<'s> {
    fn of(table: &'s Table) -> Self {
        Self { tables: [Some(table), None, None], tags: [None; MAX_LAYERS - 1], complete: true }
    }

    fn tables(&self) -> impl Iterator<Item = &'s Table> + Clone {
        self.tables.into_iter().flatten()
    }

    fn fields(&self) -> impl Iterator<Item = &'s Field> + Clone {
        self.tables().flat_map(|table| &table.fields)
    }

    fn field(&self, name: &str) -> Option<&'s Field> {
        self.fields().find(|field| field.name == name)
    }

    fn is_tag(&self, name: &str) -> bool {
        self.tags.iter().flatten().any(|&(tag, _)| tag == name)
    }

    fn rest(&self) -> Rest {
        let said = self.tables().map(|table| table.rest);
        said.into_iter().find(|&rest| rest != Rest::Unsaid).unwrap_or_default()
    }

    /// Where a key belongs that is not in these layers but in another variant.
    fn home_of(&self, key: &str) -> Option<String> {
        let variants = self.tables().filter_map(|table| table.variants.as_ref());
        let homes: Vec<String> = variants
            .flat_map(|variants| variants.known.iter().map(move |variant| (&variants.tag, variant)))
            .filter(|(_, variant)| variant.table.fields.iter().any(|field| field.name == key))
            .filter_map(|(tag, variant)| Some(format!("`{tag} = {:?}`", variant.names.first()?)))
            .collect();
        (!homes.is_empty()).then(|| format!("`{key}` goes with {}", homes.join(" or ")))
    }

    /// Which variant this is, for a message about a key: ` with `type = "Note"``.
    fn situation(&self) -> String {
        match self.tags.iter().flatten().last() {
            Some((tag, Some(name))) => format!(" with `{tag} = {name:?}`"),
            _ => String::new(),
        }
    }
}

fn to_i64(integer: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

fn to_f64(float: &DeFloat<'_>) -> Option<f64> {
    float.as_str().parse().ok()
}

/// The expression that a number is calculated by; `None` if it is a fixed one, or the name of one.
fn calculated<const NAMES: u8>(text: &str) -> Option<Arc<Expression>> {
    match text.parse() {
        Ok(NumberExpr::<NAMES>::Calculated(expression)) => Some(expression),
        _ => None,
    }
}

/// Whether both are numbers, or notes by name, and the first is above the second.
fn descends(first: &DeValue<'_>, second: &DeValue<'_>) -> bool {
    let number = |value: &DeValue<'_>| match value {
        DeValue::String(name) => name.parse::<Note>().ok().map(|note| note.get().into()),
        DeValue::Integer(integer) => to_i64(integer).map(|number| number as f64),
        DeValue::Float(float) => to_f64(float),
        _ => None,
    };
    matches!((number(first), number(second)), (Some(first), Some(second)) if first > second)
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date or a time",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

/// The kinds of value that a shape allows: `an integer or a string`.
fn kinds(shape: &Shape) -> String {
    let kinds = [
        (shape.boolean, "a boolean"),
        (shape.integer.is_some(), "an integer"),
        (shape.number.is_some(), "a number"),
        (shape.text.is_some(), "a string"),
        (shape.array.is_some(), "an array"),
        (shape.table.is_some(), "a table"),
    ];
    let kinds: Vec<&str> = kinds.into_iter().filter_map(|(allowed, kind)| allowed.then_some(kind)).collect();
    kinds.join(" or ")
}

/// What a shape allows, as exactly as fits in a line.
fn allowed(shape: &Shape) -> String {
    let mut parts = Vec::new();
    if shape.boolean {
        parts.push("true or false".to_owned());
    }
    if let Some(limits) = shape.integer {
        parts.push(format!("{} to {}", limits.min, limits.max));
    }
    if let Some(limits) = shape.number {
        parts.push(match limits {
            Limits { min: f64::MIN, max: f64::MAX } => "a finite number".to_owned(),
            Limits { min, max } => format!("{min} to {max}"),
        });
    }
    if let Some(text) = &shape.text {
        parts.push(match (text, &text.length) {
            (Text { format: Some(format), .. }, _) => format.allowed.to_owned(),
            (Text { choices, .. }, _) if !choices.is_empty() => quoted(choices.iter().map(String::as_str)),
            (_, Some(length)) => format!("a string of {}", counted(length, "character")),
            (_, None) => "a string".to_owned(),
        });
    }
    if let Some(array) = &shape.array {
        parts.push(match array.length {
            Limits { min: 0, max: usize::MAX } => "an array".to_owned(),
            ref length => format!("an array of {}", counted(length, "item")),
        });
    }
    if let Some(table) = &shape.table {
        parts.push(if let Some(variants) = &table.variants {
            format!("a table with a `{}`", variants.tag)
        } else if table.fields.is_empty() {
            "a table".to_owned()
        } else {
            let keys: Vec<&str> = table.fields.iter().map(|field| field.name.as_str()).collect();
            format!("a table with `{}`", keys.join("`, `"))
        });
    }
    if shape.anything {
        parts.push("anything".to_owned());
    }
    parts.join(", or ")
}

/// The tags that are known, by the spelling to use.
fn tags(variants: &Variants) -> String {
    let names = variants.known.iter().filter_map(|variant| variant.names.first());
    let known = quoted(names.map(String::as_str));
    match variants.other {
        Some(_) => format!("{known}, or the name of a feature's action"),
        None => known,
    }
}

fn quoted<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.map(|name| format!("{name:?}")).collect();
    names.join(", ")
}

fn counted(limits: &Limits<usize>, unit: &str) -> String {
    match *limits {
        Limits { min, max } if min == max => plural(min, unit),
        Limits { min, max: usize::MAX } => format!("at least {}", plural(min, unit)),
        Limits { min, max } => format!("{min} to {}", plural(max, unit)),
    }
}
