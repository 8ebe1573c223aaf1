//! TSDL to a description.
//!
//! Facts: the Common Trace Format's specification, v1.8.3, appendix C. Must not know: files.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::lexer::{Token, words};
use super::types::{CtfByteOrder, CtfDescription, CtfInteger, CtfStruct, CtfType, EventClass, StreamClass};

/// Reads a description.
///
/// # Errors
/// What is wrong, and in which line.
pub(super) fn parse(text: &str) -> Result<CtfDescription, String> {
    let tokens = words(text)?;
    let mut parser = TsdlParser {
        tokens,
        at: 0,
        depth: 0,
        named: HashMap::new(),
        events: Vec::new(),
        description: empty(),
    };
    while parser.at < parser.tokens.len() {
        parser.declaration()?;
    }
    let TsdlParser { events, mut description, .. } = parser;
    for (stream, id, event) in events {
        description.streams.entry(stream).or_default().events.insert(id, Rc::new(event));
    }
    Ok(description)
}

fn empty() -> CtfDescription {
    CtfDescription {
        order: CtfByteOrder::Little,
        packet_header: None,
        streams: BTreeMap::new(),
        env: BTreeMap::new(),
        clocks: BTreeMap::new(),
    }
}

struct TsdlParser {
    tokens: Vec<(Token, usize)>,
    at: usize,
    depth: u32,
    /// Types by name, structures and their like with the word that they are declared by in front.
    named: HashMap<String, CtfType>,
    events: Vec<(u64, u64, EventClass)>,
    description: CtfDescription,
}

/// What stands behind `name =` or `name :=`.
enum TsdlAttribute {
    Number(i128),
    /// A word, a path or a text.
    Text(String),
    Type(CtfType),
}

/// Types within types, deeper than any recorder writes.
const DEPTH_MAX: u32 = 64;

