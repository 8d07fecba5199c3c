// What a page complains of, as a list that grows: exceptions, and errors on its console.

// The browser breaks every request off when the machine gets a network interface, as it does while a local cluster starts beside the tests.
// The page sends such a request again (`src/bytes/http.ts`), and what it shows at last is asserted.
const BROKEN_OFF = /^Failed to load resource: net::ERR_NETWORK_CHANGED/;

/** The list of a page's complaints; an error whose text matches `expected` is none. */
export function complaintsOf(page, expected = /^$/) {
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    const text = message.text();
    if (message.type() === "error" && !BROKEN_OFF.test(text) && !expected.test(text)) {
      complaints.push(text);
    }
  });
  return complaints;
}
