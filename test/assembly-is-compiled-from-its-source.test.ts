/** The WebAssembly that the service carries is what its source compiles to. */
import t from 'tap'
import { compiled, MODULES } from '../assembly/build.ts'
import { readText } from './support/source-files.ts'

for (const module of MODULES)
  t.test(`${module.target} (npm run assembly writes it)`, async (t) => {
    t.equal(readText(module.target), await compiled(module))
  })
