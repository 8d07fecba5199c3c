/** Colours of what is drawn on canvases; the rest of the page has them in CSS. */

export interface Theme {
  readonly dark: boolean;
  readonly text: string;
  readonly faint: string;
  readonly grid: string;
  readonly line: string;
  readonly group: string;
  readonly accent: string;
  readonly area: string;
  readonly hit: string;
  readonly flow: string;
  readonly onBar: string;
  /** Over what is from before the window, and the line where the window begins. */
  readonly before: string;
  readonly seam: string;
  /** Hatching of what is not known. */
  readonly unknown: string;
  /** How busy the GPUs are, in the strip of all events. */
  readonly dense: string;
  /** Behind texts that lie on bars. */
  readonly ground: string;
}

export function colors(dark: boolean): Theme {
  return dark
    ? {
        dark, text: "#e6e9ee", faint: "#98a1ae", grid: "rgb(255 255 255 / 7%)", line: "rgb(255 255 255 / 10%)", group: "rgb(255 255 255 / 5%)",
        accent: "#7cc0ff", area: "rgb(124 192 255 / 16%)", hit: "#ffb454", flow: "#ffd479", onBar: "#0b0e13",
        before: "rgb(255 200 110 / 8%)", seam: "#e3a94a", unknown: "rgb(255 200 110 / 22%)",
        dense: "rgb(255 255 255 / 25%)", ground: "rgb(18 21 27 / 80%)",
      }
    : {
        dark, text: "#1c2330", faint: "#5c6676", grid: "rgb(0 0 0 / 7%)", line: "rgb(0 0 0 / 10%)", group: "rgb(0 0 0 / 4%)",
        accent: "#0a66c2", area: "rgb(10 102 194 / 13%)", hit: "#c2570a", flow: "#8a4b00", onBar: "#ffffff",
        before: "rgb(150 95 0 / 8%)", seam: "#8a5a00", unknown: "rgb(150 95 0 / 25%)",
        dense: "rgb(0 0 0 / 22%)", ground: "rgb(255 255 255 / 80%)",
      };
}
