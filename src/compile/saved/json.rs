//! JSON (RFC 8259) as plan files hold it: read from text that may be hostile, written without spaces.
//!
//! Numbers keep their text, so that integers of 64 bits and floats come back with all their bits. Nesting is bounded; a
//! value takes at most 40 times the memory of its text.

use crate::error::{Error, Result};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// How deep lists and objects may nest.
const DEEPEST: usize = 32;

#[derive(Debug, PartialEq)]
pub enum Json<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    Map(Map<'a>),
}
pub type Map<'a> = BTreeMap<Cow<'a, str>, Json<'a>>;

/// Reads a text that holds one value and nothing else.
pub fn parse(text: &str) -> Result<Json<'_>> {
    let mut p = Parser { text, at: 0 };
    let value = p.value(0)?;
    p.space();
    if p.at < text.len() {
        return Err(p.wrong("the end"));
    }
    Ok(value)
}

impl<'a> Json<'a> {
    pub fn as_map(&self) -> Option<&Map<'a>> {
        if let Json::Map(m) = self { Some(m) } else { None }
    }
    pub fn as_list(&self) -> Option<&[Json<'a>]> {
        if let Json::List(l) = self { Some(l) } else { None }
    }
    pub fn as_str(&self) -> Option<&str> {
        if let Json::Text(t) = self { Some(t) } else { None }
    }
    /// An integer written without fraction or exponent.
    pub fn as_integer<T: std::str::FromStr>(&self) -> Option<T> {
        if let Json::Number(n) = self { n.parse().ok() } else { None }
    }
    pub fn as_count(&self) -> Option<usize> {
        self.as_integer()
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    #[cold]
    fn wrong(&self, expected: &str) -> Error {
        Error::value(format!("no JSON: expected {expected} at byte {}", self.at))
    }
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }
    fn take(&mut self, wanted: &str) -> bool {
        let found = self.text.as_bytes()[self.at..].starts_with(wanted.as_bytes());
        self.at += if found { wanted.len() } else { 0 };
        found
    }
    fn need(&mut self, wanted: &str) -> Result<()> {
        if self.take(wanted) { Ok(()) } else { Err(self.wrong(wanted)) }
    }

    fn value(&mut self, depth: usize) -> Result<Json<'a>> {
        if depth > DEEPEST {
            return Err(Error::value(format!("lists and objects nest deeper than {DEEPEST}")));
        }
        self.space();
        match self.peek() {
            Some(b'n') => self.need("null").map(|()| Json::Null),
            Some(b't') => self.need("true").map(|()| Json::Bool(true)),
            Some(b'f') => self.need("false").map(|()| Json::Bool(false)),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'[') => self.list(depth),
            Some(b'{') => self.map(depth),
            Some(b'-' | b'0'..=b'9') => self.number().map(Json::Number),
            _ => Err(self.wrong("a value")),
        }
    }
    fn list(&mut self, depth: usize) -> Result<Json<'a>> {
        self.need("[")?;
        let mut items = Vec::new();
        self.space();
        if self.take("]") {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            if self.take("]") {
                return Ok(Json::List(items));
            }
            self.need(",")?;
        }
    }
    fn map(&mut self, depth: usize) -> Result<Json<'a>> {
        self.need("{")?;
        let mut entries = Map::new();
        self.space();
        if self.take("}") {
            return Ok(Json::Map(entries));
        }
        loop {
            self.space();
            let key = self.string()?;
            self.space();
            self.need(":")?;
            let value = self.value(depth + 1)?;
            if entries.insert(key, value).is_some() {
                return Err(self.wrong("a key that is not there yet"));
            }
            self.space();
            if self.take("}") {
                return Ok(Json::Map(entries));
            }
            self.need(",")?;
        }
    }
    fn digits(&mut self) -> Result<()> {
        if !self.peek().is_some_and(|b| b.is_ascii_digit()) {
            return Err(self.wrong("a digit"));
        }
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }
    fn number(&mut self) -> Result<&'a str> {
        let start = self.at;
        self.take("-");
        // No digit follows a zero at the start.
        if !self.take("0") {
            self.digits()?;
        }
        if self.take(".") {
            self.digits()?;
        }
        if self.take("e") || self.take("E") {
            let _sign = self.take("+") || self.take("-");
            self.digits()?;
        }
        Ok(&self.text[start..self.at])
    }
    fn string(&mut self) -> Result<Cow<'a, str>> {
        self.need("\"")?;
        let mut start = self.at;
        let mut whole = String::new();
        loop {
            match self.peek() {
                Some(b'"') => {
                    let rest = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(if whole.is_empty() { rest.into() } else { Cow::Owned(whole + rest) });
                }
                Some(b'\\') => {
                    whole.push_str(&self.text[start..self.at]);
                    whole.push(self.escaped()?);
                    start = self.at;
                }
                Some(b) if b >= b' ' => self.at += 1,
                _ => return Err(self.wrong("the end of a string")),
            }
        }
    }
    fn escaped(&mut self) -> Result<char> {
        self.need("\\")?;
        let kind = self.peek();
        self.at += usize::from(kind.is_some_and(|b| b.is_ascii()));
        Ok(match kind {
            Some(b @ (b'"' | b'\\' | b'/')) => char::from(b),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.unit()?;
                let code = match first {
                    0xD800..0xDC00 => {
                        self.need("\\u")?;
                        let second = self.unit()?;
                        let low = second.checked_sub(0xDC00).filter(|&low| low < 0x400);
                        0x10000 + ((first - 0xD800) << 10) + low.ok_or_else(|| self.wrong("a low surrogate"))?
                    }
                    code => code,
                };
                char::from_u32(code).ok_or_else(|| self.wrong("a character"))?
            }
            _ => return Err(self.wrong("an escape")),
        })
    }
    /// Four hexadecimal digits.
    fn unit(&mut self) -> Result<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.ok_or_else(|| self.wrong("four hexadecimal digits"))?;
        self.at += 4;
        Ok(digits.iter().fold(0, |n, &d| 16 * n + char::from(d).to_digit(16).unwrap_or(0)))
    }
}

