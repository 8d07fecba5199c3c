import { expect, test } from "vitest";
import { shortName } from "./names";

test.each([
  ["void gemm<float>(float*)", "gemm<float>"],
  ["vectorAdd(float const*, float const*, float*, int)", "vectorAdd"],
  [
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)",
    "vectorized_elementwise_kernel<4, FillFunctor<float>, array<char*, 1ul>>",
  ],
  [
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 2, 128, 1>(OpaqueType<2u>*, int)",
    "CatArrayBatchedCopy<OpaqueType<2u>, unsigned int, 2, 128, 1>",
  ],
  [
    "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}>(at::TensorIteratorBase&, float const&)::{lambda(int)#1}>(int, float)",
    "elementwise_kernel<128, 2, gpu_kernel_impl<direct_copy_kernel_cuda::{lambda()#3}::{lambda()#7}::{lambda(float)#1}>::{lambda(int)#1}>",
  ],
  [
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8>(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8::Params)",
    "Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8>",
  ],
  ["ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"],
  ["void at::native::unrolled<4, at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> > >(int)", "unrolled<4, BinaryFunctor<float, float, float, MulFunctor<float>>>"],
])("of %s the short name is %s", (name, short) => {
  expect(shortName(name)).toBe(short);
});

test.each([
  "ampere_sgemm_128x64_tn",
  "cudaLaunchKernel",
  "aten::to, op_id = 999599",
  "step(3)",
  "torch/nn/modules/module.py(1553): _call_impl",
  "<built-in method run_backward of torch._C._EngineBase object at 0x7f>",
  "Memcpy HtoD (Pinned -> Device)",
  "autograd::engine::evaluate_function: AddmmBackward0",
  "nn.Module: Linear_0",
  "layer 3: forward (batch 2)",
  "The host launches too slowly.",
  "at once: nothing is a function here",
  "",
])("%s is no function's signature and stays as it is", (text) => {
  expect(shortName(text)).toBe(text);
});

test("kernels that differ in one template argument keep different short names", () => {
  const of = (argument: string) => `void at::native::reduce_kernel<512, 1, at::native::ReduceOp<${argument}, at::native::MeanOps<float> > >(at::native::ReduceOp<${argument}>)`;
  expect(shortName(of("c10::Half"))).not.toBe(shortName(of("c10::BFloat16")));
});

test("text that nests deeply is shortened all the same", () => {
  const deep = `void f<${"a<".repeat(5_000)}b${">".repeat(5_000)}>(int)`;
  expect(shortName(deep).startsWith("f<a<")).toBe(true);
});