impl TsdlParser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn is_sign(&self, sign: char) -> bool {
        self.peek() == Some(&Token::Sign(sign))
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(found)) if found == word)
    }

    fn wrong<T>(&self, wanted: &str) -> Result<T, String> {
        let line = self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |&(_, line)| line);
        let found = match self.peek() {
            Some(Token::Word(word)) => format!("'{word}'"),
            Some(Token::Number(number)) => format!("'{number}'"),
            Some(Token::Text(_)) => "a text".to_string(),
            Some(Token::Sign(sign)) => format!("'{sign}'"),
            None => "its end".to_string(),
        };
        Err(format!("line {line}: {found} stands where {wanted} is expected"))
    }

    fn take(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += 1;
        token
    }

    fn sign(&mut self, sign: char) -> Result<(), String> {
        if !self.is_sign(sign) {
            return self.wrong(&format!("'{sign}'"));
        }
        self.at += 1;
        Ok(())
    }

    /// Takes `sign` if it stands there.
    fn maybe(&mut self, sign: char) -> bool {
        let is_there = self.is_sign(sign);
        self.at += usize::from(is_there);
        is_there
    }

    fn word(&mut self, wanted: &str) -> Result<String, String> {
        match self.peek() {
            Some(Token::Word(word)) => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            _ => self.wrong(wanted),
        }
    }

    fn number(&mut self, wanted: &str) -> Result<i128, String> {
        match self.peek() {
            Some(&Token::Number(number)) => {
                self.at += 1;
                Ok(number)
            }
            _ => self.wrong(wanted),
        }
    }

    fn declaration(&mut self) -> Result<(), String> {
        if self.maybe(';') {
            return Ok(());
        }
        match self.peek() {
            Some(Token::Word(word)) => match word.as_str() {
                "typealias" | "typedef" => self.typealias()?,
                "trace" => self.trace()?,
                "env" => self.env()?,
                "clock" => self.clock()?,
                "stream" => self.stream()?,
                "event" => self.event()?,
                "callsite" => drop(self.block()?),
                _ => drop(self.a_type()?),
            },
            _ => return self.wrong("a declaration"),
        }
        self.sign(';')
    }

    /// `typealias TYPE := NAME`, of several words perhaps.
    fn typealias(&mut self) -> Result<(), String> {
        self.at += 1;
        let of = self.a_type()?;
        self.maybe('=');
        let mut name = Vec::new();
        while let Some(Token::Word(word)) = self.peek() {
            name.push(word.clone());
            self.at += 1;
        }
        if name.is_empty() {
            return self.wrong("the name of a type");
        }
        self.named.insert(name.join(" "), of);
        Ok(())
    }

    /// `WORD { NAME = VALUE; NAME := TYPE; }`.
    fn block(&mut self) -> Result<Vec<(String, TsdlAttribute)>, String> {
        self.at += 1;
        self.sign('{')?;
        let mut told = Vec::new();
        while !self.maybe('}') {
            if self.is_word("typealias") || self.is_word("typedef") {
                self.typealias()?;
            } else if let Some(entry) = self.entry()? {
                told.push(entry);
            }
            self.sign(';')?;
        }
        Ok(told)
    }

    /// `NAME = VALUE`; none where a type is declared.
    fn entry(&mut self) -> Result<Option<(String, TsdlAttribute)>, String> {
        if self.declares_type() {
            self.a_type()?;
            return Ok(None);
        }
        let name = self.path("a name")?;
        self.sign('=')?;
        let of_type =
            ["packet.header", "packet.context", "event.header", "event.context", "context", "fields"];
        if of_type.contains(&name.as_str()) {
            return Ok(Some((name, TsdlAttribute::Type(self.a_type()?))));
        }
        let told = match self.peek() {
            Some(&Token::Number(number)) => {
                self.at += 1;
                TsdlAttribute::Number(number)
            }
            Some(Token::Text(text)) => {
                let text = text.clone();
                self.at += 1;
                TsdlAttribute::Text(text)
            }
            _ => TsdlAttribute::Text(self.path("a value")?),
        };
        Ok(Some((name, told)))
    }

    fn declares_type(&self) -> bool {
        let is_word = ["struct", "enum", "variant"].iter().any(|word| self.is_word(word));
        is_word && !matches!(self.tokens.get(self.at + 1), Some((Token::Sign('.' | '='), _)))
    }

    /// Words with points between.
    fn path(&mut self, wanted: &str) -> Result<String, String> {
        let mut path = self.word(wanted)?;
        while self.is_sign('.') {
            self.at += 1;
            path.push('.');
            path += &self.word(wanted)?;
        }
        Ok(path)
    }

    fn trace(&mut self) -> Result<(), String> {
        for (name, told) in self.block()? {
            match (name.as_str(), told) {
                ("byte_order", TsdlAttribute::Text(order)) => {
                    self.description.order = order_of(&order).unwrap_or(CtfByteOrder::Little);
                }
                ("packet.header", TsdlAttribute::Type(header)) => {
                    self.description.packet_header = Some(header);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn env(&mut self) -> Result<(), String> {
        for (name, told) in self.block()? {
            let value = match told {
                TsdlAttribute::Number(number) => number.to_string(),
                TsdlAttribute::Text(text) => text,
                TsdlAttribute::Type(_) => continue,
            };
            self.description.env.insert(name, value);
        }
        Ok(())
    }

    fn clock(&mut self) -> Result<(), String> {
        const NS: u64 = 1_000_000_000;
        let (mut name, mut frequency) = (String::new(), NS);
        for (key, told) in self.block()? {
            match (key.as_str(), told) {
                ("name", TsdlAttribute::Text(text)) => name = text,
                ("freq", TsdlAttribute::Number(number)) => {
                    frequency = u64::try_from(number).ok().filter(|&number| number > 0).unwrap_or(NS);
                }
                _ => {}
            }
        }
        self.description.clocks.insert(name, frequency);
        Ok(())
    }

    fn stream(&mut self) -> Result<(), String> {
        let (mut id, mut class) = (0, StreamClass::default());
        for (name, told) in self.block()? {
            match (name.as_str(), told) {
                ("id", TsdlAttribute::Number(number)) => id = self.as_id(number)?,
                ("packet.context", TsdlAttribute::Type(of)) => class.packet_context = Some(of),
                ("event.header", TsdlAttribute::Type(of)) => class.event_header = Some(of),
                ("event.context", TsdlAttribute::Type(of)) => class.event_context = Some(of),
                _ => {}
            }
        }
        self.description.streams.insert(id, class);
        Ok(())
    }

    fn event(&mut self) -> Result<(), String> {
        let (mut stream, mut id, mut class) = (0, 0, EventClass::default());
        for (name, told) in self.block()? {
            match (name.as_str(), told) {
                ("stream_id", TsdlAttribute::Number(number)) => stream = self.as_id(number)?,
                ("id", TsdlAttribute::Number(number)) => id = self.as_id(number)?,
                ("name", TsdlAttribute::Text(name)) => {
                    class.name = name.rsplit(':').next().unwrap_or(&name).to_string();
                }
                ("context", TsdlAttribute::Type(of)) => class.context = Some(of),
                ("fields", TsdlAttribute::Type(of)) => class.fields = Some(of),
                _ => {}
            }
        }
        self.events.push((stream, id, class));
        Ok(())
    }

    fn as_id(&self, number: i128) -> Result<u64, String> {
        u64::try_from(number).or_else(|_| self.wrong("an id"))
    }

    fn a_type(&mut self) -> Result<CtfType, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.wrong("no deeper type");
        }
        let word = self.word("a type")?;
        let of = match word.as_str() {
            "integer" => CtfType::Int(self.integer()?),
            "floating_point" => self.float()?,
            "string" => {
                if self.is_sign('{') {
                    self.attributes()?;
                }
                CtfType::Text
            }
            "struct" => self.structure()?,
            "variant" => self.variant()?,
            "enum" => self.enumeration()?,
            _ => {
                self.at -= 1;
                self.type_by_name()?
            }
        };
        self.depth -= 1;
        Ok(of)
    }

    /// A name of one word or several: as many as make a name that is known.
    fn type_by_name(&mut self) -> Result<CtfType, String> {
        let mut name = String::new();
        let mut found = None;
        for (ahead, (token, _)) in self.tokens[self.at..].iter().enumerate().take(8) {
            let Token::Word(word) = token else { break };
            if ahead > 0 {
                name.push(' ');
            }
            name += word;
            if let Some(of) = self.named.get(&name) {
                found = Some((ahead + 1, of.clone()));
            }
        }
        let Some((words, of)) = found else { return self.wrong("a type that is declared") };
        self.at += words;
        Ok(of)
    }

    /// `{ NAME = VALUE; }`.
    fn attributes(&mut self) -> Result<Vec<(String, TsdlAttribute)>, String> {
        self.at -= 1;
        self.block()
    }

    fn integer(&mut self) -> Result<CtfInteger, String> {
        let mut int =
            CtfInteger { size: 0, align: 0, signed: false, order: None, is_char: false, clock: None };
        for (name, told) in self.attributes()? {
            match (name.as_str(), told) {
                ("size", TsdlAttribute::Number(number)) => int.size = u32::try_from(number).unwrap_or(0),
                ("align", TsdlAttribute::Number(number)) => int.align = u32::try_from(number).unwrap_or(0),
                ("signed", TsdlAttribute::Number(number)) => int.signed = number != 0,
                ("signed", TsdlAttribute::Text(word)) => int.signed = word.eq_ignore_ascii_case("true"),
                ("byte_order", TsdlAttribute::Text(word)) => int.order = order_of(&word),
                ("encoding", TsdlAttribute::Text(word)) => int.is_char = !word.eq_ignore_ascii_case("none"),
                ("map", TsdlAttribute::Text(path)) => {
                    int.clock = path.split('.').nth(1).map(str::to_string);
                }
                _ => {}
            }
        }
        if !(1..=64).contains(&int.size) {
            return self.wrong("an integer of 1 to 64 bits");
        }
        if int.align == 0 {
            int.align = if int.size.is_multiple_of(8) { 8 } else { 1 };
        }
        self.aligned(int.align)?;
        Ok(int)
    }

    fn aligned(&self, align: u32) -> Result<(), String> {
        if align.is_power_of_two() && align <= 1 << 16 {
            Ok(())
        } else {
            self.wrong("an alignment that is a power of two")
        }
    }

    fn float(&mut self) -> Result<CtfType, String> {
        let (mut size, mut align) = (0_u32, 1_u32);
        for (name, told) in self.attributes()? {
            let TsdlAttribute::Number(number) = told else { continue };
            let number = u32::try_from(number).unwrap_or(0);
            match name.as_str() {
                "exp_dig" | "mant_dig" => size = size.saturating_add(number),
                "align" => align = number,
                _ => {}
            }
        }
        self.aligned(align)?;
        Ok(CtfType::Float { size: size.min(128), align })
    }

    /// A body in braces, or the name of one.
    fn structure(&mut self) -> Result<CtfType, String> {
        let name = self.optional_name();
        if !self.is_sign('{') {
            return self.known("struct", name);
        }
        let mut of = self.fields()?;
        if self.is_word("align") {
            self.at += 1;
            self.sign('(')?;
            let align = u32::try_from(self.number("an alignment")?).unwrap_or(0);
            self.aligned(align)?;
            self.sign(')')?;
            of.align = of.align.max(align);
        }
        Ok(self.declare("struct", name, CtfType::Struct(Rc::new(of))))
    }

    fn variant(&mut self) -> Result<CtfType, String> {
        let name = self.optional_name();
        let mut tag = String::new();
        if self.maybe('<') {
            tag = last_of(&self.path("a field")?);
            self.sign('>')?;
        }
        let of = if self.is_sign('{') {
            CtfType::Variant { tag: tag.clone(), options: Rc::new(self.fields()?) }
        } else {
            self.known("variant", name.clone())?
        };
        let of = self.declare("variant", name, of);
        Ok(match of {
            CtfType::Variant { options, tag: own } => {
                CtfType::Variant { tag: if tag.is_empty() { own } else { tag }, options }
            }
            of => of,
        })
    }

    fn enumeration(&mut self) -> Result<CtfType, String> {
        let name = self.optional_name();
        let mut of =
            CtfInteger { size: 32, align: 8, signed: false, order: None, is_char: false, clock: None };
        if self.maybe(':') {
            match self.a_type()? {
                CtfType::Int(int) => of = int,
                _ => return self.wrong("an enumeration of integers"),
            }
        }
        if !self.maybe('{') {
            return self.known("enum", name);
        }
        let (mut labels, mut next) = (Vec::new(), 0);
        while !self.maybe('}') {
            let Some(Token::Word(label) | Token::Text(label)) = self.take() else {
                self.at -= 1;
                return self.wrong("a label");
            };
            let (mut low, mut high) = (next, next);
            if self.maybe('=') {
                low = self.number("a number")?;
                high = if self.maybe('.') { self.number("a number")? } else { low };
            }
            next = high.wrapping_add(1);
            labels.push((label, low, high));
            self.maybe(',');
        }
        Ok(self.declare("enum", name, CtfType::Enum { of, labels }))
    }

    fn optional_name(&mut self) -> Option<String> {
        let Some(Token::Word(word)) = self.peek() else { return None };
        let word = word.clone();
        self.at += 1;
        Some(word)
    }

    fn known(&self, kind: &str, name: Option<String>) -> Result<CtfType, String> {
        let name = format!("{kind} {}", name.unwrap_or_default());
        match self.named.get(&name) {
            Some(of) => Ok(of.clone()),
            None => Err(format!("{name} is not declared{}", self.line())),
        }
    }

    fn line(&self) -> String {
        self.tokens.get(self.at).map_or(String::new(), |(_, line)| format!(" before line {line}"))
    }

    fn declare(&mut self, kind: &str, name: Option<String>, of: CtfType) -> CtfType {
        if let Some(name) = name {
            self.named.insert(format!("{kind} {name}"), of.clone());
        }
        of
    }

    /// `{ TYPE NAME[LENGTH], NAME; }`.
    fn fields(&mut self) -> Result<CtfStruct, String> {
        self.sign('{')?;
        let mut fields = Vec::new();
        while !self.maybe('}') {
            if self.is_word("typealias") || self.is_word("typedef") {
                self.typealias()?;
                self.sign(';')?;
                continue;
            }
            let field = self.a_type()?;
            while !self.maybe(';') {
                let name = self.word("a field's name")?;
                let field = self.lengths(field.clone())?;
                fields.push((name, field));
                self.maybe(',');
            }
        }
        CtfStruct::new(fields, 1).map_err(|fact| format!("{fact}{}", self.line()))
    }

    fn lengths(&mut self, mut field: CtfType) -> Result<CtfType, String> {
        let mut lengths = Vec::new();
        while self.maybe('[') {
            if lengths.len() >= DEPTH_MAX as usize {
                return self.wrong("no deeper type");
            }
            let length = match self.peek() {
                Some(&Token::Number(number)) => {
                    self.at += 1;
                    Ok(u64::try_from(number).or_else(|_| self.wrong("a length"))?)
                }
                _ => Err(last_of(&self.path("a length")?)),
            };
            self.sign(']')?;
            lengths.push(length);
        }
        // The last one is the innermost.
        for length in lengths.into_iter().rev() {
            let of = Rc::new(field);
            field = match length {
                Ok(length) => CtfType::Array { length, of },
                Err(length) => CtfType::Sequence { length, of },
            };
        }
        Ok(field)
    }
}

fn last_of(path: &str) -> String {
    path.rsplit('.').next().unwrap_or(path).to_string()
}

fn order_of(word: &str) -> Option<CtfByteOrder> {
    match word {
        "le" => Some(CtfByteOrder::Little),
        "be" | "network" => Some(CtfByteOrder::Big),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_recorder_writes_is_read() {
        let description = parse(
            "/* CTF 1.8 */ typealias integer { size = 5; align = 1; signed = false; } := uint5_t;
             typealias integer { size = 64; align = 8; map = clock.mono.value; } := unsigned long;
             trace { major = 1; byte_order = be; packet.header := struct { unsigned long magic; uint5_t x[16]; }; };
             env { hostname = \"a b\"; tracer_major = 2; };
             clock { name = \"mono\"; freq = 1000; };
             struct header { enum : uint5_t { compact = 0 ... 30, extended = 31 } id;
                 variant <id> { struct { unsigned long timestamp; } compact; } v; } align(8);
             stream { id = 1; event.header := struct header; };
             event { name = \"sched:a\"; id = 3; stream_id = 1; fields := struct {
                 integer { size = 8; encoding = UTF8; } _comm[16];
                 integer { size = 32; signed = 1; } _n; string _s; unsigned long _list[ _n ]; }; };",
        )
        .expect("a description");
        assert_eq!((description.order, description.clocks["mono"]), (CtfByteOrder::Big, 1000));
        assert_eq!(
            (description.env["hostname"].as_str(), description.env["tracer_major"].as_str()),
            ("a b", "2")
        );
        let stream = &description.streams[&1];
        let Some(CtfType::Struct(header)) = &stream.event_header else { panic!("a structure") };
        assert_eq!((header.align, header.fields.len()), (8, 2));
        let event = &stream.events[&3];
        let Some(CtfType::Struct(fields)) = &event.fields else { panic!("fields") };
        assert_eq!((event.name.as_str(), fields.fields.len()), ("a", 4));
        assert!(
            matches!(&fields.fields[0].1, CtfType::Array { length: 16, of } if matches!(&**of, CtfType::Int(int) if int.is_char))
        );
        assert!(matches!(&fields.fields[3].1, CtfType::Sequence { length, .. } if length == "_n"));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, fact) in [
            ("trace {", "line 1: its end stands where a name is expected"),
            ("\nstruct a;", "struct a is not declared"),
            (
                "\nevent { fields := struct { foo x; }; };",
                "line 2: 'foo' stands where a type that is declared is expected",
            ),
            ("typealias integer { size = 65; } := a;", "an integer of 1 to 64 bits"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(fact), "{error}");
        }
        // Each names the one before twice.
        let doubling = (1..60).fold("typealias integer { size = 8; } := t0;".to_string(), |text, number| {
            let before = number - 1;
            text + &format!(" typealias struct {{ t{before} a; t{before} b; }} := t{number};")
        });
        assert!(parse(&doubling).expect_err("too many").contains("a structure has more than 65536 fields"));
        let lengths =
            "typealias integer { size = 8; } := t; struct a { t x".to_string() + &"[1]".repeat(200_000);
        assert!(parse(&lengths).expect_err("too deep").contains("no deeper type"));
        let nested = (1..10_000).fold("struct s0 { string x; };".to_string(), |text, number| {
            text + &format!(" struct s{number} {{ struct s{} x; }};", number - 1)
        });
        assert!(parse(&nested).expect_err("too deep").contains("structures lie 64 deep"));
        let deep = "struct { ".repeat(100_000);
        assert!(parse(&deep).expect_err("too deep").contains("no deeper type"));
    }
}
