/** Colours, for light and for dark. */

import { SLOTS } from "../engine/names";

/** Width of the palette's texture; its last colour is that of idle time. */
export const PALETTE_WIDTH = 64;

export type Rgb = readonly [number, number, number];

/** What rectangles lie on; `--back` in style.css. */
const GROUND: { readonly light: Rgb; readonly dark: Rgb } = { light: [255, 255, 255], dark: [18, 21, 27] };

const BLACK: Rgb = [0, 0, 0];
const WHITE: Rgb = [255, 255, 255];

/** What links call the times in which a GPU does nothing, among the categories that are not drawn. */
export const IDLE = "gpu_idle";

/** Hue, saturation and how far from the middle grey, of each category. */
const CATEGORIES: Readonly<Record<string, readonly [number, number, number]>> = {
  cuda_kernel: [211, 72, 54],
  cuda_graph: [232, 60, 50],
  cuda_memcpy_h2d: [145, 48, 46],
  cuda_memcpy_d2h: [24, 78, 55],
  cuda_memcpy_d2d: [88, 42, 46],
  cuda_memcpy_p2p: [60, 66, 45],
  cuda_memcpy_other: [40, 30, 50],
  cuda_memset: [285, 32, 55],
  cuda_migration: [12, 62, 44],
  cuda_sync: [0, 55, 58],
  cuda_api: [192, 55, 42],
  cudnn_api: [120, 40, 44],
  cublas_api: [105, 45, 42],
  nvtx_range: [262, 48, 62],
  os_runtime: [30, 12, 55],
  cpu_op: [170, 44, 42],
  annotation: [320, 44, 58],
  step: [50, 60, 45],
  python_function: [225, 35, 62],
  cpu_sample: [74, 38, 48],
  cpu_running: [200, 14, 52],
  overhead: [0, 0, 50],
  device_op: [205, 60, 48],
  gpu_annotation: [300, 40, 56],
  derived: [240, 20, 60],
  other: [0, 0, 58],
};

/** Names of the categories that have a color of their own. */
export const COLORED: readonly string[] = Object.keys(CATEGORIES);

/** What colours say: the category, in ours or in those of the earlier viewer, or the name. */
export const COLORINGS = ["category", "classic", "name"] as const;
export type Coloring = (typeof COLORINGS)[number];

/** Colours of the earlier viewer: kernels red, copies blue and green, NVTX purple. */
const CLASSIC: Readonly<Record<string, readonly [number, number, number]>> = {
  cuda_kernel: [0, 72, 54],
  cuda_graph: [345, 62, 46],
  cuda_memcpy_h2d: [212, 76, 54],
  cuda_memcpy_d2h: [135, 52, 42],
  cuda_memcpy_d2d: [178, 54, 40],
  nvtx_range: [275, 55, 60],
};

/** Colour of counters. */
const COUNTER: readonly [number, number, number] = [160, 50, 45];

/** The colour of a category as CSS. */
export function categoryCss(name: string, dark: boolean, coloring: Coloring = "category"): string {
  return css(categoryRgb(name, dark, coloring));
}

export function categoryRgb(name: string, dark: boolean, coloring: Coloring): Rgb {
  const classic = coloring === "classic" ? CLASSIC[name] : undefined;
  const [hue, saturation, light] = classic ?? CATEGORIES[name] ?? COUNTER;
  return hsl(hue, saturation, dark ? light + 4 : light);
}

/** The colour of a name. */
export function slotRgb(slot: number, dark: boolean): Rgb {
  // Steps of the golden angle keep neighbours apart; three tones make them more.
  return hsl((slot * 137.508) % 360, 46 + (slot % 3) * 10, (dark ? 58 : 52) + (slot % 2) * 6);
}

/** What is seen of a color of that opacity over the page's ground. */
export function overGround(color: Rgb, opacity: number, dark: boolean): Rgb {
  const ground = dark ? GROUND.dark : GROUND.light;
  const mixed = (at: 0 | 1 | 2) => color[at] * opacity + ground[at] * (1 - opacity);
  return [mixed(0), mixed(1), mixed(2)];
}

/** The color of texts on `color`: black or white, whichever is further from it. The contrast is 4.58 : 1 at least. */
export function textOn(color: Rgb): Rgb {
  return contrast(BLACK, color) >= contrast(WHITE, color) ? BLACK : WHITE;
}

/** The contrast of two colors as WCAG 2 defines it, 1 to 21. */
export function contrast(one: Rgb, other: Rgb): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

function luminance([r, g, b]: Rgb): number {
  const linear = (value: number) => (value <= 0.04045 * 255 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

/** A color as CSS. */
export function css([r, g, b]: Rgb): string {
  return `rgb(${r} ${g} ${b})`;
}

/** The palette's texture: categories in the first line, names in the second. A hidden category has no opacity, which the shader knows. */
export function paletteBytes(categories: readonly string[], dark: boolean, coloring: Coloring, hidden: ReadonlySet<string>): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(PALETTE_WIDTH * 2 * 4);
  const put = (at: number, [r, g, b]: Rgb, alpha = 255) => bytes.set([r, g, b, alpha], at * 4);
  categories.forEach((name, at) => put(at, categoryRgb(name, dark, coloring), hidden.has(name) ? 0 : 255));
  put(categories.length, hsl(...COUNTER));
  put(PALETTE_WIDTH - 1, dark ? WHITE : BLACK, hidden.has(IDLE) ? 0 : dark ? 22 : 18);
  for (let slot = 0; slot < SLOTS; slot += 1) {
    put(PALETTE_WIDTH + slot, slotRgb(slot, dark));
  }
  return bytes;
}

function hsl(hue: number, saturation: number, light: number): Rgb {
  const chroma = ((1 - Math.abs(2 * (light / 100) - 1)) * saturation) / 100;
  const channel = (shift: number) => {
    const sector = (shift + hue / 30) % 12;
    return Math.round(255 * (light / 100 - (chroma / 2) * Math.max(-1, Math.min(sector - 3, 9 - sector, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}
