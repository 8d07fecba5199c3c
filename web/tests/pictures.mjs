/** Pictures of pages, held against those that are kept. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const SCREENS = fileURLToPath(new URL("screens", import.meta.url));

/**
 * The share of a picture's pixels that differ clearly from the picture that is kept under `name`; without one, or with UPDATE_SCREENS set, it is
 * kept.
 *
 * @param {import("playwright-core").Page} page Any page; its browser compares.
 * @param {Buffer} now
 * @param {string} name
 * @returns {Promise<number>}
 */
export async function differs(page, now, name) {
  const path = `${SCREENS}/${name}.png`;
  if (!existsSync(path) || process.env["UPDATE_SCREENS"]) {
    mkdirSync(SCREENS, { recursive: true });
    writeFileSync(path, now);
    return 0;
  }
  return compare(page, now, readFileSync(path));
}

/**
 * The share of pixels of two pictures that differ clearly; 1 where their sizes differ.
 *
 * @param {import("playwright-core").Page} page Any page; its browser compares.
 * @param {Buffer} one
 * @param {Buffer} other
 * @returns {Promise<number>}
 */
export async function compare(page, one, other) {
  return page.evaluate(
    async ([a, b]) => {
      const pixels = async (/** @type {string} */ base64) => {
        const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
        const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
        const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
        const context = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d"));
        context.drawImage(bitmap, 0, 0);
        return context.getImageData(0, 0, bitmap.width, bitmap.height);
      };
      const [x, y] = await Promise.all([pixels(a ?? ""), pixels(b ?? "")]);
      if (x.width !== y.width || x.height !== y.height) {
        return 1;
      }
      const channel = (/** @type {ImageData} */ picture, /** @type {number} */ at) => picture.data[at] ?? 0;
      let different = 0;
      for (let at = 0; at < x.data.length; at += 4) {
        const distance = [0, 1, 2].reduce((sum, of) => sum + Math.abs(channel(x, at + of) - channel(y, at + of)), 0);
        different += distance > 48 ? 1 : 0;
      }
      return different / (x.data.length / 4);
    },
    [one.toString("base64"), other.toString("base64")],
  );
}
