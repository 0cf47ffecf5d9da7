//! A strict JSON reader that keeps the source text: strings are decoded, numbers keep their text, and every value keeps
//! its own bytes.
//!
//! It rejects input that lenient readers accept and then interpret differently: duplicate keys at any depth (escaped
//! spellings included), lone surrogates, a byte order mark, text that is not UTF-8, nesting over [`MAX_DEPTH`]
//! (contract section 7). Numbers are never converted to binary floats.

mod text;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use self::text::plain_length;
pub use self::text::write_string;
use crate::names::Nameable;

/// The deepest nesting; the object of the body is level 1.
pub const MAX_DEPTH: usize = 32;

/// Up to this many members, duplicate keys are found by comparison; above, by a set, so that the cost per member stays
/// constant.
const COMPARED_MEMBERS: usize = 16;

/// Why a text was rejected, in words for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonError {
    /// The bytes are not UTF-8.
    NotUtf8,
    /// The text starts with a byte order mark.
    ByteOrderMark,
    /// The text is not JSON, at this byte.
    Malformed(usize),
    /// The document is followed by other text, at this byte.
    Trailing(usize),
    /// The member of this path occurs twice in its object.
    DuplicateKey(Box<str>),
    /// A `\u` escape is half of a surrogate pair.
    LoneSurrogate(usize),
    /// Arrays and objects are nested too deeply.
    TooDeep(usize),
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUtf8 => f.write_str("the body is not UTF-8"),
            Self::ByteOrderMark => f.write_str("the body starts with a byte order mark"),
            Self::Malformed(at) => write!(f, "the body is not valid JSON (at byte {at})"),
            Self::Trailing(at) => write!(f, "the body has other text after its JSON value (at byte {at})"),
            Self::DuplicateKey(path) => write!(f, "the body names {} twice in one object", Nameable(path)),
            Self::LoneSurrogate(at) => write!(f, "the body has a lone surrogate in a string (at byte {at})"),
            Self::TooDeep(at) => write!(f, "the body is nested more than {MAX_DEPTH} levels deep (at byte {at})"),
        }
    }
}

/// A value with its source text.
#[derive(Debug, Clone, PartialEq)]
pub struct Value<'a> {
    /// The text as sent, without surrounding whitespace.
    pub raw: &'a str,
    /// The decoded value.
    pub node: Node<'a>,
}

/// A decoded value.
#[derive(Debug, Clone, PartialEq)]
pub enum Node<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number; its text is the value's `raw`.
    Number,
    /// A string, decoded.
    String(Cow<'a, str>),
    /// An array.
    Array(Vec<Value<'a>>),
    /// An object.
    Object(Object<'a>),
}

/// The members of an object in the order sent; their names are unique.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Object<'a>(pub Vec<Member<'a>>);

/// A member of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Member<'a> {
    /// The decoded name.
    pub name: Cow<'a, str>,
    /// The name as sent, with quotes.
    pub raw_name: &'a str,
    /// The value.
    pub value: Value<'a>,
}

impl<'a> Object<'a> {
    /// Returns the value of a member.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.0.iter().find(|member| member.name == name).map(|member| &member.value)
    }
}

impl<'a> Value<'a> {
    /// A placeholder, to be replaced by [`Reader::value`].
    const UNREAD: Self = Self { raw: "", node: Node::Null };

    /// Returns the kind of this value, for messages.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self.node {
            Node::Null => "null",
            Node::Bool(_) => "a boolean",
            Node::Number => "a number",
            Node::String(_) => "a string",
            Node::Array(_) => "an array",
            Node::Object(_) => "an object",
        }
    }

    /// The text of a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Node::String(text) = &self.node { Some(text) } else { None }
    }

    /// The members of an object.
    #[must_use]
    pub const fn as_object(&self) -> Option<&Object<'a>> {
        if let Node::Object(object) = &self.node { Some(object) } else { None }
    }
}

/// Receives the members of a document's object that it knows.
pub trait KnownMembers<'a> {
    /// Returns the place of the member of this name; `None`: it is not known.
    fn place(&mut self, name: &str) -> Option<&mut Option<Value<'a>>>;
}

