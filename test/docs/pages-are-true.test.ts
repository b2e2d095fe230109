/**
 * What the pages name is there: files, commands of npm, dependencies, fields of the examples. `citations-resolve.test.ts`
 * checks links to headings of other pages.
 */
import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { DEMONSTRATION_FILE } from '../../src/config/demonstration.ts'
import { loadConfigFile } from '../../src/config/load.ts'
import { bannerModel, firstCallBody } from '../../src/server/supervisor/banner.ts'
import { filesUnder, ROOT, readText } from '../support/source-files.ts'

const PAGES = ['README.md', 'CHANGELOG.md', ...filesUnder('docs').filter((path) => path.endsWith('.md'))]
const TESTS = filesUnder('test')
const { scripts, dependencies, optionalDependencies, devDependencies } = JSON.parse(readText('package.json'))

t.test('every link leads somewhere', async (t) => {
  for (const page of PAGES) {
    const text = readText(page)
    for (const [, link = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(link)) continue
      const [path = '', anchor] = link.split('#')
      if (path !== '') t.ok(existsSync(join(ROOT, dirname(page), path)), `${page}: ${link}`)
      else t.ok(headings(text).includes(anchor ?? ''), `${page}: ${link}`)
    }
  }
})

/** The anchors of a page's headings. */
function headings(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\w\s-]/g, '')
      .replaceAll(' ', '-'),
  )
}

t.test('every file and every command of npm that is named exists', async (t) => {
  for (const page of PAGES) {
    const text = readText(page)
    for (const [, path = ''] of text.matchAll(
      /`((?:src|test|schemas|pipelines|console|deploy|docs|scripts|simulator|bench|\.ci)\/[\w./-]+)`/g,
    ))
      t.ok(existsSync(join(ROOT, path)), `${page}: ${path}`)
    for (const [, name = ''] of text.matchAll(/`([\w-]+\.test\.ts)`/g))
      t.ok(
        TESTS.some((path) => path.endsWith(`/${name}`)),
        `${page}: ${name}`,
      )
    for (const [, script = ''] of text.matchAll(/npm run (?:-s )?([a-z]+)/g))
      t.ok(Object.hasOwn(scripts, script), `${page}: npm run ${script}`)
  }
})

t.test('every dependency has a reason', async (t) => {
  const rows = readText('docs/dependencies.md').match(/^\| `.*$/gm) ?? []
  const named = rows.flatMap((row) =>
    [...row.split(' | ')[0]!.matchAll(/`([^`\s]+)`/g)].map(([, name]) => name),
  )
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...devDependencies }))
    t.ok(named.includes(name), name)
})

t.test('the configuration of the first own provider is sound', async (t) => {
  const example = /```yaml\n(.*?)```/s.exec(readText('docs/getting-started.md'))?.[1] ?? ''
  const path = join(t.testdir(), 'tollgate.yaml')
  writeFileSync(path, example)
  const result = loadConfigFile(path, { EXAMPLE_API_KEY: 'sk-example' })
  t.match(result, { ok: true, config: { channels: [{ id: 'primary', api_key: 'sk-example' }] } })
})

t.test('the README and the start of the service show the same first call', async (t) => {
  const result = loadConfigFile(DEMONSTRATION_FILE, { TOLLGATE_SIMULATOR_URL: 'http://127.0.0.1:1' })
  if (!result.ok) throw new Error('The demonstration does not load.')
  const served = (id: string) => result.config.channels.some(({ models }) => Object.hasOwn(models, id))
  const printed = firstCallBody(bannerModel(result.config.models, served)!)
  const shown = /chat\/completions[^']*'Content-Type: application\/json'[^']*-d '([^']+)'/.exec(
    readText('README.md'),
  )
  t.same(JSON.parse(shown?.[1] ?? 'null'), printed)
  t.ok(readText('docs/getting-started.md').includes(`model: '${printed.model}'`))
})
