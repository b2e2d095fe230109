/** A provider is a folder and one line of the registry; no other code knows its name. See docs/extending.md. */
import t from 'tap'
import { MEDIA_CHANNELS } from '../../../../src/channels/media/registry.ts'
import { PROVIDERS } from '../../../../src/channels/providers/presets.ts'
import { filesUnder, readText, sourceFiles } from '../../../support/source-files.ts'

const FOLDER = 'src/channels/providers'

t.test('each folder is a provider of its name, with one line of the registry', async (t) => {
  const inside = filesUnder(FOLDER).map((path) => path.slice(FOLDER.length + 1).split('/'))
  const folders = new Set(inside.flatMap(([folder = '', ...rest]) => (rest.length > 0 ? folder : [])))
  t.same([...folders].sort(), Object.keys(PROVIDERS).sort())
  const lines = readText(`${FOLDER}/registry.ts`).trimEnd().split('\n').slice(1)
  t.same(
    lines,
    Object.keys(PROVIDERS).map((name) => `export { ${name} } from './${name}/${name}.ts'`),
  )
})

t.test('no file outside the folders names a provider or one of its protocols of media', async (t) => {
  /** A package of npm, and a service of AWS: each is something else of the same name. */
  const others = ["from 'openai'", "service: word.default('bedrock')"]
  const { task: _, ...ofProviders } = MEDIA_CHANNELS
  const names = [...Object.keys(PROVIDERS), ...Object.keys(ofProviders)].join('|')
  const named = new RegExp(`.*(?:(['"\`])(?:${names})\\1|(?:^|[{,(] *)(?:${names})\\??:).*`, 'gm')
  const files = sourceFiles('schemas', 'pipelines', 'src', 'console/src').filter(
    // What the simulated provider can answer like is named by whom it imitates.
    ({ path }) => !path.startsWith(`${FOLDER}/`) && !path.startsWith('src/simulator/'),
  )
  t.not(files.length, 0)
  const found = files.flatMap(({ path, text }) =>
    [...text.matchAll(named)]
      .filter(([line]) => !others.some((other) => line.includes(other)))
      .map(([line]) => `${path}: ${line.trim()}`),
  )
  t.same(found, [])
})
