//! Pictures of a report: bars, published beside measured, as SVG.
//!
//! Must not know: what the numbers mean, where a picture is kept.

use std::fmt::Write as _;

use fairlab_event::shown;

use super::render::number;

/// Bars of values, one row a name; the published value above the measured one.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// What is shown, with its unit.
    pub title: String,
    /// Each tenfold is as long as the next, for values that differ by orders of magnitude.
    pub logarithmic: bool,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What was published, if anything.
    pub published: Option<f64>,
    /// What was measured, if anything.
    pub measured: Option<f64>,
}

impl Row {
    pub(super) fn new(name: impl Into<String>, published: Option<f64>, measured: Option<f64>) -> Row {
        Row { name: name.into(), published, measured }
    }
}

/// Sizes in pixels.
const ROW: usize = 34;
const NAMES: usize = 250;
const BARS: f64 = 420.0;
const WIDTH: usize = 780;
const TOP: usize = 54;

/// Colours that print and that the colour-blind tell apart.
const PUBLISHED: &str = "#9aa5b1";
const MEASURED: &str = "#0072b2";

impl Picture {
    /// The picture as a file.
    pub fn to_svg(&self) -> String {
        let height = TOP + ROW * self.rows.len() + 10;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
             <text x=\"10\" y=\"20\" font-size=\"14\" font-weight=\"bold\">{}</text>\n",
            shown::xml(&self.title)
        );
        for (index, (colour, text)) in [(PUBLISHED, "published"), (MEASURED, "measured")].iter().enumerate() {
            let x = NAMES + 110 * index;
            let _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"30\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
                 <text x=\"{}\" y=\"40\">{text}</text>",
                x + 18
            );
        }
        let scale = Scale::of(self);
        for (index, row) in self.rows.iter().enumerate() {
            let y = TOP + ROW * index;
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
                NAMES - 10,
                y + 18,
                shown::xml(&row.name)
            );
            svg += &scale.bar(row.published, PUBLISHED, y);
            svg += &scale.bar(row.measured, MEASURED, y + 14);
        }
        svg + "</svg>\n"
    }
}

/// How long a value is.
struct Scale {
    logarithmic: bool,
    least: f64,
    most: f64,
}

impl Scale {
    fn of(picture: &Picture) -> Scale {
        let values = picture.rows.iter().flat_map(|row| [row.published, row.measured]).flatten();
        let values = values.filter(|value| value.is_finite()).collect::<Vec<_>>();
        let most = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        let small =
            values.iter().filter(|&&value| value > 0.0).fold(f64::MAX, |least, &value| least.min(value));
        // The least value is still a tenth of a decade long.
        Scale { logarithmic: picture.logarithmic, least: small.min(most) * 0.8, most }
    }

    fn length(&self, value: f64) -> f64 {
        let share = if self.logarithmic && value > 0.0 && self.least > 0.0 {
            (value / self.least).ln() / (self.most / self.least).ln()
        } else {
            value.abs() / self.most
        };
        if share.is_finite() { (share * BARS).clamp(0.0, BARS) } else { 0.0 }
    }

    fn bar(&self, value: Option<f64>, colour: &str, y: usize) -> String {
        let Some(value) = value.filter(|value| value.is_finite()) else { return String::new() };
        let length = self.length(value);
        format!(
            "<rect x=\"{NAMES}\" y=\"{y}\" width=\"{length:.1}\" height=\"12\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{}\" font-size=\"11\">{}</text>\n",
            NAMES as f64 + length + 5.0,
            y + 10,
            number(value)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widths(picture: &Picture) -> Vec<f64> {
        let svg = picture.to_svg();
        let bars = svg.lines().filter(|line| line.contains("height=\"12\"") && !line.contains("y=\"30\""));
        let width = |line: &str| line.split("width=\"").nth(1)?.split('"').next()?.parse().ok();
        bars.map(|line| width(line).expect("a width")).collect()
    }

    #[test]
    fn bars_are_as_long_as_their_values_or_as_their_logarithms() {
        let rows = vec![Row::new("a & b", Some(100.0), Some(50.0)), Row::new("c", None, Some(-25.0))];
        let mut picture = Picture { title: "t".to_string(), logarithmic: false, rows };
        assert_eq!(widths(&picture), [BARS, BARS / 2.0, BARS / 4.0]);
        assert!(picture.to_svg().contains("a &amp; b"));
        picture.logarithmic = true;
        picture.rows = [1.0, 10.0, 100.0].map(|value| Row::new("x", None, Some(value))).to_vec();
        let widths = widths(&picture);
        assert!((widths[2] - widths[1] - (widths[1] - widths[0])).abs() < 0.2, "{widths:?}");
    }

    #[test]
    fn nothing_and_zeros_are_drawn_without_trouble() {
        let empty = Picture { title: String::new(), logarithmic: true, rows: Vec::new() };
        assert!(empty.to_svg().ends_with("</svg>\n"));
        let zero = Picture { rows: vec![Row::new("z", Some(0.0), None)], ..empty };
        assert_eq!(widths(&zero), [0.0]);
    }
}
