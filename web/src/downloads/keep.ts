/** Files that the browser keeps. */

/** Has the browser keep a text as a file. */
export function save(name: string, text: string): void {
  keep(name, new Blob([text], { type: "text/csv" }));
}

/** The same of any content. */
export function keep(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
