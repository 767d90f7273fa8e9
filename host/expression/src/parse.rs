//! From tokens to steps, by recursive descent.
//!
//! ```text
//! whole   = any ["from" range] ["->" range [unit] {"," option}]
//! any     = both {"or" both}            both    = not {"and" not}
//! not     = "not" not | compared        compared = sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
//! sum     = product {("+" | "-") product}
//! product = signed {("*" | "/" | "%") signed}
//! signed  = "-" signed | number | note | name | "(" whole ")" | "{" whole "}" | function "(" any {"," any} ")"
//! range   = end ".." end                end     = ["-"] (number | note)
//! ```

use std::ops::Range as Place;

use conductor_names::note;
use conductor_number::Range;

use crate::scale::{Curve, From, Scale};
use crate::step::{One, Step, Two};
use crate::token::{Token, tokens};
use crate::{
    ARGS, EVENT_NAMES, Expression, MATCHES, MAX_LENGTH, MAX_STACK, MAX_STEPS, Mistake, Names, Variable, event,
};

/// The functions, each with what it takes, as error messages list them.
pub const FUNCTIONS: [&str; 16] = [
    "abs(x)",
    "sign(x)",
    "round(x)",
    "floor(x)",
    "ceil(x)",
    "sqrt(x)",
    "exp(x)",
    "log(x)",
    "db(gain)",
    "gain(db)",
    "pow(x, y)",
    "min(x, y, ...)",
    "max(x, y, ...)",
    "clamp(x, low, high)",
    "if(condition, then, else)",
    "layers(x, threshold, ...)",
];

/// The words that options of a scaling begin with.
const OPTIONS: &str = "linear, logarithmic, exponential, s, invert, round, step 0.5, steps 5, dead 10%, middle 10%";

/// How deep parentheses and signs may be nested.
const MAX_DEPTH: usize = 24;

/// What a text came to.
pub(crate) struct Parsed {
    pub(crate) steps: Vec<Step>,
    pub(crate) unit: Option<String>,
    pub(crate) variables: Vec<Variable>,
}

/// Parses the whole of a text.
pub(crate) fn parse(text: &str, names: Names) -> Result<Parsed, Mistake> {
    if text.chars().count() > MAX_LENGTH {
        let message = format!("the expression is longer than {MAX_LENGTH} characters");
        return Err(Mistake::new(text, 0..text.len(), message));
    }
    let mut parser = Parser {
        text,
        names,
        tokens: tokens(text)?,
        at: 0,
        depth: 0,
        outermost: true,
        steps: Vec::new(),
        unit: None,
        variables: Vec::new(),
    };
    parser.whole()?;
    match parser.peek() {
        Token::End => {}
        _ => return Err(parser.unexpected("an operator such as +, or the end")),
    }
    let mut height = 0;
    for step in &parser.steps {
        height = height + 1 - step.takes();
        if height > MAX_STACK {
            return Err(parser.wrong(0..text.len(), "the expression is nested too deep; calculate a part of it apart"));
        }
    }
    Ok(Parsed { steps: parser.steps, unit: parser.unit, variables: parser.variables })
}

struct Parser<'t> {
    text: &'t str,
    names: Names,
    tokens: Vec<(Token<'t>, Place<usize>)>,
    at: usize,
    depth: usize,
    /// Whether what comes next is all there is, so that its unit is that of the whole.
    outermost: bool,
    steps: Vec<Step>,
    unit: Option<String>,
    variables: Vec<Variable>,
}

type Parse = Result<(), Mistake>;

