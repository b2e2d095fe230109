/** How the reference looks: one column to read, one to find the way, in light and in dark. */
import { Html } from './html.ts'

export const STYLE = new Html(`
:root { color-scheme: light dark; --ink: #1c2024; --soft: #5b6570; --line: #e2e5e9; --paper: #fff; --shade: #f6f7f9; --mark: #0b6e4f; --get: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8ea; --soft: #9aa4af; --line: #2c3137; --paper: #121417; --shade: #1a1d21; --mark: #4cc38a; --get: #6cb2f5; }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1.5rem; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
a { color: inherit; text-decoration-color: var(--line); text-underline-offset: .2em; }
a:hover { text-decoration-color: currentColor; }
code, pre { font: .875em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.page { display: grid; grid-template-columns: 18rem minmax(0, 1fr); }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.75rem 1.25rem; border-right: 1px solid var(--line); font-size: .875rem; }
nav strong { display: block; font-size: 1.125rem; }
nav h2 { margin: 1.5rem 0 .25rem; font-size: .75rem; font-weight: 600; color: var(--soft); }
nav ul { list-style: none; margin: 0; padding: 0; }
nav a { display: block; padding: .2rem 0; text-decoration: none; overflow-wrap: anywhere; }
nav a:hover { text-decoration: underline; }
main { max-width: 60rem; padding: 1.75rem 2.5rem 6rem; }
h1 { margin: 0 0 .5rem; font-size: 1.75rem; line-height: 1.2; }
h2 { margin: 3.5rem 0 0; font-size: 1.25rem; }
section > h3 { margin: 0 0 .25rem; font-size: 1rem; display: flex; gap: .75rem; align-items: baseline; overflow-wrap: anywhere; }
h4 { margin: 1.25rem 0 .25rem; font-size: .875rem; }
section { margin-top: 1.75rem; padding-top: 1.75rem; border-top: 1px solid var(--line); }
section p { margin: .25rem 0; }
.soft { color: var(--soft); }
.method { font-weight: 700; color: var(--mark); }
.method.get { color: var(--get); }
pre { margin: .75rem 0; padding: .875rem 1rem; background: var(--shade); border: 1px solid var(--line); border-radius: 6px; overflow-x: auto; }
.wide { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: .875rem; }
th { text-align: left; font-weight: 600; color: var(--soft); }
th, td { padding: .4rem .75rem .4rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td:first-child { white-space: nowrap; }
details { margin-top: .75rem; }
summary { cursor: pointer; font-size: .875rem; font-weight: 600; }
.needed { color: var(--mark); font-size: .8125rem; }
@media (max-width: 60rem) {
  .page { display: block; }
  nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line); columns: 2; }
  nav > * { break-inside: avoid; }
  main { padding: 1.5rem 1.25rem 4rem; }
}
`)
