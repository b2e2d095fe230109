/**
 * Copies the script of the reference page out of its package, where npm has installed that: the service then needs one
 * file, not the three hundred packages that the file was built of.
 */
import { copyFileSync, mkdirSync } from 'node:fs'
import { resolveInstalled } from './installed.ts'

const found = resolveInstalled(() => import.meta.resolve('@scalar/api-reference'))
if (found === null) process.exit()
const script = new URL('browser/standalone.js', found)
const folder = new URL('../src/openapi/built/', import.meta.url)
mkdirSync(folder, { recursive: true })
copyFileSync(script, new URL('reference.js', folder))