impl<'t> Parser<'t> {
    fn peek(&self) -> Token<'t> {
        self.tokens.get(self.at).map_or(Token::End, |(token, _)| *token)
    }

    fn place(&self) -> Place<usize> {
        self.tokens.get(self.at).map_or(self.text.len()..self.text.len(), |(_, place)| place.clone())
    }

    fn next(&mut self) -> (Token<'t>, Place<usize>) {
        let next = (self.peek(), self.place());
        self.at += 1;
        next
    }

    fn takes(&mut self, token: Token<'_>) -> bool {
        let is_next = self.peek() == token;
        self.at += usize::from(is_next);
        is_next
    }

    fn needs(&mut self, sign: &'static str) -> Parse {
        if self.takes(Token::Sign(sign)) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    fn wrong(&self, place: Place<usize>, message: impl Into<String>) -> Mistake {
        Mistake::new(self.text, place, message)
    }

    fn unexpected(&self, expected: &str) -> Mistake {
        let place = self.place();
        let found = match self.peek() {
            Token::End => "the text is over".to_owned(),
            Token::Sign("=") => "`=` is not compared with: write `==`".to_owned(),
            Token::Sign("!") => "`!` is written `not`".to_owned(),
            _ => format!("`{}` cannot stand here", &self.text[place.clone()]),
        };
        self.wrong(place, format!("{found}; expected {expected}"))
    }

    fn push(&mut self, step: Step, place: Place<usize>) -> Parse {
        if self.steps.len() == MAX_STEPS {
            return Err(self.wrong(place, format!("the expression has more than {MAX_STEPS} parts")));
        }
        self.steps.push(step);
        Ok(())
    }

    fn whole(&mut self) -> Parse {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.wrong(self.place(), format!("more than {MAX_DEPTH} parentheses and signs are nested")));
        }
        let outermost = std::mem::take(&mut self.outermost);
        let (first, begin) = (self.steps.len(), self.place().start);
        // Braces around all of it say no more than parentheses.
        self.outermost = outermost && self.peek() == Token::Sign("{");
        self.any()?;
        let mut from = None;
        if self.takes(Token::Word("from")) {
            from = Some(From::Range(self.range()?));
            if self.peek() != Token::Sign("->") {
                return Err(self.unexpected("`->` and the range to scale to"));
            }
        }
        let arrow = self.place();
        if self.takes(Token::Sign("->")) {
            let from = match from {
                Some(from) => from,
                None => self.natural(first, begin..arrow.start)?,
            };
            let to = self.range()?;
            let unit = self.unit();
            if outermost {
                self.unit = unit;
            }
            let mut scale =
                Scale { from, dead: 0.0, middle: 0.0, invert: false, curve: Curve::Linear, steps: 0, to, step: 0.0 };
            while self.takes(Token::Sign(",")) {
                self.option(&mut scale)?;
            }
            self.push(Step::Scale(scale), arrow)?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// What the number is scaled from that the steps since `first` come to, where the text does not say.
    fn natural(&mut self, first: usize, place: Place<usize>) -> Result<From, Mistake> {
        if let &[Step::Slot(slot)] = &self.steps[first..] {
            if let Some(at) = slot.checked_sub(Expression::FIRST_VARIABLE).map(usize::from)
                && let Some(variable) = self.variables.get_mut(at)
            {
                variable.needs_limits = true;
                return Ok(From::Variable(at));
            }
            let known = EVENT_NAMES.iter().filter_map(|name| event::find(name)).find(|(known, _)| *known == slot);
            if let Some((_, Some(from))) = known {
                return Ok(from);
            }
        }
        let what = self.text[place.clone()].trim_end();
        let end = place.start + what.len();
        let message = format!("say what `{what}` comes from: `{what} from 0..127 -> ...`");
        Err(self.wrong(place.start..end, message))
    }

    fn range(&mut self) -> Result<Range, Mistake> {
        let from = self.end()?;
        self.needs("..")?;
        Ok(Range { from, to: self.end()? })
    }

    fn end(&mut self) -> Result<f64, Mistake> {
        let sign = if self.takes(Token::Sign("-")) { -1.0 } else { 1.0 };
        let number = match self.peek() {
            Token::Number(number) => number,
            Token::Word(name) if note::number(name).is_some() => note::number(name).map_or(0.0, f64::from),
            _ => return Err(self.unexpected("a range such as `0..127`")),
        };
        self.at += 1;
        Ok(sign * number)
    }

    fn unit(&mut self) -> Option<String> {
        let unit = match self.peek() {
            Token::Sign("%") => "%",
            Token::Word(unit) => unit,
            _ => return None,
        };
        self.at += 1;
        Some(unit.to_owned())
    }

    fn option(&mut self, scale: &mut Scale) -> Parse {
        let (token, place) = self.next();
        let Token::Word(word) = token else {
            self.at -= 1;
            return Err(self.unexpected(&format!("one of {OPTIONS}")));
        };
        if let Some((_, curve)) = Curve::ALL.into_iter().find(|(name, _)| *name == word) {
            scale.curve = curve;
            return Ok(());
        }
        match word {
            "invert" => scale.invert = true,
            "round" => scale.step = 1.0,
            "step" => scale.step = self.amount("step 0.5", |step| step > 0.0)?,
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is checked")]
            "steps" => {
                scale.steps = self.amount("steps 5, a whole number from 2 to 1000", |count| {
                    (2.0..=1000.0).contains(&count) && count.fract() == 0.0
                })? as u16
            }
            "dead" => scale.dead = self.part("dead 10%, less than 100%")?,
            "middle" => scale.middle = self.part("middle 10%, less than 100%")?,
            _ => {
                let known =
                    ["linear", "logarithmic", "exponential", "invert", "round", "step", "steps", "dead", "middle"];
                let message = format!("there is no option `{word}`{}", hint(word, known, OPTIONS));
                return Err(self.wrong(place, message));
            }
        }
        Ok(())
    }

    fn amount(&mut self, expected: &str, is_right: impl Fn(f64) -> bool) -> Result<f64, Mistake> {
        match self.peek() {
            Token::Number(number) if is_right(number) => {
                self.at += 1;
                Ok(number)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    /// A part of the whole: `10%` or `0.1`.
    fn part(&mut self, expected: &str) -> Result<f64, Mistake> {
        let is_percent = self.tokens.get(self.at + 1).is_some_and(|(token, _)| *token == Token::Sign("%"));
        let whole = if is_percent { 100.0 } else { 1.0 };
        let part = self.amount(expected, |part| part <= 0.99 * whole)? / whole;
        self.at += usize::from(is_percent);
        Ok(part)
    }

    /// Operands of one kind, joined by operators, from the left.
    fn joined(&mut self, operand: fn(&mut Self) -> Parse, operators: &[(Token<'static>, Two)], repeat: bool) -> Parse {
        operand(self)?;
        while let Some((_, two)) = operators.iter().find(|(token, _)| *token == self.peek()) {
            let (_, place) = self.next();
            operand(self)?;
            self.push(Step::Two(*two), place)?;
            if !repeat {
                break;
            }
        }
        Ok(())
    }

    fn any(&mut self) -> Parse {
        self.joined(Self::both, &[(Token::Word("or"), Two::Or)], true)
    }

    fn both(&mut self) -> Parse {
        self.joined(Self::not, &[(Token::Word("and"), Two::And)], true)
    }

    fn not(&mut self) -> Parse {
        let place = self.place();
        if !self.takes(Token::Word("not")) {
            return self.compared();
        }
        self.deeper(Self::not)?;
        self.push(Step::One(One::Not), place)
    }

    fn compared(&mut self) -> Parse {
        let operators = [
            (Token::Sign("<"), Two::Less),
            (Token::Sign("<="), Two::LessOrEqual),
            (Token::Sign(">"), Two::Greater),
            (Token::Sign(">="), Two::GreaterOrEqual),
            (Token::Sign("=="), Two::Equal),
            (Token::Sign("!="), Two::NotEqual),
        ];
        self.joined(Self::sum, &operators, false)
    }

    fn sum(&mut self) -> Parse {
        self.joined(Self::product, &[(Token::Sign("+"), Two::Add), (Token::Sign("-"), Two::Subtract)], true)
    }

    fn product(&mut self) -> Parse {
        let operators =
            [(Token::Sign("*"), Two::Multiply), (Token::Sign("/"), Two::Divide), (Token::Sign("%"), Two::Remainder)];
        self.joined(Self::signed, &operators, true)
    }

    fn deeper(&mut self, inner: fn(&mut Self) -> Parse) -> Parse {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.wrong(self.place(), format!("more than {MAX_DEPTH} parentheses and signs are nested")));
        }
        inner(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn signed(&mut self) -> Parse {
        let place = self.place();
        match self.peek() {
            Token::Sign("-") => {
                self.at += 1;
                self.deeper(Self::signed)?;
                self.push(Step::One(One::Minus), place)
            }
            Token::Number(number) => {
                self.at += 1;
                self.push(Step::Number(number), place)
            }
            Token::Sign("(") => {
                self.at += 1;
                self.whole()?;
                self.needs(")")
            }
            Token::Sign("{") => {
                self.at += 1;
                self.whole()?;
                self.needs("}")
            }
            Token::Word(word) => {
                self.at += 1;
                if self.peek() == Token::Sign("(") { self.function(word, place) } else { self.name(word, place) }
            }
            _ => Err(self.unexpected("a number or a name")),
        }
    }

    fn name(&mut self, name: &str, place: Place<usize>) -> Parse {
        if let Some((slot, _)) = event::find(name) {
            return self.push(Step::Slot(slot), place);
        }
        if let Some(number) = note::number(name).filter(|_| name.starts_with(|c: char| c.is_ascii_uppercase())) {
            return self.push(Step::Number(number.into()), place);
        }
        match name {
            "true" => return self.push(Step::Number(1.0), place),
            "false" => return self.push(Step::Number(0.0), place),
            _ => {}
        }
        // A variable begins with a small letter.
        if self.names == Names::Event || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
            let is_counted = ["arg", "match"].iter().any(|counted| {
                name.strip_prefix(counted).is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
            });
            let hint = match is_counted {
                true => format!("; arguments are `arg0` to `arg{}`, wildcards `match1` to `match{MATCHES}`", ARGS - 1),
                false => hint(name, EVENT_NAMES, &EVENT_NAMES.join(", ")),
            };
            return Err(self.wrong(place, format!("there is no `{name}`{hint}")));
        }
        let at = u16::try_from(self.variables.len()).unwrap_or(u16::MAX);
        self.push(Step::Slot(Expression::FIRST_VARIABLE.saturating_add(at)), place.clone())?;
        self.variables.push(Variable { name: name.to_owned(), place, needs_limits: false });
        Ok(())
    }

    fn function(&mut self, name: &str, place: Place<usize>) -> Parse {
        self.needs("(")?;
        let mut count = 0;
        loop {
            self.deeper(Self::any)?;
            count += 1;
            if !self.takes(Token::Sign(",")) {
                break;
            }
        }
        self.needs(")")?;
        let form = FUNCTIONS.iter().find(|form| form.split('(').next() == Some(name));
        let Some(form) = form else {
            let names = FUNCTIONS.iter().filter_map(|form| form.split('(').next());
            let message = format!("there is no function `{name}`{}", hint(name, names, &FUNCTIONS.join(", ")));
            return Err(self.wrong(place, message));
        };
        let step = match (name, count) {
            ("abs", 1) => Step::One(One::Abs),
            ("sign", 1) => Step::One(One::Sign),
            ("round", 1) => Step::One(One::Round),
            ("floor", 1) => Step::One(One::Floor),
            ("ceil", 1) => Step::One(One::Ceil),
            ("sqrt", 1) => Step::One(One::Sqrt),
            ("exp", 1) => Step::One(One::Exp),
            ("log", 1) => Step::One(One::Log),
            ("db", 1) => Step::One(One::Decibels),
            ("gain", 1) => Step::One(One::Gain),
            ("pow", 2) => Step::Two(Two::Power),
            ("clamp", 3) => Step::Clamp,
            ("if", 3) => Step::If,
            ("layers", 2..=12) => Step::Layers(count - 1),
            ("min" | "max", 2..=12) => {
                let two = if name == "min" { Two::Min } else { Two::Max };
                for _ in 2..count {
                    self.push(Step::Two(two), place.clone())?;
                }
                Step::Two(two)
            }
            _ => return Err(self.wrong(place, format!("`{name}` is written {form}"))),
        };
        self.push(step, place)
    }
}

/// `; did you mean ...?` for the name that is most like this one, or all of them if none is.
fn hint<'n>(name: &str, known: impl IntoIterator<Item = &'n str>, all: &str) -> String {
    let near = known.into_iter().map(|known| (distance(name, known), known)).min();
    match near {
        Some((distance, known)) if distance * 3 <= known.len() => format!("; did you mean `{known}`?"),
        _ => format!("; there are {all}"),
    }
}

/// How many characters have to be changed, put in or taken out to make one word the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(a != *b)).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[other.len()]
}
