/** Dashboards as Grafana's published schema has them, where only data is written: the schema's enumerations stand for their values. */

import type { Dashboard, Panel, RowPanel } from "@grafana/schema";
import type { Options as StatOptions } from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen.d.ts";
import type {
  FieldConfig as TimeSeriesConfig,
  Options as TimeSeriesOptions,
} from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen.d.ts";

type Data<T> = T extends string ? (string extends T ? string : `${T}`) : T extends (infer One)[] ? Data<One>[] : T extends object ? { [Key in keyof T]: Data<T[Key]> } : T;

/** A panel of a kind, with what that kind has beside all others. */
type Of<Kind extends string, Options, Custom> = Omit<Panel, "type" | "options" | "fieldConfig"> & {
  type: Kind;
  options: Partial<Options>;
  fieldConfig: Omit<NonNullable<Panel["fieldConfig"]>, "defaults"> & {
    defaults: Omit<NonNullable<Panel["fieldConfig"]>["defaults"], "custom"> & { custom?: Partial<Custom> };
  };
};

/** The panels that our dashboards are made of. */
type Known = Of<"timeseries", TimeSeriesOptions, TimeSeriesConfig> | Of<"stat", StatOptions, never> | RowPanel;

/** A dashboard that Grafana knows every field of. */
export type Checked = Data<Omit<Dashboard, "panels"> & { panels: Known[] }>;
