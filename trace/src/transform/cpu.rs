//! The engine of the processor: every core takes part, memory beyond the columns stays below the
//! columns' own.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::engine::{CategoryOutput, Columns, Engine, Input, Output};
use super::spans::Spans;
use super::{figures, lanes, lod, order};
use flopwatch_model::{Category, Lod};

/// So few are sorted a category per core. More are sorted one category after the other, each by
/// every core, so that what one needs beside its columns is not there several times.
const FEW_EVENTS: usize = 1 << 20;

/// The heavy steps on the processor, on the current rayon pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cpu;

/// A category whose columns are in order.
struct InOrder {
    category: Category,
    columns: Columns,
    /// Where each event was.
    order: Option<Vec<u32>>,
    /// What sorting used, for another use.
    memory: Vec<u32>,
}

impl Engine for Cpu {
    fn run(&self, input: Input) -> Output {
        let rows = input.rows;
        let sort = |(category, mut columns): (Category, Columns)| {
            let mut memory = Vec::new();
            let order = order::sort(&mut columns, &mut memory);
            InOrder {
                category,
                columns,
                order,
                memory,
            }
        };
        let events: usize = input.categories.values().map(|columns| columns.start_ns.len()).sum();
        let mut sorted: Vec<InOrder> = if events < FEW_EVENTS {
            let categories: Vec<_> = input.categories.into_iter().collect();
            categories.into_par_iter().map(sort).collect()
        } else {
            input.categories.into_iter().map(sort).collect()
        };
        let figures: Vec<_> = sorted.par_iter().map(|of| figures::by_name(&of.columns)).collect();
        let mut spans: Vec<Spans> = sorted
            .par_iter_mut()
            .map(|of| Spans::new(&of.columns, rows, std::mem::take(&mut of.memory)))
            .collect();
        lanes::assign(&mut spans);
        let lods: Vec<Lod> = spans.par_iter().map(lod::lod).collect();
        // What was by row goes back to where its events are.
        let lanes: Vec<Vec<u32>> = sorted
            .par_iter()
            .zip(spans)
            .map(|(of, spans)| spans.lanes_in_order(&of.columns.row))
            .collect();
        let made = lanes.into_iter().zip(lods).zip(figures);
        let categories: BTreeMap<Category, CategoryOutput> = sorted
            .into_iter()
            .zip(made)
            .map(|(of, ((lane, lod), figures))| {
                let sorted = CategoryOutput {
                    columns: of.columns,
                    order: of.order,
                    lane,
                    lod,
                    figures,
                };
                (of.category, sorted)
            })
            .collect();
        Output { categories }
    }
}
