//! Patterns of names.

/// Returns true if a name matches a pattern: `*` is any number of characters, `?` is one.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut p = pattern.chars();
    let mut n = name.chars();
    // The rest of the pattern after the last `*`, and the rest of the name where its match begins.
    let mut star = None;
    loop {
        let before = n.clone();
        match (p.next(), n.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                n = before.clone();
                star = Some((p.clone(), before));
            }
            (Some('?'), Some(_)) => {}
            (Some(a), Some(b)) if a == b => {}
            _ => {
                // The last `*` takes one more character.
                let Some((rest, from)) = &mut star else { return false };
                if from.next().is_none() {
                    return false;
                }
                (p, n) = (rest.clone(), from.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn wildcards() {
        for (pattern, name) in [
            ("", ""),
            ("*", ""),
            ("*", "label"),
            ("a*", "a"),
            ("a*", "abc"),
            ("*c", "abcc"),
            ("a*b*c", "a-b-b-c"),
            ("?", "ü"),
            ("image/*", "image/encoded"),
            ("??*", "ab"),
            ("*a?", "aaab"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("", "a"),
            ("?", ""),
            ("a", "ab"),
            ("a*b", "abc"),
            ("*?b", "b"),
            ("[a]", "a"),
            ("??", "ü"),
            ("A", "a"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
        // The time does not grow with the number of stars.
        assert!(!matches(&"*a".repeat(50), &"a".repeat(49)));
    }
}
