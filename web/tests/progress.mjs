// Listens to the gateway with the client of Socket.IO: `node tests/progress.mjs URL TOKEN websocket|polling`. Prints each event as a line of
// JSON, until the connection ends.

import { io } from "socket.io-client";

const [url, token, transport] = process.argv.slice(2);
const socket = io(url, { auth: { token }, transports: [transport], reconnection: false });
socket.on("connect", () => console.log("connected"));
socket.on("connect_error", ({ message }) => {
  console.log(`refused: ${message}`);
  socket.close();
});
for (const name of ["profiling_started", "profiling_progress", "profiling_complete", "profiling_error"]) {
  socket.on(name, (said) => console.log(JSON.stringify([name, said])));
}
