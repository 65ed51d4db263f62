// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";
import { App } from "./app";
import { applyTheme, storedTheme } from "./theme";
import "./style/base.css";
import "./style/shell.css";
import "./style/parts.css";
import "./style/pages.css";

applyTheme(storedTheme());
const root = document.getElementById("app");
if (root) render(<App />, root);
