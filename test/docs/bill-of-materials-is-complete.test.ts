/** The bill of materials of a release: CycloneDX that names every package the service installs, and no host. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { z } from 'zod'
import { ROOT, readText } from '../support/source-files.ts'

const MAX_BYTES = 64 * 1024 * 1024

const component = z.object({
  'bom-ref': z.string().min(1),
  type: z.enum(['application', 'library']),
  name: z.string().min(1),
  version: z.string().min(1),
  purl: z.string().startsWith('pkg:npm/'),
})
const checksum = z.object({ alg: z.literal('SHA-512'), content: z.string().regex(/^[0-9a-f]{128}$/) })
const bill = z.object({
  bomFormat: z.literal('CycloneDX'),
  specVersion: z.string().regex(/^1\.\d+$/),
  serialNumber: z.string().startsWith('urn:uuid:'),
  metadata: z.object({ component }),
  components: z.array(component.extend({ hashes: z.array(checksum).min(1) })),
  dependencies: z.array(z.object({ ref: z.string(), dependsOn: z.array(z.string()) })),
})

const installed = z.object({
  dependencies: z.record(z.string(), z.string()),
  optionalDependencies: z.record(z.string(), z.string()),
  devDependencies: z.record(z.string(), z.string()),
})
const { dependencies, optionalDependencies, devDependencies } = installed.parse(
  JSON.parse(readText('package.json')),
)

/** Its script is a file of each release. */
const COPIED = '@scalar/api-reference'

/** `npm:uws-pack@20.0.8` is version 20.0.8 under another name. */
const versionOf = (wanted: string): string => wanted.replace(/^npm:.*@/, '')

async function billOf(...words: string[]) {
  const command = ['run', '--silent', 'sbom', '--', ...words]
  const { stdout } = await promisify(execFile)('npm', command, { cwd: ROOT, maxBuffer: MAX_BYTES })
  return { ...bill.parse(JSON.parse(stdout)), text: stdout }
}

t.test('every dependency, and none that is for development alone', async (t) => {
  const [whole, image] = await Promise.all([billOf(), billOf('--without-optional')])
  t.match(whole.metadata.component, { type: 'application', purl: /^pkg:npm\/tollgate@/ })
  for (const { components, dependencies: tree, metadata, text } of [whole, image]) {
    const versions = new Map(components.map(({ name, version }) => [name, version]))
    const wanted = { ...dependencies, ...(components === whole.components && optionalDependencies) }
    for (const [name, version] of Object.entries(wanted))
      t.equal(versions.get(name), versionOf(version), name)
    const refs = new Set([metadata.component, ...components].map((one) => one['bom-ref']))
    const unknown = tree.flatMap(({ ref, dependsOn }) => [ref, ...dependsOn]).filter((ref) => !refs.has(ref))
    t.same(unknown, [])
    t.equal(tree.length, refs.size)
    t.notMatch(text, /registry/)
  }
  // The embedded engines bring some of the others along.
  for (const name of Object.keys({ ...optionalDependencies, ...devDependencies }))
    t.equal(
      image.components.some((component) => component.name === name),
      name === COPIED,
      name,
    )
})
