// Draws a flame graph: the outermost frame at the top, the frames inside it below. HTML files of results hold this program as it is.

/** Height of a level, least width of a frame that is told apart from its neighbours, and least width of one with a name, in pixels. */
const [LEVEL, LEAST, NAMED] = [18, 1, 28];
const FONT = "12px system-ui, -apple-system, 'Segoe UI', sans-serif";
/** Hue and saturation of each kind of frame. */
const HUES = { all: [215, 8], groups: [215, 16], steps: [265, 42], "NVTX ranges": [150, 42], annotations: [182, 44], "Python functions": [212, 52], operators: [38, 62], "CUDA calls": [330, 40], kernels: [14, 62], "copies and memsets": [288, 34], "device operations": [14, 62] };
const SUMMED = [215, 4];
const UNITS = [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]];

const told = (value, unit) => {
  if (unit !== "ns") {
    return value.toLocaleString("en");
  }
  const [name, size] = UNITS.findLast(([, size]) => Math.abs(value) >= size * 0.999995) ?? UNITS[0];
  return `${(value / size).toFixed(size === 1 ? 0 : 2)} ${name}`;
};
const percent = (part, whole) => `${(whole > 0 ? (part / whole) * 100 : 0).toFixed(1)} %`;
const printable = (text) => text.replace(/[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff]/gu, "\ufffd");
const element = (name, className, text) => {
  const made = document.createElement(name);
  made.className = className ?? "";
  made.textContent = text ?? "";
  return made;
};

/** Where each frame begins, in the unit of the values; its parent; and the frame behind the last one inside it. */
export function layout({ depth, value }) {
  const count = depth.length;
  const [left, parent, behind] = [new Float64Array(count), new Int32Array(count), new Int32Array(count)];
  const [cursor, open] = [[0], []];
  let deepest = 0;
  for (let at = 0; at < count; at += 1) {
    const level = depth[at];
    while (open.length > level) {
      behind[open.pop()] = at;
    }
    left[at] = cursor[level];
    parent[at] = level > 0 ? open[level - 1] : -1;
    cursor[level] = left[at] + value[at];
    cursor[level + 1] = left[at];
    open.push(at);
    deepest = Math.max(deepest, level);
  }
  for (const at of open) {
    behind[at] = count;
  }
  return { left, parent, behind, deepest };
}

/** The frames whose name holds `wanted`, and how much they have together: a frame inside another one that is found counts once. */
export function search({ names, name, value }, { behind }, wanted) {
  const text = wanted.toLowerCase();
  const isWanted = names.map((name) => text !== "" && name.toLowerCase().includes(text));
  const found = new Uint8Array(name.length);
  let [total, until, count] = [0, 0, 0];
  for (let at = 0; at < name.length; at += 1) {
    if (isWanted[name[at]]) {
      found[at] = 1;
      count += 1;
      if (at >= until) {
        total += value[at];
        until = behind[at];
      }
    }
  }
  return { found, total, count };
}

