import { render } from "preact";
import "./style.css";
import { App } from "./app/app";
import { fetchAhead } from "./app/lazily";
import { type Address, parseAddress } from "./workspace/address";
import { Workspace } from "./workspace/workspace";

/** The gateway that serves this page, if one does. Without one, nothing of it is needed. */
async function gatewayOf(page: Document) {
  const base = page.querySelector<HTMLMetaElement>('meta[name="flopwatch-gateway"]')?.content;
  return base === undefined ? undefined : new (await import("./gateway/client")).Gateway(new URL(base, location.href).href);
}

function show(workspace: Workspace, address: Address): void {
  const { gateway } = workspace;
  const root = document.getElementById("app");
  if (root) {
    render(<App workspace={workspace} />, root);
  }
  if (address.file !== undefined) {
    void workspace.open({ url: new URL(address.file, location.href).href });
  }
  addEventListener("popstate", ({ state }) => void workspace.arrive(parseAddress(location.search, location.hash), state === null));
  // Other programs that serve this page hold no captures of this machine.
  if (!gateway && (address.file === undefined || address.file.includes("v1/namespaces/local/captures/"))) {
    void workspace.captures.look();
  }
  gateway?.arrive().catch((error: unknown) => workspace.report(error));
  fetchAhead(() => import("./workspace/dropped"));
}

const address = parseAddress(location.search, location.hash);
void gatewayOf(document).then((gateway) => show(new Workspace(address, gateway), address));
