//! The codes that statements are answered with: a counter each, at zero before the first.

/// Every code that a statement may be answered with, sorted.
pub const CODES: [&str; 75] = [
    "SG1101", "SG1102", "SG1103", "SG1104", "SG1106", "SG1108", "SG2001", "SG2002", "SG2003", "SG2004",
    "SG2005", "SG2006", "SG2007", "SG2008", "SG2009", "SG2010", "SG2011", "SG2012", "SG2013", "SG2014",
    "SG2015", "SG2016", "SG2017", "SG2018", "SG2050", "SG2051", "SG2052", "SG2053", "SG2060", "SG2101",
    "SG2102", "SG2103", "SG2104", "SG2105", "SG2106", "SG2107", "SG2109", "SG2110", "SG2201", "SG2202",
    "SG2204", "SG2301", "SG2302", "SG2303", "SG2304", "SG2305", "SG2306", "SG2307", "SG2308", "SG2401",
    "SG2402", "SG2403", "SG2404", "SG2405", "SG2406", "SG2407", "SG2408", "SG2501", "SG2502", "SG2503",
    "SG2504", "SG2505", "SG2506", "SG2507", "SG2508", "SG2601", "SG2602", "SG2603", "SG2605", "SG2701",
    "SG2702", "SG2703", "SG2704", "SG2705", "SG2706",
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// What is listed among the errors but never answers a statement: it is told at another time, or to nobody.
    const OTHER: [&str; 5] = ["SG1105", "SG1107", "SG2108", "SG2203", "SG2604"];

    #[test]
    fn every_code_of_the_page_is_counted_but_those_that_answer_no_statement() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors.md");
        let page = std::fs::read_to_string(page).unwrap();
        let mut listed: Vec<&str> = page.lines().filter_map(|l| l.strip_prefix("### ")).collect();
        // 10: the configuration and the start.
        listed.retain(|code| !code.starts_with("SG10") && !OTHER.contains(code));
        listed.sort_unstable();
        assert_eq!(listed, CODES);
    }
}
