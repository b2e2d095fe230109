/** The WebAssembly that the service carries is what its source compiles to. */
import t from 'tap'
import { compiled, TARGET } from '../assembly/build.ts'
import { readText } from './support/source-files.ts'

t.test(`${TARGET} (npm run assembly writes it)`, async (t) => {
  t.equal(readText(TARGET), await compiled())
})
