/**
 * Builds the console and compresses its files. The development packages do it; an install without them leaves the
 * files that are there.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants } from 'node:zlib'
import { resolveInstalled } from './installed.ts'

const CONSOLE = new URL('../console/', import.meta.url)
const COMPRESSIBLE = /\.(?:html|js|css|svg)$/

if (resolveInstalled(() => import.meta.resolve('vite')) === null) process.exit()
const { build } = await import('vite')
await build({ configFile: fileURLToPath(new URL('vite.config.ts', CONSOLE)), logLevel: 'warn' })
const built = new URL('dist/', CONSOLE)
for (const name of readdirSync(built, { recursive: true, encoding: 'utf8' })) {
  if (!COMPRESSIBLE.test(name)) continue
  const bytes = readFileSync(new URL(name, built))
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
  const compressed = brotliCompressSync(bytes, { params })
  if (compressed.length < bytes.length) writeFileSync(new URL(`${name}.br`, built), compressed)
}
