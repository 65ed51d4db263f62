// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vite";

const KIBIBYTE = 1024;

// The daemon serves every file with a strict Content-Security-Policy: nothing may be inlined.
export default defineConfig({
  base: "/",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "es2021",
    outDir: process.env.PNFSRDMA_WEB_OUT ?? "../build/web",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { output: { experimentalMinChunkSize: 8 * KIBIBYTE } },
  },
});
