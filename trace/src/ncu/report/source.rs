//! Code that launches ran: what a report has of it as text, and the functions of its machine code.

use std::sync::Arc;

use hashbrown::HashMap;

use super::super::Failure;
use super::super::table::Profiles;
use super::module::Module;
use super::rules::text;
use crate::wire::{Damage, Message, Value};
use flopwatch_model::{KernelCode, KernelFunction, SourceFile};

/// Code of the sources of a report, by their ids.
#[derive(Default)]
pub(super) struct Sources<'a> {
    codes: HashMap<u64, Arc<KernelCode>>,
    modules: HashMap<u64, Module<'a>>,
    /// Functions that were looked for already; `None` for those that were not found.
    functions: HashMap<FunctionKey<'a>, Option<Arc<KernelFunction>>>,
}

/// A function that is looked for: its source, its name, and where it begins.
type FunctionKey<'a> = (u64, &'a [u8], Option<u64>);

impl<'a> Sources<'a> {
    /// Reads the sources of a report.
    pub(super) fn read(messages: &[Message<'a>], profiles: &mut Profiles<'_>) -> Result<Self, Failure> {
        let mut sources = Self::default();
        for message in messages {
            let (id, code, module) = source(*message)?;
            // A report can name a source once more, without what it has said of it.
            let Some(id) = id.filter(|_| code != KernelCode::default()) else {
                continue;
            };
            sources.codes.insert(id, profiles.code(&code)?);
            if let Some(module) = module {
                sources.modules.insert(id, module);
            }
        }
        Ok(sources)
    }

    /// The code of a source.
    pub(super) fn code(&self, id: u64) -> Option<Arc<KernelCode>> {
        self.codes.get(&id).cloned()
    }

    /// The function of that name in the machine code of a source; `entry` is where a launch had its
    /// first instruction.
    pub(super) fn function(
        &mut self,
        id: u64,
        name: &'a [u8],
        entry: Option<u64>,
        profiles: &mut Profiles<'_>,
    ) -> Result<Option<Arc<KernelFunction>>, Failure> {
        let key = (id, name, entry);
        if let Some(known) = self.functions.get(&key) {
            return Ok(known.clone());
        }
        let found = self
            .modules
            .get_mut(&id)
            .and_then(|module| module.function(name, entry));
        let found = found.map(|function| profiles.function(function)).transpose()?;
        self.functions.insert(key, found.clone());
        Ok(found)
    }
}

/// The id of a source, its text, and its machine code.
fn source(message: Message<'_>) -> Result<(Option<u64>, KernelCode, Option<Module<'_>>), Damage> {
    let (mut id, mut code, mut module) = (None, KernelCode::default(), None);
    for field in message.fields() {
        match field? {
            (1, value) => id = value.number(),
            (2, value) => code.source = text(value),
            (3, value) => code.ptx = text(value),
            (4, value) => {
                let binary = value.bytes().unwrap_or_default();
                code.machine_code_bytes = u64::try_from(binary.len()).unwrap_or(u64::MAX);
                module = Module::parse(binary);
                if code.ptx.is_empty() {
                    code.ptx = module.as_ref().and_then(Module::ptx).unwrap_or_default();
                }
            }
            (8, value) => files(value, &mut code.files)?,
            _ => {}
        }
    }
    Ok((id, code, module))
}

/// Source files that were read in when the report was made (`--import-source`).
fn files(value: Value<'_>, files: &mut Vec<SourceFile>) -> Result<(), Damage> {
    for field in value.message().into_iter().flat_map(Message::fields) {
        let (1, file) = field? else { continue };
        let mut found = SourceFile::default();
        for field in file.message().into_iter().flat_map(Message::fields) {
            match field? {
                (1, value) => found.path = text(value),
                (2, value) => found.text = text(value),
                _ => {}
            }
        }
        files.push(found);
    }
    Ok(())
}
