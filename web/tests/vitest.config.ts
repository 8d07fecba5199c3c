import { defineConfig } from "vitest/config";

/** Tests in a browser: `npm run browser`, after `npm run build`. */
export default defineConfig({
  test: { include: ["tests/**/*.browser.ts"], root: new URL("..", import.meta.url).pathname, testTimeout: 300_000, hookTimeout: 120_000, expect: { poll: { timeout: 60_000 } }, fileParallelism: false },
});