/** Draws `data` in `root`; `go`, where there is one, leads to the time at which a frame first ran. */
export function flame(root, data, go) {
  const places = layout(data);
  const { left, parent, behind, deepest } = places;
  const { names, kinds, name_kind: kind, name, depth, value, own, before, start_ns: starts, end_ns: ends, unit } = data;
  const isDifference = before.length > 0;
  const shown = names.map(printable);
  const bar = element("div", "flame-bar");
  const input = element("input");
  input.type = "search";
  input.placeholder = "Search frames";
  input.setAttribute("aria-label", "Search frames");
  const [reset, place] = [element("button", "", "Whole graph"), element("button", "", "Show in the timeline")];
  for (const button of [reset, place]) {
    button.type = "button";
    button.disabled = true;
  }
  const matches = element("span", "flame-found");
  matches.setAttribute("role", "status");
  bar.append(input, reset, ...(go && starts.length > 0 ? [place] : []), matches);
  const canvas = element("canvas");
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", "Flame graph: arrows choose a frame, Enter zooms into it, Escape shows the whole graph");
  const info = element("p", "flame-told");
  info.setAttribute("aria-live", "polite");
  const legend = element("ul", "flame-kinds");
  root.replaceChildren(bar, canvas, info, legend);

  const context = canvas.getContext("2d", { alpha: false });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let [focus, chosen, width, found] = [0, -1, 0, undefined];

  const colours = () => {
    const style = getComputedStyle(root);
    // Light text stands on a dark page, whoever chose the theme.
    const isDark = (style.color.match(/\d+/g) ?? []).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) > 382;
    const shade = ([hue, saturation], at) => `hsl(${hue} ${saturation}% ${(isDark ? 27 : 74) + ((at * 7) % 5) * (isDark ? 2 : 2.4)}%)`;
    const of = (at) => HUES[kinds[kind[at]]] ?? SUMMED;
    const changed = (at) => {
      const was = before[at];
      const change = value[at] > 0 ? (value[at] - 2 * was) / value[at] : 0;
      const size = Math.min(1, Math.abs(change));
      return `hsl(${change > 0 ? 22 : 212} ${Math.round(size * 75)}% ${isDark ? 26 + size * 12 : 88 - size * 22}%)`;
    };
    return { text: style.color, back: style.getPropertyValue("--back").trim() || (isDark ? "#12151b" : "#fff"), accent: style.getPropertyValue("--accent").trim() || "#0a5cb3", fills: names.map((_, at) => shade(of(at), at)), kind: kinds.map((label) => shade(HUES[label] ?? SUMMED, 1)), fill: isDifference ? changed : undefined, faint: isDark ? "#39404c" : "#c9cfd8" };
  };
  let palette = colours();

  const describe = () => {
    const words = isDifference ? [["grew", "hsl(22 75% 60%)"], ["is as it was", palette.faint], ["shrank", "hsl(212 75% 60%)"]] : kinds.map((label, at) => [label, palette.kind[at]]).filter(([label]) => label !== "all");
    legend.replaceChildren(...words.map(([label, colour]) => {
      const item = element("li");
      const swatch = element("i");
      swatch.style.background = colour;
      item.append(swatch, label);
      return item;
    }));
  };

  const span = (at) => {
    const scale = width / Math.max(1, value[focus]);
    const from = Math.max(0, (left[at] - left[focus]) * scale);
    return [from, Math.min(width, (left[at] + value[at] - left[focus]) * scale)];
  };
  const isVisible = (at) => left[at] < left[focus] + value[focus] && left[at] + value[at] > left[focus];

  const draw = () => {
    const began = performance.now();
    const ratio = devicePixelRatio || 1;
    width = root.clientWidth || 800;
    const height = (deepest + 1) * LEVEL;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = palette.back;
    context.fillRect(0, 0, width, height);
    context.font = FONT;
    context.textBaseline = "middle";
    const letter = context.measureText("abcdefghijM_:").width / 13;
    const drawn = new Float64Array(deepest + 1).fill(-1);
    for (let at = 0; at < name.length; ) {
      if (!isVisible(at)) {
        at = behind[at];
        continue;
      }
      const [from, to] = span(at);
      const [level, wide] = [depth[at], to - from];
      if (wide < LEAST) {
        // What is narrower than a pixel is drawn once per pixel, and what is inside it is not.
        const pixel = Math.floor(from);
        if (pixel > drawn[level]) {
          drawn[level] = pixel;
          context.fillStyle = found?.found[at] ? palette.accent : palette.faint;
          context.fillRect(pixel, level * LEVEL, 1, LEVEL - 1);
        }
        at = behind[at];
        continue;
      }
      const isFound = found?.found[at] === 1;
      context.globalAlpha = (found && !isFound) || depth[at] < depth[focus] ? 0.45 : 1;
      context.fillStyle = palette.fill ? palette.fill(at) : palette.fills[name[at]];
      context.fillRect(from, level * LEVEL, Math.max(wide - 0.5, 0.5), LEVEL - 1);
      context.globalAlpha = 1;
      if (isFound || at === chosen) {
        context.strokeStyle = palette.accent;
        context.lineWidth = at === chosen ? 2 : 1;
        context.strokeRect(from + 1, level * LEVEL + 1, Math.max(wide - 2.5, 0.5), LEVEL - 3);
      }
      if (wide >= NAMED) {
        const room = Math.floor((wide - 8) / letter);
        const text = shown[name[at]];
        const line = text.length <= room ? text : room > 2 ? `${text.slice(0, room - 1)}…` : "";
        context.save();
        context.beginPath();
        context.rect(from, level * LEVEL, wide - 3, LEVEL);
        context.clip();
        context.fillStyle = palette.text;
        context.fillText(line, from + 4, level * LEVEL + LEVEL / 2);
        context.restore();
      }
      at += 1;
    }
    root.dataset.drawn = String(performance.now() - began);
  };

  const tell = (at) => {
    if (at < 0) {
      info.replaceChildren(isDifference ? "A frame is as wide as it takes in both captures together." : "A frame is as wide as its time; frames inside it are below it. Click a frame to zoom in.");
      return;
    }
    const label = kinds[kind[name[at]]];
    const title = element("b", "", shown[name[at]]);
    const inside = parent[at] >= 0 ? `, ${percent(value[at], value[parent[at]])} of ${shown[name[parent[at]]].slice(0, 60)}` : "";
    const [was, is] = isDifference ? [before[at], value[at] - before[at]] : [0, 0];
    const figures = isDifference ? `${told(was, unit)} before, ${told(is, unit)} after: ${is >= was ? "+" : "−"}${told(Math.abs(is - was), unit)}${was > 0 ? ` (${is >= was ? "+" : "−"}${percent(Math.abs(is - was), was)})` : ""}` : `${told(value[at], unit)}, ${percent(value[at], value[0])} of all${inside}; ${told(own[at], unit)} of its own`;
    info.replaceChildren(title, label === "all" ? ": " : ` (${label}): `, figures);
  };

  const choose = (at) => {
    chosen = at;
    place.disabled = at < 0 || !(ends[at] > starts[at]);
    tell(at);
    draw();
  };
  const zoom = (at) => {
    focus = at;
    reset.disabled = at === 0;
    choose(at);
  };

  const under = (event) => {
    const box = canvas.getBoundingClientRect();
    const [level, x] = [Math.floor((event.clientY - box.top) / LEVEL), event.clientX - box.left];
    for (let at = 0; at < name.length; ) {
      const [from, to] = isVisible(at) ? span(at) : [0, 0];
      if (x < from || x >= to) {
        at = behind[at];
      } else if (depth[at] === level) {
        return at;
      } else {
        at += 1;
      }
    }
    return -1;
  };
  /** The frame in a direction; the frame itself where there is none. */
  const beside = (at, key) => {
    const up = parent[at];
    if (key === "ArrowUp") {
      return up < 0 ? at : up;
    }
    if (key === "ArrowDown") {
      return at + 1 < behind[at] ? at + 1 : at;
    }
    if (key === "ArrowRight") {
      return up >= 0 && behind[at] < behind[up] ? behind[at] : at;
    }
    let last = at;
    for (let next = up + 1; up >= 0 && next < at; next = behind[next]) {
      last = next;
    }
    return last;
  };
  canvas.addEventListener("mousemove", (event) => {
    const at = under(event);
    tell(at < 0 ? chosen : at);
    canvas.title = at < 0 ? "" : shown[name[at]];
  });
  canvas.addEventListener("mouseleave", () => tell(chosen));
  canvas.addEventListener("click", (event) => {
    const at = under(event);
    if (at >= 0) {
      zoom(at);
    }
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.key.startsWith("Arrow")) {
      choose(chosen < 0 ? focus : beside(chosen, event.key));
    } else if (event.key === "Enter" && chosen >= 0) {
      zoom(chosen);
    } else if (event.key === "Escape") {
      zoom(0);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  });
  reset.addEventListener("click", () => zoom(0));
  place.addEventListener("click", () => {
    if (chosen >= 0) {
      go({ input: 0, start_ns: starts[chosen], end_ns: ends[chosen], row: null });
    }
  });
  input.addEventListener("input", () => {
    found = input.value === "" ? undefined : search(data, places, input.value);
    matches.textContent = found ? `${found.count} frames, ${percent(found.total, value[0])} of all` : "";
    draw();
  });
  const repaint = () => {
    palette = colours();
    describe();
    draw();
  };
  dark.addEventListener("change", repaint);
  const theme = new MutationObserver(repaint);
  theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  const watch = new ResizeObserver(() => {
    if (Math.abs(root.clientWidth - width) >= 1) {
      draw();
    }
  });
  watch.observe(root);
  tell(-1);
  repaint();
  return () => {
    watch.disconnect();
    theme.disconnect();
    dark.removeEventListener("change", repaint);
  };
}
