/** The WebAssembly that the service carries belongs to its sources; a change of these needs `npm run assembly`. */
import t from 'tap'
import { digestCompiled } from '../scripts/json-scanner.ts'
import { JSON_SCANNER } from '../src/core/json/scanner/scanner.wasm.ts'
import { readText } from './support/source-files.ts'

t.test('the compiled scanner belongs to its sources, compiler and options', async (t) => {
  const [recorded] = /\b[0-9a-f]{64}\b/.exec(readText('src/core/json/scanner/scanner.wasm.ts')) ?? []
  t.equal(recorded, digestCompiled(Buffer.from(JSON_SCANNER, 'base64')))
})
