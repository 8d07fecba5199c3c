//! The words that an entry of a catalogue is searched by.

/// The words of a search. An entry is found where its texts have all of them, each anywhere and in
/// upper or lower case; without words all entries are found.
#[derive(Debug, Clone)]
pub struct Search {
    /// In lower case.
    words: Vec<String>,
}

impl Search {
    /// The words of `text`, which white space divides.
    pub fn of(text: &str) -> Self {
        let words = text.to_lowercase();
        Self {
            words: words.split_whitespace().map(str::to_owned).collect(),
        }
    }

    /// Whether the texts of an entry have every word.
    pub fn finds(&self, texts: &[&str]) -> bool {
        let texts = texts.join(" ").to_lowercase();
        self.words.iter().all(|word| texts.contains(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_stands_in_one_of_the_texts() {
        let texts = ["idle", "Gaps of GPUs"];
        assert!(Search::of("GPU  Idle").finds(&texts));
        assert!(Search::of("").finds(&texts));
        assert!(!Search::of("idle kernels").finds(&texts));
    }

    #[test]
    fn no_word_is_made_of_two_texts() {
        assert!(!Search::of("idlegaps").finds(&["idle", "gaps"]));
    }
}