/// Knows no member.
impl<'a> KnownMembers<'a> for () {
    fn place(&mut self, _: &str) -> Option<&mut Option<Value<'a>>> {
        None
    }
}

/// Reads one JSON document.
///
/// # Errors
/// Returns the first error found.
pub fn read(bytes: &[u8]) -> Result<Value<'_>, JsonError> {
    read_into(bytes, &mut ())
}

/// Reads one JSON document. If it is an object, the members that `known` knows go to their places, and the returned object
/// has the others.
///
/// # Errors
/// Returns the first error found; `known` may have some members then.
pub fn read_into<'a>(bytes: &'a [u8], known: &mut impl KnownMembers<'a>) -> Result<Value<'a>, JsonError> {
    let text = std::str::from_utf8(bytes).map_err(|_| JsonError::NotUtf8)?;
    if text.starts_with('\u{feff}') {
        return Err(JsonError::ByteOrderMark);
    }
    let mut reader = Reader { text, at: 0 };
    reader.skip_whitespace();
    let mut value = Value::UNREAD;
    reader.value(0, known, &mut value)?;
    reader.skip_whitespace();
    if reader.at == text.len() { Ok(value) } else { Err(JsonError::Trailing(reader.at)) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn malformed<T>(&self) -> Result<T, JsonError> {
        Err(JsonError::Malformed(self.at))
    }

    fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), JsonError> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            self.malformed()
        }
    }

    /// Reads a value into `place`: values are large, and returning them through every level would move each one several
    /// times. `known` receives members of the value itself, not those inside it.
    fn value(
        &mut self,
        depth: usize,
        known: &mut impl KnownMembers<'a>,
        place: &mut Value<'a>,
    ) -> Result<(), JsonError> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => place.node = Node::String(self.string()?),
            Some(b'{') => {
                let mut members = Members::default();
                self.object(depth + 1, known, &mut members)?;
                place.node = Node::Object(Object(members.list));
            }
            Some(b'[') => {
                let mut items = Vec::new();
                self.array(depth + 1, &mut items)?;
                place.node = Node::Array(items);
            }
            Some(b't') => place.node = self.word("true", Node::Bool(true))?,
            Some(b'f') => place.node = self.word("false", Node::Bool(false))?,
            Some(b'n') => place.node = self.word("null", Node::Null)?,
            Some(b'-' | b'0'..=b'9') => {
                self.number()?;
                place.node = Node::Number;
            }
            _ => return self.malformed(),
        }
        place.raw = &self.text[start..self.at];
        Ok(())
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().split_at(self.at).1
    }

    fn word(&mut self, word: &str, node: Node<'a>) -> Result<Node<'a>, JsonError> {
        if self.rest().starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(node)
        } else {
            self.malformed()
        }
    }

    fn number(&mut self) -> Result<(), JsonError> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return self.malformed(),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { self.malformed() }
    }

    fn array(&mut self, depth: usize, items: &mut Vec<Value<'a>>) -> Result<(), JsonError> {
        self.enter(depth)?;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value(depth, &mut (), items.push_mut(Value::UNREAD))?;
            if self.ends_after_item(b']')? {
                return Ok(());
            }
        }
    }

    fn object(
        &mut self,
        depth: usize,
        known: &mut impl KnownMembers<'a>,
        members: &mut Members<'a>,
    ) -> Result<(), JsonError> {
        self.enter(depth)?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let start = self.at;
            if self.peek() != Some(b'"') {
                return self.malformed();
            }
            let name = self.string()?;
            match known.place(&name) {
                Some(Some(_)) => return Err(JsonError::DuplicateKey(name.into())),
                Some(place) => self.member(depth, &name, place.insert(Value::UNREAD))?,
                None if !members.is_new(&name) => return Err(JsonError::DuplicateKey(name.into())),
                None => {
                    let raw_name = &self.text[start..self.at];
                    let member = members.push(depth, Member { name, raw_name, value: Value::UNREAD });
                    self.member(depth, &member.name, &mut member.value)?;
                }
            }
            if self.ends_after_item(b'}')? {
                return Ok(());
            }
        }
    }

    /// Continues a member behind its name.
    fn member(&mut self, depth: usize, name: &str, place: &mut Value<'a>) -> Result<(), JsonError> {
        self.skip_whitespace();
        self.expect(b':')?;
        self.skip_whitespace();
        self.value(depth, &mut (), place).map_err(|error| {
            let JsonError::DuplicateKey(path) = error else { return error };
            JsonError::DuplicateKey(format!("{name}.{path}").into())
        })
    }

    /// Enters an array or object and skips the whitespace after its bracket.
    fn enter(&mut self, depth: usize) -> Result<(), JsonError> {
        if depth > MAX_DEPTH {
            return Err(JsonError::TooDeep(self.at));
        }
        self.at += 1;
        self.skip_whitespace();
        Ok(())
    }

    /// Called after an item: returns whether the list ends, and otherwise moves to the next item.
    fn ends_after_item(&mut self, end: u8) -> Result<bool, JsonError> {
        self.skip_whitespace();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.skip_whitespace();
                Ok(false)
            }
            Some(byte) if byte == end => {
                self.at += 1;
                Ok(true)
            }
            _ => self.malformed(),
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.expect(b'"')?;
        let start = self.at;
        self.skip_plain();
        match self.peek() {
            Some(b'"') => {
                let text = &self.text[start..self.at];
                self.at += 1;
                Ok(Cow::Borrowed(text))
            }
            Some(b'\\') => self.escaped_string(start).map(Cow::Owned),
            _ => self.malformed(),
        }
    }

    /// Skips characters that need no escape.
    fn skip_plain(&mut self) {
        self.at += plain_length(self.rest());
    }

    /// Continues a string from its first escape.
    fn escaped_string(&mut self, start: usize) -> Result<String, JsonError> {
        let mut decoded = String::with_capacity(self.at - start + 16);
        let mut plain_from = start;
        loop {
            decoded.push_str(&self.text[plain_from..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(decoded);
                }
                Some(b'\\') => decoded.push(self.escape()?),
                _ => return self.malformed(),
            }
            plain_from = self.at;
            self.skip_plain();
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let start = self.at;
        self.at += 1;
        let Some(kind) = self.peek() else { return self.malformed() };
        self.at += 1;
        Ok(match kind {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(start),
            _ => return Err(JsonError::Malformed(start)),
        })
    }

    fn unicode_escape(&mut self, start: usize) -> Result<char, JsonError> {
        let first = self.hexadecimal()?;
        let code = match first {
            0xd800..=0xdbff => {
                if !self.rest().starts_with(b"\\u") {
                    return Err(JsonError::LoneSurrogate(start));
                }
                self.at += 2;
                let second = self.hexadecimal()?;
                if !(0xdc00..=0xdfff).contains(&second) {
                    return Err(JsonError::LoneSurrogate(start));
                }
                0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            other => other,
        };
        char::from_u32(code).ok_or(JsonError::LoneSurrogate(start))
    }

    fn hexadecimal(&mut self) -> Result<u32, JsonError> {
        let mut code = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(16)) else {
                return self.malformed();
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }
}

/// The members read so far, with the means to detect a duplicate name.
#[derive(Default)]
struct Members<'a> {
    list: Vec<Member<'a>>,
    /// The [`mark`]s of all names; a name with a new mark is new and need not be compared.
    marks: u64,
    /// The names, once there are at least [`COMPARED_MEMBERS`].
    seen: Option<HashSet<Box<str>>>,
}

