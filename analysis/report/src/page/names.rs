//! Names that have to be short, and still differ.

use std::collections::{BTreeMap, BTreeSet};

use super::printable::{printable, shortened};

/// How often names that look alike are set apart.
const MAX_ROUNDS: usize = 4;
/// Characters that are shown before those in which names differ.
const CONTEXT: usize = 4;

/// The names with at most `longest` characters each. Kernels lose their return type and their
/// arguments first, then any name its middle; of names that would look alike then, what differs is
/// shown instead.
pub fn apart(names: &[&str], longest: usize) -> Vec<String> {
    let plain = plain(names, longest);
    let mut shown: Vec<String> = plain.iter().map(|name| shortened(name, longest)).collect();
    let mut places: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); plain.len()];
    for _ in 0..MAX_ROUNDS {
        let mut alike: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (shown, name) in shown.iter().zip(&plain) {
            alike.entry(shown).or_default().insert(name);
        }
        alike.retain(|_, names| names.len() > 1);
        if alike.is_empty() {
            break;
        }
        let mut told = Vec::with_capacity(shown.len());
        for ((shown, name), places) in shown.iter().zip(&plain).zip(&mut places) {
            told.push(match alike.get(shown.as_str()) {
                Some(names) => {
                    places.insert(common(names));
                    with_places(name, places, longest)
                }
                None => shown.clone(),
            });
        }
        drop(alike);
        shown = told;
    }
    shown
}

/// The names that are too long without what no reader needs; a name that would be that of another
/// then stays whole.
fn plain<'a>(names: &[&'a str], longest: usize) -> Vec<&'a str> {
    let too_long = |name: &str| name.chars().count() > longest;
    let mut owners: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for name in names {
        owners.entry(without_signature(name)).or_default().insert(name);
    }
    let plain = names.iter().map(|name| {
        let plain = without_signature(name);
        let is_own = owners.get(plain).is_some_and(|names| names.len() == 1);
        if is_own && too_long(name) { plain } else { name }
    });
    plain.collect()
}

/// A kernel's name as C++ has it without its return type and its arguments.
fn without_signature(name: &str) -> &str {
    let Some(rest) = name.strip_prefix("void ").filter(|rest| rest.ends_with(')')) else {
        return name;
    };
    let mut open = 0_usize;
    for (at, letter) in rest.char_indices().rev() {
        match letter {
            ')' => open += 1,
            '(' => open = open.saturating_sub(1),
            _ => {}
        }
        if open == 0 {
            return rest.get(..at).filter(|name| !name.is_empty()).unwrap_or(rest);
        }
    }
    rest
}

/// How many characters all the names begin with.
fn common(names: &BTreeSet<&str>) -> usize {
    // Of sorted names the first and the last differ most.
    let (Some(first), Some(last)) = (names.first(), names.last()) else {
        return 0;
    };
    first.chars().zip(last.chars()).take_while(|(a, b)| a == b).count()
}

/// The beginning of the name, and what stands at these places of it.
fn with_places(name: &str, places: &BTreeSet<usize>, longest: usize) -> String {
    let letters: Vec<char> = name.chars().map(printable).collect();
    let head = longest / 4;
    let room = longest.saturating_sub(head);
    let each = (room / places.len().max(1)).saturating_sub(1);
    let mut text: String = letters.iter().take(head).collect();
    let (mut used, mut next) = (head.min(letters.len()), head);
    for (number, place) in places.iter().enumerate() {
        let is_last = number + 1 == places.len();
        let left = longest.saturating_sub(used + 1);
        let mut begin = place.saturating_sub(CONTEXT.min(each / 2));
        if is_last {
            // Where the rest of the name has room, more before it has.
            begin = begin.min(letters.len().saturating_sub(left));
        }
        if begin <= next {
            begin = next;
        } else {
            text.push('…');
            used += 1;
        }
        let width = if is_last { longest.saturating_sub(used) } else { each };
        let rest = letters.len().saturating_sub(begin);
        let width = if is_last && rest > width {
            width.saturating_sub(1)
        } else {
            width.min(rest)
        };
        text.extend(letters.iter().skip(begin).take(width));
        used += width;
        next = begin + width;
    }
    if next < letters.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(names: &[&str], longest: usize) -> Vec<String> {
        let shown = apart(names, longest);
        assert!(
            shown.iter().all(|name| name.chars().count() <= longest),
            "{longest}: {shown:?}"
        );
        shown
    }

    #[test]
    fn kernels_lose_their_return_type_and_arguments_first() {
        let names = [
            "void at::native::(anonymous namespace)::fill<float>(float*, int)",
            "gemm",
            "void f(int)",
        ];
        assert_eq!(
            fit(&names, 48),
            ["at::native::(anonymous namespace)::fill<float>", "gemm", "void f(int)"]
        );
        // Two that differ in their arguments alone keep them.
        let overloads = ["void a_long_name(float*, int)", "void a_long_name(double*, int)"];
        let shown = fit(&overloads, 20);
        assert_ne!(shown[0], shown[1]);
    }

    #[test]
    fn names_that_differ_in_their_middle_still_do() {
        let begin = "at::native::vectorized_elementwise_kernel<4, at::native::";
        let end = "Functor<float>, std::array<char*, 3ul>>";
        let names = ["Add", "Mul", "Fill", "Fill"].map(|name| format!("{begin}{name}{end}"));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let shown = fit(&names, 40);
        for (shown, name) in shown.iter().zip(["Add", "Mul", "Fill", "Fill"]) {
            assert!(shown.contains(name), "{shown}");
        }
        assert_eq!(shown[2], shown[3]);
    }

    #[test]
    fn names_that_differ_in_two_places_are_set_apart_one_after_the_other() {
        let names: Vec<String> = ["a", "b"]
            .iter()
            .flat_map(|one| ["x", "y"].map(|two| format!("{0}{one}{0}{two}{0}", "-".repeat(60))))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let shown = fit(&names, 30);
        let distinct: BTreeSet<&String> = shown.iter().collect();
        assert_eq!(distinct.len(), 4, "{shown:?}");
    }

    #[test]
    fn what_is_short_enough_stays_and_steers_no_terminal() {
        assert_eq!(fit(&["short", "a\u{1b}[2J"], 10), ["short", "a\u{fffd}[2J"]);
    }
}
