//! Parses arguments that a program gives instead of a shell: the same words, with the same checks.

use clap::{ArgMatches, Args, Command, FromArgMatches as _};

use super::{ConnectionArguments, GatewayArguments, ProfileArguments};
use crate::error::Error;

/// How a cluster and its gateway are reached.
#[derive(Clone, Debug, Default, Args)]
pub struct ReachArguments {
    /// The cluster.
    #[command(flatten)]
    pub connection: ConnectionArguments,
    /// The gateway.
    #[command(flatten)]
    pub gateway: GatewayArguments,
}

impl ReachArguments {
    /// Parses the words; options that they lack come from the environment. The error is `Usage`
    /// with clap's sentence.
    pub fn of_words(words: Vec<String>) -> Result<Self, Error> {
        Self::from_arg_matches(&matches::<Self>(words)?).map_err(|error| refused(&error))
    }
}

impl ProfileArguments {
    /// Parses the words that follow `profile`. The error is `Usage` with clap's sentence.
    pub fn of_words(words: Vec<String>) -> Result<Self, Error> {
        Self::from_arg_matches(&matches::<Self>(words)?).map_err(|error| refused(&error))
    }
}

fn matches<A: Args>(words: Vec<String>) -> Result<ArgMatches, Error> {
    let command = Command::new("flopwatch").no_binary_name(true).disable_help_flag(true);
    let matches = A::augment_args(command).try_get_matches_from(words);
    matches.map_err(|error| refused(&error))
}

/// The error with the first sentence of clap's message, without the usage of a command line.
fn refused(error: &clap::Error) -> Error {
    let text = error.to_string();
    let sentence = text.split("\n\n").next().unwrap_or_default();
    Error::Usage(sentence.strip_prefix("error: ").unwrap_or(sentence).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Window;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn words_are_read_as_those_of_a_command_line() {
        let arguments = ProfileArguments::of_words(words("--duration=2m --trace=cuda,nvtx -- pod/trainer")).unwrap();
        assert_eq!(arguments.duration, Window(120));
        assert_eq!(arguments.trace.len(), 2);
        let reach = ReachArguments::of_words(words("--namespace=team --token=-t")).unwrap();
        assert_eq!(reach.connection.namespace.as_deref(), Some("team"));
        assert_eq!(reach.gateway.token.as_deref(), Some("-t"));
    }

    #[test]
    fn what_is_wrong_is_said_in_a_sentence() {
        let refusal = |text: &str| ProfileArguments::of_words(words(text)).unwrap_err().to_string();
        assert_eq!(
            refusal("--duration=0 trainer"),
            "invalid value '0' for '--duration <TIME>': a window is 1 to 300 seconds long"
        );
        assert!(refusal("Trainer").contains("a name has lower-case letters"));
        assert!(refusal("--nothing=1 trainer").starts_with("unexpected argument '--nothing'"));
    }
}
