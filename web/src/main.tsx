import { render } from "preact";
import { Gateway } from "./gateway/client";
import "./style.css";
import "./ui/sessions/sessions.css";
import { parseAddress } from "./ui/address";
import { App } from "./ui/app";
import { fetchAhead } from "./ui/lazily";
import { Workspace } from "./ui/workspace";

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
gateway?.arrive().catch((error: unknown) => workspace.report(error));
fetchAhead();
