/**
 * Draws a view's rectangles in one call, whatever their rows, and survives the loss of its context.
 *
 * A driver takes its time for the program, and makes it while the file is read.
 */

import { INSTANCE_BYTES, NO_NAME } from "../../engine/instances";
import type { View } from "../../engine/protocol";
import type { Layout } from "../../view/layout";
import { PALETTE_WIDTH } from "../../view/palette";
import { nsPerPixel, type Viewport } from "../../view/scale";
import { FRAGMENT, VERTEX } from "./shaders";

const ROWS_WIDTH = 1024;
const HITS_WIDTH = 4096;
/** How often is looked whether the driver has made the program. */
const LINK_MS = 2;

/** What changes from frame to frame. */
export interface Frame {
  readonly viewport: Viewport;
  readonly height: number;
  readonly scroll: number;
  readonly pinnedHeight: number;
  readonly ratio: number;
  readonly byName: boolean;
  readonly searching: boolean;
  /** Number of the name that stands out, over all categories. */
  readonly name: number | undefined;
}

/** The browser has no WebGL2. */
export class NoGraphics extends Error {
  override name = "NoGraphics";
  override message = "this browser cannot draw with WebGL2, which the timeline needs: turn hardware acceleration on or use another browser";
}

export class Renderer {
  /** What is drawn on. */
  readonly canvas = document.createElement("canvas");
  /** Called when there is something to draw with: after the start, and after graphics that were lost. */
  onReady = () => {};
  private readonly gl: WebGL2RenderingContext;
  private program: WebGLProgram | undefined;
  /** The newest that the driver was asked for. */
  private wanted: WebGLProgram | undefined;
  /** Why there is none, until it was told. */
  private failure: Error | undefined;
  /** When the program was asked for. */
  private began = 0;
  private parallel: { readonly COMPLETION_STATUS_KHR: number } | null = null;
  private buffer: WebGLBuffer | null = null;
  private uniforms = new Map<string, WebGLUniformLocation | null>();
  private view: View | undefined;
  private rows: Float32Array = new Float32Array(ROWS_WIDTH * 4);
  private palette: Uint8Array<ArrayBuffer> = new Uint8Array(PALETTE_WIDTH * 8);
  private hits: Uint8Array = new Uint8Array(HITS_WIDTH);
  private textures: Record<"rows" | "palette" | "hits", WebGLTexture | null> = { rows: null, palette: null, hits: null };
  private stale = { view: true, rows: true, palette: true, hits: true };
  /** Draw calls of the last frame. */
  draws = 0;

  constructor() {
    const { canvas } = this;
    canvas.className = "gl";
    canvas.ariaHidden = "true";
    const began = performance.now();
    const gl = canvas.getContext("webgl2", { alpha: true, antialias: false, depth: false, premultipliedAlpha: true, preserveDrawingBuffer: false });
    if (!gl) {
      throw new NoGraphics();
    }
    performance.measure("flopwatch-context", { start: began });
    this.gl = gl;
    canvas.addEventListener("webglcontextlost", this.lost);
    canvas.addEventListener("webglcontextrestored", this.restored);
    this.build();
  }

  /** Whether there is something to draw with. */
  get isReady(): boolean {
    return this.program !== undefined;
  }

  close(): void {
    this.canvas.removeEventListener("webglcontextlost", this.lost);
    this.canvas.removeEventListener("webglcontextrestored", this.restored);
    const { gl } = this;
    gl.deleteBuffer(this.buffer);
    gl.deleteProgram(this.program ?? null);
    for (const texture of Object.values(this.textures)) {
      gl.deleteTexture(texture);
    }
    // Browsers allow few contexts, and take them back late.
    gl.getExtension("WEBGL_lose_context")?.loseContext();
  }

  setView(view: View): void {
    this.view = view;
    this.stale.view = true;
  }

  /** Where each row lies; rows that are not in the layout are not drawn. */
  setLayout(layout: Layout, rowCount: number): void {
    const lines = Math.max(1, Math.ceil(rowCount / ROWS_WIDTH));
    this.rows = new Float32Array(ROWS_WIDTH * lines * 4);
    for (const line of [...layout.lines, ...layout.pinned]) {
      if (line.row >= 0) {
        const y = line.pinned ? line.y : line.y + layout.pinnedHeight;
        this.rows.set([y, line.laneHeight, line.lanes, line.pinned ? 1 : 0], line.row * 4);
      }
    }
    this.stale.rows = true;
  }

  setPalette(bytes: Uint8Array<ArrayBuffer>): void {
    this.palette = bytes;
    this.stale.palette = true;
  }

  /** Marks the names that match a search: 1 for each, over all categories. */
  setHits(flags: Uint8Array): void {
    this.hits = new Uint8Array(HITS_WIDTH * Math.max(1, Math.ceil(flags.length / HITS_WIDTH)));
    this.hits.set(flags);
    this.stale.hits = true;
  }