impl<'a> Members<'a> {
    fn push(&mut self, depth: usize, member: Member<'a>) -> &mut Member<'a> {
        if self.list.is_empty() && depth <= 2 {
            // A body and the object in it have more members than objects usually have.
            self.list.reserve(8);
        }
        self.list.push_mut(member)
    }

    fn is_new(&mut self, name: &str) -> bool {
        let mark = mark(name);
        let marked = self.marks & mark != 0;
        self.marks |= mark;
        if self.list.len() < COMPARED_MEMBERS {
            return !marked || !self.list.iter().any(|member| member.name == name);
        }
        let list = &self.list;
        let seen = self.seen.get_or_insert_with(|| list.iter().map(|member| Box::from(member.name.as_ref())).collect());
        seen.insert(name.into())
    }
}

/// Returns one of 64 bits for a name; names with different bits differ.
fn mark(name: &str) -> u64 {
    let [first, last] = [name.bytes().next(), name.bytes().next_back()].map(|byte| usize::from(byte.unwrap_or(0)));
    1 << ((name.len() + first * 5 + last * 11) % 64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(text: &str) -> JsonError {
        read(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn values_keep_their_text() {
        let body = r#" {"a" : 1.50e0, "b":"x\u00e9\n", "\u0063":[true,null ,{}] } "#;
        let value = read(body.as_bytes()).unwrap();
        let Node::Object(object) = &value.node else { panic!("an object") };
        assert_eq!(object.get("a").unwrap().raw, "1.50e0");
        assert_eq!(object.get("b").unwrap().node, Node::String("xé\n".into()));
        assert_eq!(object.get("c").unwrap().raw, "[true,null ,{}]");
        assert_eq!(object.0[2].raw_name, r#""\u0063""#);
        assert!(matches!(object.0[1].name, Cow::Borrowed("b")));
    }

    #[test]
    fn duplicate_keys_at_any_depth_and_in_any_spelling() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":1}"#,
            r#"[{"x":{"y":[{"k":1,"k":2}]}}]"#,
            r#"{"":1,"":2}"#,
            r#"{"é":1,"\u00e9":2}"#,
            r#"{"😀":1,"\ud83d\ude00":2}"#,
        ] {
            assert!(matches!(error(text), JsonError::DuplicateKey(_)), "{text}");
        }
        let mut many: Vec<String> = (0..100).map(|n| format!("\"k{n}\":{n}")).collect();
        assert!(read(format!("{{{}}}", many.join(",")).as_bytes()).is_ok());
        many.push("\"k0\":1".into());
        assert!(matches!(error(&format!("{{{}}}", many.join(","))), JsonError::DuplicateKey(_)));
    }

    #[test]
    fn input_that_lenient_readers_accept_is_rejected() {
        assert_eq!(read(b"\xff{}").unwrap_err(), JsonError::NotUtf8);
        assert_eq!(read(b"\xed\xa0\x80").unwrap_err(), JsonError::NotUtf8);
        assert_eq!(error("\u{feff}{}"), JsonError::ByteOrderMark);
        for text in [r#""\ud800""#, r#""\ud800x""#, r#""\udc00""#, r#""\ud800\u0041""#, r#"{"\ud800":1}"#] {
            assert!(matches!(error(text), JsonError::LoneSurrogate(_)), "{text}");
        }
        for text in ["{} {}", "1 2", "{}x", "null,"] {
            assert!(matches!(error(text), JsonError::Trailing(_)), "{text}");
        }
        for text in [
            "",
            " ",
            "{",
            "}",
            "[1,]",
            "{\"a\":1,}",
            "{a:1}",
            "{'a':1}",
            "01",
            "1.",
            ".5",
            "+1",
            "-",
            "1e",
            "1e+",
            "0x1",
            "NaN",
            "Infinity",
            "tru",
            "nul",
            "\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"a\nb\"",
            "\"\t\"",
            "[1 2]",
            "{\"a\" 1}",
            "// c",
            "{\"a\":1}/**/",
            "\u{a0}1",
            "\"\\ud800\\u\"",
            "[",
            "[1",
            "{\"a\"",
            "{\"a\":",
        ] {
            assert!(matches!(error(text), JsonError::Malformed(_) | JsonError::Trailing(_)), "{text:?}");
        }
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(deep(MAX_DEPTH).as_bytes()).is_ok());
        assert!(matches!(error(&deep(MAX_DEPTH + 1)), JsonError::TooDeep(_)));
        assert!(matches!(error(&"[".repeat(100_000)), JsonError::TooDeep(_)));
    }

    #[test]
    fn nul_and_escapes_are_decoded() {
        let value = read(br#""a\u0000\/\b\f\"\\""#).unwrap();
        assert_eq!(value.node, Node::String("a\0/\u{8}\u{c}\"\\".into()));
    }

    /// Knows `a` and `b`.
    #[derive(Default)]
    struct Known<'a> {
        a: Option<Value<'a>>,
        b: Option<Value<'a>>,
    }

    impl<'a> KnownMembers<'a> for Known<'a> {
        fn place(&mut self, name: &str) -> Option<&mut Option<Value<'a>>> {
            match name {
                "a" => Some(&mut self.a),
                "b" => Some(&mut self.b),
                _ => None,
            }
        }
    }

