//! TSDL to words.
//!
//! Must not know: what words mean together.

/// One word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A name or a word of the language; `a.b` is three.
    Word(String),
    Number(i128),
    Text(String),
    /// One sign; `:=` is `=`, behind which a type stands, and `...` is `.`.
    Sign(char),
}

/// More words than any kernel's description has.
const TOKENS_MAX: usize = 1 << 22;

/// The words of `text`, each with its line.
///
/// # Errors
/// What stands in which line that is no word.
pub(super) fn words(text: &str) -> Result<Vec<(Token, usize)>, String> {
    let mut lexer = Lexer { rest: text, line: 1 };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next()? {
        if tokens.len() >= TOKENS_MAX {
            return Err(format!("line {}: more than {TOKENS_MAX} words", lexer.line));
        }
        tokens.push((token, lexer.line));
    }
    Ok(tokens)
}

struct Lexer<'t> {
    rest: &'t str,
    line: usize,
}

impl<'t> Lexer<'t> {
    fn take(&mut self, length: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn skip_space(&mut self) -> Result<(), String> {
        loop {
            let space = self.rest.len() - self.rest.trim_start().len();
            self.take(space);
            let comment = if self.rest.starts_with("/*") {
                self.rest.find("*/").map(|at| at + 2).ok_or("a comment that does not end")
            } else if self.rest.starts_with("//") {
                Ok(self.rest.find('\n').unwrap_or(self.rest.len()))
            } else {
                return Ok(());
            };
            let length = comment.map_err(|fact| format!("line {}: {fact}", self.line))?;
            self.take(length);
        }
    }

    fn next(&mut self) -> Result<Option<Token>, String> {
        self.skip_space()?;
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        if first == '"' {
            return self.text().map(Some);
        }
        let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let length = self.rest.find(|char| !is_word(char)).unwrap_or(self.rest.len());
        if first.is_ascii_digit()
            || first == '-' && self.rest[1..].starts_with(|char: char| char.is_ascii_digit())
        {
            return self.number().map(Some);
        }
        if length > 0 {
            return Ok(Some(Token::Word(self.take(length).to_string())));
        }
        for (sign, name) in [("...", '.'), (":=", '=')] {
            if self.rest.starts_with(sign) {
                self.take(sign.len());
                return Ok(Some(Token::Sign(name)));
            }
        }
        self.take(first.len_utf8());
        Ok(Some(Token::Sign(first)))
    }

    fn number(&mut self) -> Result<Token, String> {
        let is_negative = self.rest.starts_with('-');
        self.take(usize::from(is_negative));
        let is_digit = |char: char| char.is_ascii_alphanumeric();
        let length = self.rest.find(|char| !is_digit(char)).unwrap_or(self.rest.len());
        let line = self.line;
        let digits = self.take(length);
        let plain = digits.trim_end_matches(['u', 'U', 'l', 'L']);
        let (radix, plain) = match plain {
            "0" => (10, plain),
            _ if plain.starts_with("0x") || plain.starts_with("0X") => (16, &plain[2..]),
            _ if plain.starts_with('0') => (8, &plain[1..]),
            _ => (10, plain),
        };
        let value = i128::from_str_radix(plain, radix)
            .map_err(|_| format!("line {line}: '{digits}' is no number"))?;
        Ok(Token::Number(if is_negative { -value } else { value }))
    }

    fn text(&mut self) -> Result<Token, String> {
        let line = self.line;
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, char)) = chars.next() {
            match char {
                '"' => {
                    self.take(at + 1);
                    return Ok(Token::Text(text));
                }
                '\\' => text.extend(chars.next().map(|(_, char)| char)),
                char => text.push(char),
            }
        }
        Err(format!("line {line}: a text that does not end"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_numbers_and_texts_are_told_apart() {
        let word = |word: &str| Token::Word(word.to_string());
        let found = words("/* CTF 1.8 */\na.b := 0x1f; // x\n\"q\\\"r\" -3 ... 010").expect("words");
        let lines: Vec<usize> = found.iter().map(|&(_, line)| line).collect();
        let tokens: Vec<Token> = found.into_iter().map(|(token, _)| token).collect();
        let sign = Token::Sign;
        let expected = vec![
            word("a"),
            sign('.'),
            word("b"),
            sign('='),
            Token::Number(31),
            sign(';'),
            Token::Text("q\"r".to_string()),
            Token::Number(-3),
            sign('.'),
            Token::Number(8),
        ];
        assert_eq!((tokens, lines[0], lines[6]), (expected, 2, 3));
        assert_eq!(words("\"a"), Err("line 1: a text that does not end".to_string()));
        assert_eq!(words("\n12ab"), Err("line 2: '12ab' is no number".to_string()));
    }
}