  /** Draws the view; false where there is nothing to draw with yet. Throws once when the driver refuses the program. */
  draw(frame: Frame): boolean {
    const { gl, canvas, view, program, failure } = this;
    this.draws = 0;
    this.failure = undefined;
    if (failure) {
      throw failure;
    }
    if (!program || !view || gl.isContextLost()) {
      return false;
    }
    const width = Math.max(1, Math.round(frame.viewport.width * frame.ratio));
    const height = Math.max(1, Math.round(frame.height * frame.ratio));
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (view.events.length === 0) {
      return true;
    }
    this.upload(view);
    const set = (name: string) => this.uniforms.get(name) ?? null;
    gl.uniform2f(set("u_size"), width, height);
    gl.uniform1f(set("u_from"), frame.viewport.from - view.from);
    gl.uniform1f(set("u_scale"), frame.ratio / nsPerPixel(frame.viewport));
    gl.uniform1f(set("u_scroll"), frame.scroll);
    gl.uniform1f(set("u_top"), frame.pinnedHeight);
    gl.uniform1f(set("u_ratio"), frame.ratio);
    gl.uniform1f(set("u_least"), Math.max(1, frame.ratio));
    gl.uniform1ui(set("u_by_name"), frame.byName ? 1 : 0);
    gl.uniform1ui(set("u_searching"), frame.searching ? 1 : 0);
    gl.uniform1ui(set("u_name"), frame.name ?? NO_NAME);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, view.events.length);
    this.draws = 1;
    return true;
  }

  private upload(view: View): void {
    const { gl, stale } = this;
    if (stale.view) {
      gl.bufferData(gl.ARRAY_BUFFER, view.instances, gl.DYNAMIC_DRAW);
      stale.view = false;
    }
    const texture = (name: keyof typeof this.textures, unit: number) => {
      gl.activeTexture(gl.TEXTURE0 + unit);
      gl.bindTexture(gl.TEXTURE_2D, this.textures[name]);
    };
    if (stale.rows) {
      texture("rows", 0);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32F, ROWS_WIDTH, this.rows.length / 4 / ROWS_WIDTH, 0, gl.RGBA, gl.FLOAT, this.rows);
      stale.rows = false;
    }
    if (stale.palette) {
      texture("palette", 1);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, PALETTE_WIDTH, 2, 0, gl.RGBA, gl.UNSIGNED_BYTE, this.palette);
      stale.palette = false;
    }
    if (stale.hits) {
      texture("hits", 2);
      gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.R8UI, HITS_WIDTH, this.hits.length / HITS_WIDTH, 0, gl.RED_INTEGER, gl.UNSIGNED_BYTE, this.hits);
      stale.hits = false;
    }
  }

  private build(): void {
    const { gl } = this;
    this.began = performance.now();
    // Before the program: only what is linked afterwards is told about.
    this.parallel = gl.getExtension("KHR_parallel_shader_compile");
    const program = gl.createProgram();
    for (const [kind, text] of [
      [gl.VERTEX_SHADER, VERTEX],
      [gl.FRAGMENT_SHADER, FRAGMENT],
    ] as const) {
      const shader = gl.createShader(kind);
      if (!shader) {
        return;
      }
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
      gl.deleteShader(shader);
    }
    gl.linkProgram(program);
    this.wanted = program;
    this.link(program);
  }

  /** Takes the program over once the driver has made it. */
  private link(program: WebGLProgram): void {
    setTimeout(() => {
      const { gl, parallel } = this;
      if (program !== this.wanted || gl.isContextLost()) {
        return;
      }
      // Where the browser cannot tell, this thread waits for the driver. Either way it is done before there is a view to draw.
      if (parallel && !gl.getProgramParameter(program, parallel.COMPLETION_STATUS_KHR)) {
        this.link(program);
      } else if (gl.getProgramParameter(program, gl.LINK_STATUS)) {
        this.take(program);
        this.onReady();
      } else {
        this.failure = new Error(`the graphics driver refuses the program: ${gl.getProgramInfoLog(program)}`);
        this.onReady();
      }
    }, LINK_MS);
  }

  private take(program: WebGLProgram): void {
    const { gl } = this;
    this.program = program;
    this.uniforms = new Map();
    const count: number = gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS);
    for (let at = 0; at < count; at += 1) {
      const name = gl.getActiveUniform(program, at)?.name;
      if (name) {
        this.uniforms.set(name, gl.getUniformLocation(program, name));
      }
    }
    this.prepare(program);
    performance.measure("flopwatch-program", { start: this.began });
  }

  /** Makes what the program reads from. */
  private prepare(program: WebGLProgram): void {
    const { gl } = this;
    this.buffer = gl.createBuffer();
    gl.bindVertexArray(gl.createVertexArray());
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, INSTANCE_BYTES, 0);
    gl.vertexAttribDivisor(0, 1);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribIPointer(1, 3, gl.UNSIGNED_INT, INSTANCE_BYTES, 8);
    gl.vertexAttribDivisor(1, 1);
    for (const name of ["rows", "palette", "hits"] as const) {
      const texture = gl.createTexture();
      gl.bindTexture(gl.TEXTURE_2D, texture);
      for (const parameter of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) {
        gl.texParameteri(gl.TEXTURE_2D, parameter, gl.NEAREST);
      }
      this.textures[name] = texture;
    }
    gl.useProgram(program);
    (["rows", "palette", "hits"] as const).forEach((name, unit) => {
      gl.activeTexture(gl.TEXTURE0 + unit);
      gl.bindTexture(gl.TEXTURE_2D, this.textures[name]);
      gl.uniform1i(this.uniforms.get(`u_${name}`) ?? null, unit);
    });
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.stale = { view: true, rows: true, palette: true, hits: true };
  }

  private readonly lost = (event: Event) => {
    // Says that the context is wanted back.
    event.preventDefault();
    this.program = undefined;
  };

  private readonly restored = () => {
    this.build();
  };
}
