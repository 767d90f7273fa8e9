//! Verification: whether the chain is as it was written, and the first row that is not.

use rusqlite::Connection;
use serde::Serialize;

use crate::chain::{self, ALTERED, AuditError, Chain, FOREIGN, HeadFile, NOTHING, Row};

/// Rows that are read at once: others may write in between.
const PAGE_ROWS: u32 = 1000;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Rows that were looked at.
    pub rows: i64,
    /// The first that is wrong.
    pub wrong: Option<InvalidRow>,
    /// Why it is unknown whether the record is complete, although no row is wrong: a sentence each. Rows at its end
    /// may be missing then, or all of them.
    pub unknown: Vec<String>,
}

/// A row that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InvalidRow {
    /// Its number.
    pub number: i64,
    /// Why.
    pub why: String,
}

impl Chain {
    /// Looks at every row. Others may go on adding rows meanwhile.
    ///
    /// # Errors
    /// [`AuditError::Unreadable`].
    pub fn verify(&self) -> Result<Verdict, AuditError> {
        let mut verdict = Verdict { rows: 0, wrong: None, unknown: Vec::new() };
        if !self.file().exists() && !self.head_file().exists() {
            // The key is made when the first row is written.
            if conductor_stdx::host_key::HostKey::read(self.home()).is_ok() {
                let note = "audit.sqlite and audit.head are both missing, and this home has been used: rows may have been removed";
                verdict.unknown.push(note.to_owned());
            }
            return Ok(verdict);
        }
        let key = self.key()?;
        // First, so that rows that are added meanwhile are not missing there.
        let beside = self.beside(&key);
        let Some(mut connection) = self.reader()? else {
            if let HeadFile::Head(head) = &beside {
                verdict.wrong = Some(InvalidRow { number: head.number, why: chain::put_back(head, 0) });
            }
            return Ok(verdict);
        };
        let unreadable = |error: rusqlite::Error| self.unreadable(error.to_string());
        let mut walk = Walk { number: 0, hash: NOTHING.to_owned(), beside: &beside };
        loop {
            // The end and the head have to be of the same moment.
            let moment = connection.transaction().map_err(unreadable)?;
            let rows = chain::rows_after(&moment, walk.number, PAGE_ROWS).map_err(unreadable)?;
            for row in &rows {
                if let Err(why) = walk.step(row) {
                    verdict.wrong = Some(InvalidRow { number: why.0, why: why.1 });
                    verdict.rows = walk.number;
                    return Ok(verdict);
                }
            }
            if rows.is_empty() {
                verdict.rows = walk.number;
                verdict.wrong = walk.end(&moment, &key).map_err(unreadable)?;
                break;
            }
        }
        if matches!(beside, HeadFile::Missing) && verdict.rows > 0 {
            let note = "audit.head is missing, so it is unknown whether an older file was put back";
            verdict.unknown.push(note.to_owned());
        }
        Ok(verdict)
    }
}

/// The way along the chain.
struct Walk<'b> {
    /// Of the last row that was right.
    number: i64,
    hash: String,
    beside: &'b HeadFile,
}

impl Walk<'_> {
    /// The next row, or which one is wrong and why.
    fn step(&mut self, row: &Row) -> Result<(), (i64, String)> {
        let next = self.number + 1;
        if row.number != next {
            return Err((next, format!("it is missing: after row {} comes row {}", self.number, row.number)));
        }
        if row.hash_after(&self.hash) != row.hash {
            let why = "its content is not what was written, or it was not written after the row before it";
            return Err((next, why.to_owned()));
        }
        if row.kind == "audit" && row.what == ALTERED {
            let detail: serde_json::Value = serde_json::from_str(&row.detail).unwrap_or_default();
            let why = detail["reason"].as_str().unwrap_or("the chain was altered");
            return Err((next, format!("before it was written, the host found that {why}")));
        }
        if let HeadFile::Head(beside) = self.beside
            && beside.number == next
            && beside.hash != row.hash
        {
            return Err((
                next,
                "audit.head knows another row of this number: it, or what is before it, was written anew".to_owned(),
            ));
        }
        (self.number, self.hash) = (next, row.hash.clone());
        Ok(())
    }

    /// Whether the chain may end here.
    fn end(
        &self,
        connection: &Connection,
        key: &conductor_stdx::host_key::HostKey,
    ) -> rusqlite::Result<Option<InvalidRow>> {
        let last = (self.number > 0).then(|| (self.number, self.hash.clone()));
        let head = chain::head(connection)?;
        let wrong = |number, why| Some(InvalidRow { number, why });
        if let Some(why) = chain::ends_elsewhere(last.as_ref(), head.as_ref(), key) {
            let number = head.map_or(self.number, |head| match head.number > self.number {
                true => self.number + 1,
                false => (head.number + 1).min(self.number),
            });
            return Ok(wrong(number, why));
        }
        Ok(match self.beside {
            HeadFile::Head(beside) if beside.number > self.number => {
                wrong(self.number + 1, chain::put_back(beside, self.number))
            }
            HeadFile::Foreign => wrong(self.number, FOREIGN.to_owned()),
            _ => None,
        })
    }
}