    #[test]
    fn known_members_go_to_their_places() {
        let mut known = Known::default();
        let others = read_into(br#"{"x":{"a":1},"\u0061":[2] ,"b":null,"y":3}"#, &mut known).unwrap();
        let others: Vec<_> =
            others.as_object().unwrap().0.iter().map(|member| (&*member.name, member.value.raw)).collect();
        assert_eq!(others, [("x", "{\"a\":1}"), ("y", "3")]);
        assert_eq!((known.a.unwrap().raw, known.b.unwrap().node), ("[2]", Node::Null));
        for (text, path) in [
            (r#"{"a":1,"a":1}"#, "a"),
            (r#"{"a":null,"x":1,"\u0061":2}"#, "a"),
            (r#"{"x":1,"a":1,"x":2}"#, "x"),
            (r#"{"a":{"b":{"k":1,"k":2}}}"#, "a.b.k"),
            (r#"{"x":[{"a":1,"a":2}]}"#, "x.a"),
        ] {
            let refused = read_into(text.as_bytes(), &mut Known::default()).unwrap_err();
            assert_eq!(refused, error(text), "{text}");
            assert_eq!(refused, JsonError::DuplicateKey(path.into()));
        }
        assert_eq!(read_into(b"[1]", &mut Known::default()).unwrap().raw, "[1]");
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            "\\PC{0,8}|[\\x00-\\x7f]{0,8}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::btree_map("\\PC{0,4}", inner, 0..6)
                    .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
            ]
        })
    }

    fn to_serde(value: &Value<'_>) -> serde_json::Value {
        match &value.node {
            Node::Null => serde_json::Value::Null,
            Node::Bool(truth) => (*truth).into(),
            Node::Number => serde_json::from_str(value.raw).unwrap(),
            Node::String(text) => text.as_ref().into(),
            Node::Array(items) => items.iter().map(to_serde).collect::<Vec<_>>().into(),
            Node::Object(object) => {
                let members = object.0.iter().map(|member| (member.name.to_string(), to_serde(&member.value)));
                members.collect::<serde_json::Map<_, _>>().into()
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json(document in json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&document) } else { serde_json::to_string(&document) };
            let text = text.unwrap();
            prop_assert_eq!(to_serde(&read(text.as_bytes()).unwrap()), document);
        }

        #[test]
        fn accepts_nothing_that_serde_json_refuses(text in "[\\[\\]{}:,\"a0-9eE.+\\-\\\\u tfn]{0,24}") {
            if read(text.as_bytes()).is_ok() {
                let accepted = serde_json::from_str::<serde_json::Value>(&text);
                let out_of_range = accepted.as_ref().is_err_and(|error| error.to_string().contains("out of range"));
                prop_assert!(accepted.is_ok() || out_of_range, "{}", text);
            }
        }

        #[test]
        fn known_members_change_no_verdict(text in r#"[{\[\]}:,"ab\\u0016 ]{0,24}|\{("[abx]":[1"{}:ab,\[\]]{1,6},?){0,4}\}"#) {
            let mut known = Known::default();
            let apart = read_into(text.as_bytes(), &mut known).map(|others| {
                let others = others.as_object().map_or(0, |others| others.0.len());
                others + [known.a, known.b].iter().flatten().count()
            });
            let whole = read(text.as_bytes()).map(|whole| whole.as_object().map_or(0, |whole| whole.0.len()));
            prop_assert_eq!(apart, whole);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = read(&bytes);
        }
    }
}
