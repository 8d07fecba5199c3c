/** The heads of a table's columns: a click sorts by one, another turns the order round. */

/** What a table is sorted by, and whether the smallest comes first. */
export interface Order<Column extends string> {
  readonly by: Column;
  readonly up: boolean;
}

interface Props<Column extends string> {
  readonly columns: readonly (readonly [Column, string])[];
  /** Which columns hold figures; every one but that of words where it is not said. */
  readonly numbers?: readonly boolean[];
  /** What each column says; may be empty. */
  readonly abouts?: readonly string[];
  /** The one column of words: it begins with its first, where figures begin with their largest. */
  readonly words: Column;
  readonly order: Order<Column>;
  readonly onOrder: (order: Order<Column>) => void;
}

export function Heads<Column extends string>({ columns, numbers, abouts, words, order: { by, up }, onOrder }: Props<Column>) {
  return (
    <thead>
      <tr>
        {columns.map(([column, title], at) => (
          <th key={column} scope="col" class={(numbers?.[at] ?? column !== words) ? "number" : ""} title={abouts?.[at] ?? ""} aria-sort={by === column ? (up ? "ascending" : "descending") : "none"}>
            <button type="button" onClick={() => onOrder({ by: column, up: by === column ? !up : numbers ? !numbers[at] : column === words })}>
              {title}
            </button>
          </th>
        ))}
      </tr>
    </thead>
  );
}