/// Appends a string with its quotes.
pub fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Appends a list: `each` writes one item.
pub fn list<T>(out: &mut String, items: impl IntoIterator<Item = T>, mut each: impl FnMut(&mut String, T)) {
    out.push('[');
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        each(out, item);
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// What serde_json makes of the same value.
    fn theirs(json: &Json) -> Value {
        match json {
            Json::Null => Value::Null,
            Json::Bool(b) => Value::Bool(*b),
            Json::Number(n) => serde_json::from_str(n).unwrap(),
            Json::Text(t) => Value::String(t.to_string()),
            Json::List(items) => Value::Array(items.iter().map(theirs).collect()),
            Json::Map(entries) => Value::Object(entries.iter().map(|(k, v)| (k.to_string(), theirs(v))).collect()),
        }
    }

    const TEXTS: [&str; 24] = [
        r#"{"a":[1,-2.5e+3,true,null,"x\n\u00e9\ud83d\ude00\/"],"b":{}}"#,
        "[]",
        "{}",
        " [ 1 , 2 ] ",
        "0",
        "-0",
        "-0.0",
        "1e400",
        "01",
        "1.",
        ".5",
        "+1",
        "[1,]",
        "{\"a\" 1}",
        "{a:1}",
        "\"",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\u{1}\"",
        "nul",
        "[1] 2",
        "",
        "\"é\"",
        "{\"\":[[[]]]}",
    ];

    #[test]
    fn texts_are_read_as_serde_json_reads_them() {
        for text in TEXTS {
            match (parse(text), serde_json::from_str::<Value>(text)) {
                (Ok(ours), Ok(value)) => assert_eq!(theirs(&ours), value, "{text}"),
                (ours, value) => assert!(ours.is_err() && value.is_err() || text == "1e400", "{text}: {ours:?}"),
            }
        }
    }

    const BYTES: &[u8] = b"\"\\{}[],:0123.eE+-u dntrfalse\x01\xff";

    #[test]
    fn damaged_texts_are_refused_or_read_alike() {
        let mut seed = 1u64;
        let mut next = |n: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % n
        };
        for _ in 0..20_000 {
            let mut bytes = TEXTS[next(TEXTS.len())].as_bytes().to_vec();
            for _ in 0..=next(3) {
                let at = next(bytes.len() + 1);
                let new = BYTES[next(BYTES.len())];
                match next(3) {
                    0 if at < bytes.len() => drop(bytes.remove(at)),
                    1 if at < bytes.len() => bytes[at] = new,
                    _ => bytes.insert(at, new),
                }
            }
            let Ok(text) = std::str::from_utf8(&bytes) else { continue };
            let (ours, value) = (parse(text), serde_json::from_str::<Value>(text));
            match (&ours, &value) {
                (Ok(ours), Ok(value)) => assert_eq!(theirs(ours), *value, "{text}"),
                (Ok(_), Err(e)) => assert!(e.to_string().contains("number out of range"), "{text}: {e}"),
                // A key that comes twice is an error here.
                (Err(e), Ok(_)) => assert!(e.to_string().contains("not there yet"), "{text}: {e}"),
                (Err(_), Err(_)) => {}
            }
        }
    }

    #[test]
    fn nesting_is_bounded_and_strings_come_back() {
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert!(parse(&format!("{}{}", "[".repeat(33), "]".repeat(33))).is_ok());
        let text = "a\"\\\n\u{1}é😀/";
        let mut out = String::new();
        quote(&mut out, text);
        assert_eq!(parse(&out).ok(), Some(Json::Text(text.into())));
    }
}
