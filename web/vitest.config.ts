// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vitest/config";

export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  test: { include: ["tests/**/*.test.{ts,tsx}"], environment: "node", pool: "threads", maxWorkers: 1, minWorkers: 1 },
});
