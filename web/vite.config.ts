import { createReadStream, statSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { basename, join } from "node:path";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** Serves the timeline files of the folder in FLOPWATCH_FILES under /files/, by ranges, as the gateway does. */
function files(): Plugin {
  const folder = process.env["FLOPWATCH_FILES"];
  const serve = (request: IncomingMessage, response: ServerResponse, next: () => void) => {
    const name = basename(decodeURIComponent((request.url ?? "").replace(/\?.*$/, "")));
    if (folder === undefined || name === "") {
      next();
      return;
    }
    const path = join(folder, name);
    const found = statSync(path, { throwIfNoEntry: false });
    if (!found?.isFile()) {
      response.writeHead(404).end();
      return;
    }
    const headers = { ETag: `"${found.size}-${found.mtimeMs}"`, "Accept-Ranges": "bytes", "Content-Type": "application/x-hdf5" };
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
    if (!range) {
      response.writeHead(200, { ...headers, "Content-Length": found.size });
      createReadStream(path).pipe(response);
      return;
    }
    const start = Number(range[1]);
    const end = Math.min(found.size - 1, range[2] ? Number(range[2]) : found.size - 1);
    if (start > end) {
      response.writeHead(416, { "Content-Range": `bytes */${found.size}` }).end();
      return;
    }
    response.writeHead(206, { ...headers, "Content-Range": `bytes ${start}-${end}/${found.size}`, "Content-Length": end - start + 1 });
    createReadStream(path, { start, end }).pipe(response);
  };
  return {
    name: "flopwatch-files",
    configureServer: (server) => void server.middlewares.use("/files", serve),
    configurePreviewServer: (server) => void server.middlewares.use("/files", serve),
  };
}

/** Has the pages fetch the worker's script beside their own, not after it; that of the gateway its calls as well. */
function early(): Plugin {
  return {
    name: "flopwatch-early",
    transformIndexHtml: {
      order: "post",
      handler: (_, { bundle, path }) =>
        Object.values(bundle ?? {})
          .filter((file) => /^assets\/worker-.*\.js$/.test(file.fileName) || (path === "/gateway.html" && "facadeModuleId" in file && file.facadeModuleId?.endsWith("/src/gateway/client.ts")))
          .map(({ fileName }) => ({ tag: "link", attrs: { rel: "modulepreload", crossorigin: "", href: `./${fileName}` }, injectTo: "head" as const })),
    },
  };
}

export default defineConfig({
  // The same build is served from any path: the gateway, the agent, a proxy.
  base: "./",
  // The demo.
  assetsInclude: ["**/*.h5"],
  plugins: [files(), early()],
  build: {
    // The page for files, and the one that knows a gateway's sessions beside it.
    rolldownOptions: {
      input: ["index.html", "gateway.html"],
      // What both need at first is one file: of many small ones, each is deflated for itself.
      output: { codeSplitting: { groups: [{ name: "main", tags: ["$initial"] }] } },
    },
    outDir: "dist/site",
    target: "es2022",
    sourcemap: false,
    // Browsers without it fetch what is named ahead a little later.
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  // The few there are; looking for more would take JSX for that of another framework.
  optimizeDeps: { noDiscovery: true, include: ["preact", "preact/hooks", "preact/jsx-runtime", "preact/jsx-dev-runtime"] },
  worker: { format: "es" },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  // A round runs them behind all else.
  test: { include: ["src/**/*.test.ts", "tests/**/*.test.ts"], testTimeout: 120_000, hookTimeout: 120_000 },
});
