/** The first load of the console: its page, and all that the page names. */
import { readFileSync } from 'node:fs'

const page = readFileSync('console/dist/index.html', 'utf8')
const named = [...page.matchAll(/"\/console\/(assets\/[^"]+\.(?:js|css))"/g)].map(([, name]) => name)

export default [
  {
    name: 'first load of the console',
    path: ['index.html', ...named].map((name) => `console/dist/${name}.br`),
    brotli: false,
    gzip: false,
    limit: '150 kB',
  },
]
