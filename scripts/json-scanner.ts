/**
 * Compiles the JSON scanner, which is AssemblyScript, into a module that carries its WebAssembly: the service needs no
 * compiler. `npm run assembly` writes it; a test fails when it does not match its source.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import asc from 'assemblyscript/asc'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const OPTIONS = ['-O3', '--runtime', 'stub', '--noAssert', '--enable', 'simd']
const LINE_CHARS = 100

const SOURCE = 'src/core/json/scanner/assembly/json-scanner.ts'
export const TARGET = 'src/core/json/scanner/scanner.wasm.ts'
/** The memory of the scanner, in pages of 64 KiB: it has room for texts of 4 MiB. */
const PAGES = 82

/** Returns the text of the module's file. Rejects with the messages of the compiler. */
export async function compiled(): Promise<string> {
  const outFile = 'module.wasm'
  let wasm: Uint8Array | null = null
  const { error, stderr } = await asc.main(
    [SOURCE, '--baseDir', ROOT, ...OPTIONS, '--initialMemory', String(PAGES), '--outFile', outFile],
    {
      readFile: (path, folder) => {
        try {
          return readFileSync(`${folder}/${path}`, 'utf8')
        } catch {
          return null
        }
      },
      writeFile: (path, content) => {
        if (path === outFile) wasm = content as Uint8Array
      },
      listFiles: () => [],
    },
  )
  if (error !== null || wasm === null) throw new Error(`${SOURCE}: ${error?.message}\n${stderr.toString()}`)
  const lines =
    Buffer.from(wasm)
      .toString('base64')
      .match(new RegExp(`.{1,${LINE_CHARS}}`, 'g')) ?? []
  return [
    `/** WebAssembly in base64, compiled from \`${SOURCE}\` by \`npm run assembly\`. */`,
    'export const JSON_SCANNER = [',
    ...lines.map((line) => `  '${line}',`),
    "].join('')",
    '',
  ].join('\n')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(`${ROOT}/${TARGET}`, await compiled())
