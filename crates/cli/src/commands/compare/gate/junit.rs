//! Verdicts as JUnit XML, as GitLab, Jenkins and others read it: each rule is a test case. A regression is a failure; what is undecided
//! is an error, since the test came to no end.
//!
//! Must not know: where it is written.

use fairlab_event::escaped::xml;
use fairlab_lab::answer::gate::{GateAnswer, GateVerdict, RuleAnswer};

use super::line;

/// The whole file.
pub fn to_xml(baseline: &str, gate: &GateAnswer) -> String {
    let counts = counts(&gate.rules);
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"fairlab compare\"{counts}>\n"
    );
    for rules in gate.rules.chunk_by(|one, other| one.kernel == other.kernel) {
        let kernel = &rules[0].kernel;
        let name = xml(&format!("{baseline} to {kernel}"));
        text += &format!("  <testsuite name=\"{name}\"{}>\n", self::counts(rules));
        rules.iter().for_each(|rule| text += &case(rule));
        text += "  </testsuite>\n";
    }
    text + "</testsuites>\n"
}

fn counts(rules: &[RuleAnswer]) -> String {
    let of = |outcome| rules.iter().filter(|rule| rule.outcome == outcome).count();
    let (failures, errors) = (of(GateVerdict::Regression), of(GateVerdict::Undecided));
    format!(" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\"", rules.len())
}

fn case(rule: &RuleAnswer) -> String {
    let [name, class, line] =
        [rule.rule.clone(), format!("fairlab.{}", rule.kernel), line(rule)].map(|text| xml(&text));
    let inside = match rule.outcome {
        GateVerdict::Passed => format!("<system-out>{line}</system-out>"),
        GateVerdict::Regression => {
            format!("<failure type=\"regression\" message=\"{line}\">{line}</failure>")
        }
        GateVerdict::Undecided => format!("<error type=\"undecided\" message=\"{line}\">{line}</error>"),
    };
    format!("    <testcase name=\"{name}\" classname=\"{class}\">{inside}</testcase>\n")
}

#[cfg(test)]
mod tests {
    use super::super::tests::rule;
    use super::*;

    #[test]
    fn each_rule_is_a_test_case_and_no_name_is_markup() {
        let rules = vec![
            rule(GateVerdict::Passed, "a\"&<b>\u{1b}\n"),
            rule(GateVerdict::Regression, "c"),
            rule(GateVerdict::Undecided, "c"),
        ];
        let text = to_xml("v6.5", &GateAnswer { outcome: GateVerdict::Regression, rules });
        assert!(text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"fairlab compare\" tests=\"3\" failures=\"1\" errors=\"1\">"));
        assert!(
            text.contains("name=\"p99&gt;+5%\" classname=\"fairlab.a&quot;&amp;&lt;b&gt;\\x1b\\n\""),
            "{text}"
        );
        assert!(
            text.contains("<testsuite name=\"v6.5 to c\" tests=\"2\" failures=\"1\" errors=\"1\">"),
            "{text}"
        );
        assert!(text.contains("<failure type=\"regression\"") && text.contains("<error type=\"undecided\""));
        let is_odd = |char: char| char.is_control() && char != '\n';
        assert!(!text.contains(is_odd) && text.matches('<').count() == text.matches('>').count());
    }
}
