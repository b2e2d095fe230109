/**
 * Compiles the JSON scanner, which is AssemblyScript, into a module that carries its WebAssembly. Run it by
 * `npm run assembly` after a change of the sources: it installs the compiler into a cache, so that the service and its
 * tests need none.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CACHE = join(ROOT, 'node_modules/.cache/tollgate/assemblyscript')
const VERSION = '0.28.20'
const INTEGRITY =
  'sha512-5PM7GZpvcLypHcLmi30aP8mqm5HjU+LL3BdV1xDyA3USGtL2w+iMiUnhtH+vW8+2kOuHlAyPu7M+QgyEw5he1g=='
/** The memory of the scanner begins with 130 pages of 64 KiB: room for texts of 4 MiB. */
const OPTIONS = ['-O3', '--runtime', 'stub', '--noAssert', '--enable', 'simd', '--initialMemory', '130']
const LINE_CHARS = 100

const SOURCES = ['json-scanner.ts', 'json-names.ts'].map((name) => `src/core/json/scanner/assembly/${name}`)
const TARGET = 'src/core/json/scanner/scanner.wasm.ts'

/** Returns SHA-256 of the WebAssembly and of all that it is compiled from. */
export function digestCompiled(wasm: Uint8Array): string {
  const hash = createHash('sha256').update(JSON.stringify([VERSION, OPTIONS]))
  for (const source of SOURCES) hash.update(readFileSync(join(ROOT, source)))
  return hash.update(wasm).digest('hex')
}

/** Installs the compiler, and compiles. Throws when the compiler is not the one expected, or refuses the sources. */
function compile(): Buffer {
  execFileSync(
    'npm',
    ['install', '--prefix', CACHE, '--no-save', '--ignore-scripts', `assemblyscript@${VERSION}`],
    { stdio: 'inherit' },
  )
  const installed = JSON.parse(readFileSync(join(CACHE, 'node_modules/.package-lock.json'), 'utf8'))
  if (installed.packages['node_modules/assemblyscript'].integrity !== INTEGRITY)
    throw new Error(`assemblyscript ${VERSION} is not the package that was expected`)
  const compiler = join(CACHE, 'node_modules/assemblyscript/bin/asc.js')
  const wasm = join(CACHE, 'scanner.wasm')
  execFileSync(process.execPath, [compiler, SOURCES[0]!, ...OPTIONS, '--outFile', wasm], {
    cwd: ROOT,
    stdio: 'inherit',
  })
  return readFileSync(wasm)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const wasm = compile()
  const lines = wasm.toString('base64').match(new RegExp(`.{1,${LINE_CHARS}}`, 'g')) ?? []
  writeFileSync(
    join(ROOT, TARGET),
    [
      '/**',
      ' * WebAssembly in base64, compiled from the sources in `assembly` by `npm run assembly`. SHA-256 of both and the compiler:',
      ` * ${digestCompiled(wasm)}`,
      ' */',
      'export const JSON_SCANNER = [',
      ...lines.map((line) => `  '${line}',`),
      "].join('')",
      '',
    ].join('\n'),
  )
}
