/**
 * Compiles what is written in AssemblyScript into modules that carry their WebAssembly with them, so that the service
 * needs no compiler and no file. `npm run assembly` writes them; a test fails when one does not match its source.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import asc from 'assemblyscript/asc'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const OPTIONS = ['-O3', '--runtime', 'stub', '--noAssert', '--enable', 'simd']
const LINE_CHARS = 100

/** Each with the memory it takes, in pages of 64 KiB. */
export const MODULES = [
  {
    source: 'assembly/json-scanner.ts',
    target: 'src/core/json/scanner/scanner.wasm.ts',
    name: 'JSON_SCANNER',
    // Texts of 4 MiB have room.
    pages: 82,
  },
] as const
export type Module = (typeof MODULES)[number]

/** The text of the module's file. Rejects with the compiler's complaints. */
export async function compiled({ source, name, pages }: Module): Promise<string> {
  const outFile = 'module.wasm'
  let wasm: Uint8Array | null = null
  const { error, stderr } = await asc.main(
    [source, '--baseDir', ROOT, ...OPTIONS, '--initialMemory', String(pages), '--outFile', outFile],
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
  if (error !== null || wasm === null) throw new Error(`${source}: ${error?.message}\n${stderr.toString()}`)
  const lines =
    Buffer.from(wasm)
      .toString('base64')
      .match(new RegExp(`.{1,${LINE_CHARS}}`, 'g')) ?? []
  return [
    `/** WebAssembly in base64, compiled from \`${source}\` by \`npm run assembly\`. */`,
    `export const ${name} = [`,
    ...lines.map((line) => `  '${line}',`),
    "].join('')",
    '',
  ].join('\n')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const module of MODULES) writeFileSync(`${ROOT}/${module.target}`, await compiled(module))
}
