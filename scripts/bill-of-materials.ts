/**
 * Prints the bill of materials of a release as CycloneDX: what `npm sbom` lists of the lock file, without the packages
 * that are only for development. With `--without-optional` also without the embedded engines, as in the image.
 *
 * `npm sbom --omit=dev` (11.19) is of no use: it also leaves out packages that both sides need.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { REFERENCE_PACKAGE } from './reference-package.ts'

interface LockedPackage {
  readonly name?: string
  readonly version: string
  readonly dev?: boolean
  readonly optional?: boolean
  readonly devOptional?: boolean
  /** A package of this repository. */
  readonly link?: boolean
}

interface Bill {
  readonly components: readonly { readonly 'bom-ref': string }[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}

const NPM_SBOM = [
  'sbom',
  '--sbom-format=cyclonedx',
  '--sbom-type=application',
  '--package-lock-only',
  '--include=dev',
]
const FOLDER = 'node_modules/'
const MAX_BYTES = 64 * 1024 * 1024
const root = new URL('../', import.meta.url)
const withoutOptional = process.argv.includes('--without-optional')

const isLeftOut = ({ dev, optional, devOptional, link }: LockedPackage): boolean =>
  dev === true || link === true || (withoutOptional && (optional === true || devOptional === true))

/** `node_modules/a/node_modules/@b/c` holds `@b/c`, unless its entry names another package. */
const printRef = ([path, { name, version }]: [string, LockedPackage]): string =>
  `${name ?? path.slice(path.lastIndexOf(FOLDER) + FOLDER.length)}@${version}`

const lock: { packages: Record<string, LockedPackage> } = JSON.parse(
  readFileSync(new URL('package-lock.json', root), 'utf8'),
)
const { '': self, ...packages } = lock.packages
const kept = new Set(
  Object.entries(packages)
    .filter(([path]) => path.startsWith(FOLDER))
    .filter(([, entry]) => !isLeftOut(entry))
    .map(printRef),
)
const rootRef = `${self?.name}@${self?.version}`
const bill: Bill = JSON.parse(
  execFileSync('npm', NPM_SBOM, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: MAX_BYTES,
    stdio: ['ignore', 'pipe', 'inherit'],
  }),
)
/** The one file that a release has of a package without installing it. */
const { name, version, integrity } = REFERENCE_PACKAGE
const reference = {
  'bom-ref': `${name}@${version}`,
  type: 'library',
  name,
  version,
  scope: 'required',
  purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
  hashes: [
    { alg: 'SHA-512', content: Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex') },
  ],
  licenses: [{ license: { id: 'MIT' } }],
}
const isKept = (ref: string): boolean => ref === rootRef || kept.has(ref)
const release = {
  ...bill,
  components: [...bill.components.filter((component) => isKept(component['bom-ref'])), reference],
  dependencies: [
    ...bill.dependencies
      .filter(({ ref }) => isKept(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(isKept) })),
    { ref: reference['bom-ref'], dependsOn: [] },
  ],
}
const listed = new Set(release.components.map((component) => component['bom-ref']))
const missing = [...kept].filter((ref) => !listed.has(ref))
if (missing.length > 0) throw new Error(`npm sbom does not list ${missing.join(', ')}`)
process.stdout.write(`${JSON.stringify(release, null, 2)}\n`)
