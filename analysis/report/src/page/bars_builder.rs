//! Bars of a list: a label per item, and a value per item in each series.

use super::{Bars, Cell, Series, Unit, figure};

/// [`Bars`] in the making: a label per item of a list, and the series that were added so far.
///
/// ```
/// use flopwatch_report::page::{Bars, Unit};
///
/// let gpus = [("GPU 0", 70_u64), ("GPU 1", 30)];
/// let bars = Bars::of("Busy", Unit::Ns, gpus, |(gpu, _)| gpu.to_owned())
///     .series("busy", |(_, ns)| ns)
///     .build();
/// assert_eq!(bars.labels, ["GPU 0", "GPU 1"]);
/// assert_eq!(bars.series[0].values, [Some(70.0), Some(30.0)]);
/// ```
#[derive(Debug)]
#[must_use]
pub struct BarsBuilder<T> {
    bars: Bars,
    /// What each label is of.
    items: Vec<T>,
}

impl Bars {
    /// Begins bars with a label per item, to which series are added. The values of a label stand
    /// side by side.
    pub fn of<T: Copy>(
        title: &str,
        unit: Unit,
        items: impl IntoIterator<Item = T>,
        label: impl Fn(T) -> String,
    ) -> BarsBuilder<T> {
        let items: Vec<T> = items.into_iter().collect();
        let bars = Self {
            title: title.to_owned(),
            unit,
            labels: items.iter().map(|item| label(*item)).collect(),
            ..Self::default()
        };
        BarsBuilder { bars, items }
    }
}

impl<T: Copy> BarsBuilder<T> {
    /// Adds a series with a value per item; one that is no number is not known.
    pub fn series<C: Into<Cell>>(mut self, name: &str, value: impl Fn(T) -> C) -> Self {
        let values = self.items.iter().map(|item| figure::value_of(&value(*item).into()));
        self.bars.series.push(Series {
            name: name.to_owned(),
            values: values.collect(),
        });
        self
    }

    /// Lets the values of a label add up to a whole.
    pub fn stacked(mut self) -> Self {
        self.bars.stacked = true;
        self
    }

    /// The bars.
    pub fn build(self) -> Bars {
        self.bars
    }
}

impl<T> From<BarsBuilder<T>> for Bars {
    fn from(builder: BarsBuilder<T>) -> Self {
        builder.bars
    }
}
