//! Pages: an answer as JSON, the script that draws it and its style, in one file that a browser opens without a network.
//!
//! Scripts and styles are built from `web/` into `bundle/` (`make web`), and committed. Must not know: what an answer says.

pub mod excerpt;
pub mod packed;
pub mod timeline;

use fairlab_event::escaped;
use serde_json::Value;

/// Which script draws a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// A comparison, or any other answer as tables.
    Answer,
    /// Traces, as a line of time.
    Timeline,
    /// What the commits of a range changed in a catalogue of workloads.
    Watch,
}

/// What was built for a kind of page.
struct PageBundle {
    script: &'static str,
    /// Its hash, as a Content-Security-Policy names it.
    hash: &'static str,
    style: &'static str,
}

const ANSWER: PageBundle = PageBundle {
    script: include_str!("../bundle/compare.js"),
    hash: include_str!("../bundle/compare.js.sha256"),
    style: include_str!("../bundle/compare.css"),
};

const TIMELINE: PageBundle = PageBundle {
    script: include_str!("../bundle/timeline.js"),
    hash: include_str!("../bundle/timeline.js.sha256"),
    style: include_str!("../bundle/timeline.css"),
};

const WATCH: PageBundle = PageBundle {
    script: include_str!("../bundle/watch.js"),
    hash: include_str!("../bundle/watch.js.sha256"),
    style: include_str!("../bundle/watch.css"),
};

/// A page of a kind that draws `data`, whole: it asks for no other file. Names in `title` and `data` cannot become markup, and no
/// script but the page's own runs in it.
pub fn html(kind: PageKind, title: &str, data: &Value) -> String {
    let bundle = match kind {
        PageKind::Answer => &ANSWER,
        PageKind::Timeline => &TIMELINE,
        PageKind::Watch => &WATCH,
    };
    let parts = [
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '",
        bundle.hash,
        "'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n",
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
        "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"fairlab\">\n<title>",
        &escaped::xml(title),
        "</title>\n<style>",
        bundle.style,
        "</style>\n</head>\n<body>\n<noscript>This page is drawn by the script that it holds, which this browser does not run. \
         Its data stand in the file as JSON.</noscript>\n<main id=\"page\"></main>\n\
         <script type=\"application/json\" id=\"data\">",
        &inert(data),
        "</script>\n<script>",
        bundle.script,
        "</script>\n</body>\n</html>\n",
    ];
    parts.concat()
}

/// JSON in which nothing can end the element that it stands in, nor begin another, nor lead a reader's eye.
fn inert(data: &Value) -> String {
    let text = data.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    escaped::json(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const HOSTILE: &str = "</script><img src=x onerror=alert(1)><!--<script>\u{2028}\u{202e}&amp;\"'";

    fn data_of(page: &str) -> &str {
        let (_, rest) = page.split_once("id=\"data\">").expect("the page has data");
        rest.split_once("</script>").expect("the data end").0
    }

    #[test]
    fn names_cannot_become_markup() {
        for kind in [PageKind::Answer, PageKind::Timeline, PageKind::Watch] {
            let data = json!({HOSTILE: HOSTILE});
            let page = html(kind, HOSTILE, &data);
            let inside = data_of(&page);
            assert!(!inside.contains(['<', '>', '&', '\u{2028}', '\u{202e}']), "{inside}");
            assert_eq!(serde_json::from_str::<Value>(inside).expect("JSON"), data);
            assert!(!page.contains("<img") && !page.contains("<!--"), "the title is text");
            assert!(page.contains("<title>&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"));
        }
    }

    #[test]
    fn a_page_ends_once_and_asks_for_nothing() {
        let kinds = [(PageKind::Answer, &ANSWER), (PageKind::Timeline, &TIMELINE), (PageKind::Watch, &WATCH)];
        for (kind, bundle) in kinds {
            let page = html(kind, "A page", &json!({}));
            assert_eq!(page.matches("</script").count(), 2);
            assert_eq!(page.matches("</style").count(), 1);
            assert!(bundle.hash.starts_with("sha256-") && bundle.hash.len() == 51, "{}", bundle.hash);
            for asking in ["<link", "<iframe", "@import", "url(http", "src=\"http"] {
                assert!(!page.contains(asking), "{asking}");
            }
        }
    }
}
