//! The engine of the processor: every core takes part, memory beyond the columns stays below the columns' own.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::engine::{Columns, Engine, Input, Output, Sorted};
use super::{figures, lanes, lod, order};
use crate::model::{Category, Lod, RowMajor};

/// So few are sorted a category per core. More are sorted one category after the other, each by every core, so that what one needs
/// beside its columns is not there several times.
const FEW_EVENTS: usize = 1 << 20;

/// The heavy steps on the processor, on the current rayon pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cpu;

impl Engine for Cpu {
    fn run(&self, input: Input) -> Output {
        let rows = input.rows;
        let sort = |(category, mut columns): (Category, Columns)| {
            let order = order::sort(&mut columns);
            (category, columns, order)
        };
        let events: usize = input.categories.values().map(|columns| columns.start_ns.len()).sum();
        let sorted: Vec<(Category, Columns, Option<Vec<u32>>)> = if events < FEW_EVENTS {
            let categories: Vec<_> = input.categories.into_iter().collect();
            categories.into_par_iter().map(sort).collect()
        } else {
            input.categories.into_iter().map(sort).collect()
        };
        let by_row: Vec<RowMajor> = sorted
            .par_iter()
            .map(|(_, columns, _)| RowMajor::new(&columns.row, rows))
            .collect();
        let all: Vec<(&Columns, &RowMajor)> = sorted.iter().map(|(_, columns, _)| columns).zip(&by_row).collect();
        let (figures, (lods, lanes)) = rayon::join(
            || {
                all.par_iter()
                    .map(|(columns, _)| figures::by_name(columns))
                    .collect::<Vec<_>>()
            },
            || {
                let lanes = lanes::assign(&all);
                let lods: Vec<Lod> = all
                    .par_iter()
                    .zip(&lanes)
                    .map(|((columns, by_row), lane)| lod::lod(columns, by_row, lane))
                    .collect();
                // What was by row goes back to where its events are.
                let lanes: Vec<Vec<u32>> = all
                    .par_iter()
                    .zip(lanes)
                    .map(|((columns, by_row), lane)| by_row.in_order(&columns.row, lane))
                    .collect();
                (lods, lanes)
            },
        );
        let made = lanes.into_iter().zip(lods).zip(figures);
        let categories: BTreeMap<Category, Sorted> = sorted
            .into_iter()
            .zip(made)
            .map(|((category, columns, order), ((lane, lod), figures))| {
                let sorted = Sorted {
                    columns,
                    order,
                    lane,
                    lod,
                    figures,
                };
                (category, sorted)
            })
            .collect();
        Output { categories }
    }
}
