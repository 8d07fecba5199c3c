import { render } from "preact";
import "./style.css";
import { parseAddress } from "./ui/address";
import { App } from "./ui/app";
import { Workspace } from "./ui/workspace";

const address = parseAddress(location.search, location.hash);
const workspace = new Workspace(address);
const root = document.getElementById("app");
if (root) {
  render(<App workspace={workspace} />, root);
}
if (address.file !== undefined) {
  void workspace.open({ url: new URL(address.file, location.href).href });
}
