//! Words of a command line as a shell takes them.
//!
//! Must not know: what the words mean.

/// The words with blanks between them, each quoted where a shell would change it.
pub fn line_of<W: AsRef<str>>(words: &[W]) -> String {
    words.iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// One word, so that a shell takes it as it is. Control characters are escaped: a terminal sees none.
pub fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "_-+=./:,@%^".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_string();
    }
    if !word.chars().any(char::is_control) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut text = String::from("$'");
    for character in word.chars() {
        match character {
            '\n' => text += "\\n",
            '\t' => text += "\\t",
            '\'' | '\\' => text.extend(['\\', character]),
            control if control.is_ascii_control() => text += &format!("\\x{:02x}", control as u32),
            control if control.is_control() => text += &format!("\\u{:04x}", control as u32),
            other => text.push(other),
        }
    }
    text + "'"
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_gives_each_word_back() {
        let words =
            ["run", "a b", "", "it's", "p99 > 2ms", "$HOME", "*", "a\tb\n\u{1b}[2J", "ä\\'\u{85}", "~", "#x"];
        let line = line_of(&words);
        assert!(!line.contains(char::is_control), "{line}");
        let output = Command::new("bash")
            .args(["-c", &format!("printf '%s\\0' {line}")])
            .env("LC_ALL", "C.UTF-8")
            .output()
            .expect("bash runs");
        let back = String::from_utf8(output.stdout).expect("text");
        assert_eq!(back.split('\0').collect::<Vec<_>>(), [&words[..], &[""]].concat());
    }

    #[test]
    fn plain_words_stay_as_they_are() {
        let words = ["compare", "-g", "4", "--kernel=v6.6-run-to-parity", "v6.6,base_slice_ns=1", "a/b.toml"];
        assert_eq!(line_of(&words), words.join(" "));
    }
}
