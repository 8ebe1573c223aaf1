//! Pictures of a report: bars, published beside measured, as data; `web/src/base/bars.ts` draws them, on pages and for documents.
//!
//! Must not know: what the numbers mean, where a picture is kept, how it is drawn.

use serde::Serialize;

/// Bars of values, one row a name; the published value above the measured one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Picture {
    /// What is shown, with its unit.
    pub title: String,
    /// Each tenfold is as long as the next, for values that differ by orders of magnitude.
    pub logarithmic: bool,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What was published, if anything.
    pub published: Option<f64>,
    /// What was measured, if anything.
    pub measured: Option<f64>,
}
