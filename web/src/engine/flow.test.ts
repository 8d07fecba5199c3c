import { openAsBlob } from "node:fs";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import { BlobSource } from "../bytes/source";
import { openTimeline } from "../timeline/file";
import { Finder } from "./find";
import { flowOf } from "./flow";
import type { EventPlace, EventRef } from "./protocol";
import { Session } from "./session";

/** 20 steps of 5 layers; each calls `aten::linear`, which calls two operators that launch a kernel each. See launches.py beside it. */
const FILE = fileURLToPath(new URL("../../tests/data/launches.h5", import.meta.url));
const GEMM = "void lib::gemm<float, 128>(float const*, float const*, float*, int)";
const ADD = "void lib::add<float, lib::Broadcast<float> >(float*, float const*, int)";

let session: Session;

beforeAll(async () => {
  session = new Session(await openTimeline(new BlobSource(await openAsBlob(FILE))));
});

const categoryOf = (name: string) => session.file.categories.findIndex((category) => category.name === name);

/** The first event of a name. */
const first = async (category: string, text: string): Promise<EventPlace> => (await new Finder(session).instanceOf(categoryOf(category), text, undefined))!;

const textOf = async (ref: EventRef) => (await session.event(ref)).text;
const textsOf = (places: readonly EventRef[]) => Promise.all(places.map(textOf));

test("a kernel has its launch, and happened in what encloses that, from the step to the operator", async () => {
  const flow = await flowOf(session, await first("cuda_kernel", GEMM));
  expect(await textOf(flow.launch!)).toBe("cudaLaunchKernel");
  expect(await textsOf(flow.ancestors)).toEqual(["ProfilerStep#0", "train.py(7): step", "model.py(10): forward", "aten::linear", "aten::addmm"]);
});

test("an operator has the work of its own calls and of those of the operators in it", async () => {
  const linear = await flowOf(session, await first("cpu_op", "aten::linear"));
  expect(await textsOf(linear.launched)).toEqual([GEMM, ADD]);
  expect(linear.more).toBe(false);
  const add = await flowOf(session, await first("cpu_op", "aten::add"));
  expect(await textsOf(add.launched)).toEqual([ADD]);
  expect(await textsOf(add.ancestors)).toEqual(["ProfilerStep#0", "train.py(7): step", "model.py(10): forward", "aten::linear"]);
});

test("a call has its one kernel, which leads back to it", async () => {
  const kernel = await first("cuda_kernel", ADD);
  const { launch } = await flowOf(session, kernel);
  const back = await flowOf(session, launch!);
  expect(back.launched.map(({ index }) => index)).toEqual([kernel.index]);
  expect((await textsOf(back.ancestors)).at(-1)).toBe("aten::add");
});

test("a function has the work of the time in which it runs, and no other step's", async () => {
  const { launched, ancestors } = await flowOf(session, await first("python_function", "train.py(7): step"));
  expect(launched.length).toBe(10);
  expect(launched.map(({ start }) => start)).toEqual([...launched.map(({ start }) => start)].sort((a, b) => a - b));
  expect(await textsOf(ancestors)).toEqual(["ProfilerStep#0"]);
});

test("nothing encloses the outermost, and no event encloses itself", async () => {
  const step = await first("step", "ProfilerStep#3");
  const { ancestors, launched } = await flowOf(session, step);
  expect(ancestors).toEqual([]);
  expect(launched.length).toBe(10);
});

test("nothing belongs to an event of a category that the window lacks", async () => {
  expect(await flowOf(session, { category: 999, index: 0 })).toEqual({ launch: undefined, launched: [], more: false, ancestors: [] });
});
