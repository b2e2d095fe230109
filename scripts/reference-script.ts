/** Takes the script of the reference page out of the tarball of its package. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { REFERENCE_PACKAGE } from './reference-package.ts'

const BUILT = fileURLToPath(new URL('../src/openapi/built/', import.meta.url))
const SCRIPT = 'package/dist/browser/standalone.js'
const MAX_BYTES = 16 * 1024 * 1024
const { name, version, integrity } = REFERENCE_PACKAGE

const folder = mkdtempSync(join(tmpdir(), 'tollgate-reference-'))
try {
  const printed = execFileSync(
    'npm',
    ['pack', `${name}@${version}`, '--json', '--silent', '--ignore-scripts'],
    { cwd: folder, encoding: 'utf8', maxBuffer: MAX_BYTES },
  )
  const [packed]: { filename: string; integrity: string }[] = JSON.parse(printed)
  if (packed?.integrity !== integrity) throw new Error(`${name}@${version} is not the package that it was`)
  mkdirSync(BUILT, { recursive: true })
  execFileSync('tar', ['-xzf', packed.filename, '-C', BUILT, '--strip-components=3', SCRIPT], { cwd: folder })
} finally {
  rmSync(folder, { recursive: true, force: true })
}
