import { render } from "preact";
import "./style.css";
import { App } from "./app/app";
import { fetchAhead } from "./app/lazily";
import { Gateway } from "./gateway/client";
import { parseAddress } from "./workspace/address";
import { Workspace } from "./workspace/workspace";

const address = parseAddress(location.search, location.hash);
const base = document.querySelector<HTMLMetaElement>('meta[name="flopwatch-gateway"]')?.content;
const gateway = base === undefined ? undefined : new Gateway(new URL(base, location.href).href);
const workspace = new Workspace(address, gateway);
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
fetchAhead();
