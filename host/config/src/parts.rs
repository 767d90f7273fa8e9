//! The texts that make up a configuration: that of the file itself and, behind it, those that it includes, one after the
//! other. What is wrong with an entry of `include` is reported where the entry stands.

use std::ops::Range;
use std::sync::Arc;

use super::diagnostic::Diagnostic;
use super::include::{File, Included, Wrong, entries};
use super::place::{Part, Source};

/// The text of a file with those that it includes, in the order in which they count, and what is wrong with its `include`.
pub(super) fn source_of(file: &str, text: &str, included: &Included) -> (Source, Vec<Diagnostic>) {
    let mut adding = Adding { included, parts: Vec::new(), next: 0, found: Vec::new() };
    adding.add(file, text.into());
    (Source::of(adding.parts, included.clone()), adding.found)
}

impl Included {
    /// The text that includes this, to point into it.
    pub fn source(&self, text: &str, file: &str) -> Source {
        source_of(file, text, self).0
    }
}

struct Adding<'i> {
    included: &'i Included,
    parts: Vec<Part>,
    next: usize,
    found: Vec<Diagnostic>,
}

impl Adding<'_> {
    fn add(&mut self, file: &str, text: Arc<str>) {
        let start = self.next;
        // One byte more, so that the end of a file is not the beginning of the next one.
        self.next += text.len() + 1;
        self.parts.push(Part { file: file.to_owned(), text: Arc::clone(&text), start });
        for (place, written) in entries(&text) {
            let place = start + place.start..start + place.end;
            match self.included.answer(file, &written) {
                None => {
                    let message = format!("{written:?} is not among the files that were read with this configuration");
                    let help = "a person adds it to the file itself, which is then read anew";
                    self.found.push(Diagnostic::error(place, message).with_help(help));
                }
                Some(Err(Wrong { what, help })) => {
                    let mut diagnostic = Diagnostic::error(place, what.as_str());
                    diagnostic.help = help.map(str::to_owned);
                    self.found.push(diagnostic);
                }
                Some(Ok(files)) => self.files(place, &written, files),
            }
        }
    }

    fn files(&mut self, place: Range<usize>, written: &str, files: &[File]) {
        let is_pattern = written.contains('*');
        for File { name, text } in files {
            if !self.parts.iter().any(|part| part.file == *name) {
                self.add(name, Arc::clone(text));
            } else if !is_pattern {
                let message = format!("{name} is a part of this configuration already");
                let help = "each file is included once, and none includes itself; remove this entry";
                self.found.push(Diagnostic::error(place.clone(), message).with_help(help));
            }
        }
        if files.is_empty() {
            let message = format!("no file is called {written:?}");
            self.found.push(Diagnostic::warning(place, message).with_help("one that comes later is read then"));
        }
    }
}
