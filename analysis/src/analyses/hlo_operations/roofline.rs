//! Which side of a device's ridge an operation is on.

use flopwatch_model::hlo::{Instruction, Module};
use flopwatch_model::{Device, Timeline, approximate};

use super::result::HloBound;

/// Peaks of the devices of a capture.
pub(super) struct Peaks<'a> {
    devices: &'a [Device],
}

impl<'a> Peaks<'a> {
    pub(super) fn of(timeline: &'a Timeline) -> Self {
        let devices = &timeline.capture.devices;
        Self { devices }
    }

    /// Whether any device states both of its peaks.
    pub(super) fn is_known(&self) -> bool {
        let both = |device: &Device| device.peak_bandwidth.is_some() && !device.peak_flops.is_empty();
        self.devices.iter().any(both)
    }

    /// What bounds an operation of that intensity on `element`, a type as HLO names it.
    pub(super) fn bound(&self, device: u32, element: Option<&str>, intensity: f64) -> Option<HloBound> {
        let device = self.devices.iter().find(|known| known.id == device)?;
        let rates = &device.peak_flops;
        let rate = element.and_then(|element| rates.get(peak_name(element)));
        let rate = rate.or_else(|| rates.get("any"))?;
        let bandwidth = device.peak_bandwidth.filter(|bandwidth| *bandwidth > 0)?;
        let ridge = approximate((*rate).into()) / approximate(bandwidth.into());
        Some(if intensity >= ridge {
            HloBound::Compute
        } else {
            HloBound::Memory
        })
    }
}

/// Type of the numbers that an operation computes with: that of the operands of its product where
/// it has one, else of its first operand.
pub(super) fn element(module: &Module, of: &Instruction) -> Option<&'static str> {
    let inside = of.called.first().filter(|_| of.opcode == "fusion");
    let product = inside.and_then(|id| {
        let instructions = &module.computation(*id)?.instructions;
        let is_product = |one: &&Instruction| matches!(one.opcode.as_str(), "dot" | "convolution");
        instructions.iter().find(is_product)
    });
    let operand = module.instruction(*product.unwrap_or(of).operands.first()?)?;
    Some(operand.shape.element.name())
}

/// A type's name among a device's peaks.
fn peak_name(element: &str) -> &str {
    match element {
        "f64" => "fp64",
        "f32" => "fp32",
        "f16" => "fp16",
        "s8" | "u8" => "int8",
        other if other.starts_with("f8") => "fp8",
        other => other,
    }
}
