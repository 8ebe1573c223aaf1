//! In which line of a TOML text each value stands.
//!
//! Must not know: what the values mean.

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table};

/// Values by the keys that lead to them: `group./db.cpu.weight`, `workload[1].task[0].steps[2]`.
pub(super) struct KeyLines {
    /// In order of the text.
    places: Vec<(String, usize)>,
}

/// Reads a text.
///
/// # Errors
/// The line, and why it is no TOML.
pub(super) fn read(text: &str) -> Result<(Table, KeyLines), (usize, String)> {
    let line_at = |offset: usize| text[..offset.min(text.len())].matches('\n').count() + 1;
    let told = |error: toml::de::Error| {
        let line = error.span().map_or(1, |span| line_at(span.start));
        (line, error.message().split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let parsed = DeTable::parse(text).map_err(told)?;
    let mut places = Vec::new();
    note_table("", parsed.get_ref(), &mut places);
    let table = toml::from_str(text).map_err(told)?;
    places.sort_by_key(|&(_, offset)| offset);
    let places = places.into_iter().map(|(keys, offset)| (keys, line_at(offset))).collect();
    Ok((table, KeyLines { places }))
}

fn note_table(above: &str, table: &DeTable<'_>, places: &mut Vec<(String, usize)>) {
    for (key, value) in table {
        let keys =
            if above.is_empty() { key.get_ref().to_string() } else { format!("{above}.{}", key.get_ref()) };
        places.push((keys.clone(), key.span().start));
        note(&keys, value, places);
    }
}

fn note(keys: &str, value: &Spanned<DeValue<'_>>, places: &mut Vec<(String, usize)>) {
    match value.get_ref() {
        DeValue::Table(table) => note_table(keys, table, places),
        DeValue::Array(list) => {
            for (number, one) in list.iter().enumerate() {
                let keys = format!("{keys}[{number}]");
                places.push((keys.clone(), one.span().start));
                note(&keys, one, places);
            }
        }
        _ => {}
    }
}

impl KeyLines {
    /// The line of the value that these keys lead to, or of the last table on the way; the first line where none is.
    pub fn of(&self, keys: &str) -> usize {
        let mut wanted = keys;
        loop {
            if let Some((_, line)) = self.places.iter().find(|(known, _)| known == wanted) {
                return *line;
            }
            match wanted.rfind(['.', '[']) {
                Some(end) => wanted = &wanted[..end],
                None => return 1,
            }
        }
    }

    /// The longest keys below `above` with which a problem begins (`task[1].nice: …`), and the rest of it.
    pub fn split<'p>(&self, above: &str, problem: &'p str) -> (String, &'p str) {
        if let Some((keys, rest)) = problem.split_once(": ") {
            let keys = format!("{above}{keys}");
            if self.places.iter().any(|(known, _)| *known == keys) {
                return (keys, rest);
            }
        }
        (above.trim_end_matches('.').to_string(), problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_keys() {
        let text = "[group.\"/db\"]\ncpu.weight = 3\n\"cpu.max.burst\" = 5\n\n[[workload]]\nrun = 'a'\n[[workload]]\n\
            run = 'b'\n[[workload.task]]\nsteps = [\n'x',\n'y',\n]\n";
        let (_, lines) = read(text).expect("TOML");
        for (keys, line) in [
            ("group./db.cpu.weight", 2),
            ("group./db.cpu.max.burst", 3),
            ("workload[0].run", 6),
            ("workload[1]", 7),
            ("workload[1].nothing", 7),
            ("workload[1].task[0].steps[1]", 12),
            ("nothing", 1),
        ] {
            assert_eq!(lines.of(keys), line, "{keys}");
        }
        let (keys, rest) = lines.split("workload[1].", "task[0].steps[1]: no step");
        assert_eq!((keys.as_str(), rest), ("workload[1].task[0].steps[1]", "no step"));
        assert_eq!(lines.split("workload[1].", "wrong: it is").1, "wrong: it is");
        assert_eq!(read("a = \n").err().map(|(line, _)| line), Some(1));
        assert_eq!(read("a = 1\na = 2\n").err().map(|(line, _)| line), Some(2));
    }
}
