//! Stands in for iceberg-rust's crate of the same name, which is not published.

/// Makes a name for a namespace or a table of a test from parts.
pub fn name_of(parts: &[String]) -> String {
    parts.join("_").chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// Makes a name from whatever can be shown.
#[macro_export]
macro_rules! normalize_test_name_with_parts {
    ($($part:expr),+ $(,)?) => { $crate::name_of(&[$($part.to_string()),+]) };
}
