// SPDX-License-Identifier: Apache-2.0
// The real programs, started and used by cluster_service.py, or another one that answers likewise.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export class Cluster {
  constructor(binaries, pages, service = "cluster_service.py") {
    const script = fileURLToPath(new URL(service, import.meta.url));
    this.process = spawn("python3", [script, binaries, pages], { stdio: ["pipe", "pipe", "inherit"] });
    this.waiting = [];
    this.ended = new Promise((resolve) => this.process.once("close", resolve));
    createInterface({ input: this.process.stdout }).on("line", (line) => this.waiting.shift()?.(JSON.parse(line)));
    void this.ended.then(() => this.waiting.splice(0).forEach((answer) => answer({ error: "the cluster ended" })));
  }

  // Asks the service; its answers come in the order of the questions.
  async ask(name, parameters = {}) {
    const answer = await new Promise((resolve) => {
      this.waiting.push(resolve);
      this.process.stdin.write(`${JSON.stringify({ do: name, ...parameters })}\n`);
    });
    if (answer.error) throw new Error(`${name}: ${answer.error}`);
    return answer.value;
  }

  // Ends everything; the exit code says whether all of it ended well.
  async close() {
    this.process.stdin.end();
    return this.ended;
  }
}
