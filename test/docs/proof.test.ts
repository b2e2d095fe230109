/** The claims of `docs/proof.md` stand on the pages that they link to, and the commands that check them exist. */
import { existsSync } from 'node:fs'
import { join, posix } from 'node:path'
import t from 'tap'
import { listClaims, readRecords, renderProof } from '../../scripts/proof.ts'
import { commandTree } from '../src/cli/support.ts'
import { ROOT, readText } from '../support/source-files.ts'

const CLAIMS = listClaims()
const { scripts } = JSON.parse(readText('package.json'))

/** Returns the text without line breaks, links and the bars of tables. */
const flatten = (text: string): string =>
  text
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/\s+/g, ' ')
    .trim()

/** Returns what is wrong with a command; null where it exists. */
function findFault(command: string): string | null {
  const [program = '', ...words] = command.split(' ')
  const absent = words.find(
    (word) => /^(test|bench|scripts|src)\//.test(word) && !existsSync(join(ROOT, word)),
  )
  if (absent !== undefined) return `there is no ${absent}`
  if (program !== 'npm') return existsSync(join(ROOT, program)) ? null : `there is no ${program}`
  const script = words[0] === 'run' ? words.slice(1).find((word) => !word.startsWith('-')) : words[0]
  if (!Object.hasOwn(scripts, script ?? '')) return `package.json has no script ${script}`
  if (script !== 'tollgate') return null
  const line = words.slice(words.indexOf('--') + 1).join(' ')
  return commandTree().some((one) => `${line} `.startsWith(`${one.words.join(' ')} `))
    ? null
    : `there is no command ${line}`
}

t.test('a command that does not exist is found', async (t) => {
  t.equal(findFault('npm run -s tollgate -- wallet verify --full'), null)
  t.equal(findFault('npm run -s tollgate -- wallet polish'), 'there is no command wallet polish')
  t.equal(findFault('npm run polish'), 'package.json has no script polish')
  t.equal(findFault('npm test -- test/polish'), 'there is no test/polish')
  t.equal(findFault('.ci/polish --all'), 'there is no .ci/polish')
})

t.test('each claim stands on its page, and its command exists', async (t) => {
  const rows = readText('docs/proof.md').match(/^\| `/gm) ?? []
  t.equal(CLAIMS.length, rows.length, 'each row is a claim')
  t.equal(new Set(CLAIMS.map(({ name }) => name)).size, CLAIMS.length, 'each name is there once')
  for (const { name, text, link, command } of CLAIMS) {
    const [page = ''] = posix.join('docs', link).split('#')
    t.ok(flatten(readText(page)).includes(flatten(text)), `${name}: ${page} says "${text}"`)
    t.equal(findFault(command), null, name)
  }
})

t.test('what is recorded is of a command on the page', async (t) => {
  const commands = CLAIMS.map(({ command }) => command)
  t.same(
    Object.keys(readRecords()).filter((command) => !commands.includes(command)),
    [],
  )
})

t.test('a row shows the result of its command', async (t) => {
  const run = { date: '2026-11-29', tollgate: '0.1.0 (abc1234)', machine: 'a machine' }
  const tests = { ...run, result: 'passed', checks: '12 passed, 0 failed', seconds: 61 } as const
  t.same(renderProof(tests), ['61 s', 'passed (12 passed, 0 failed), 2026-11-29, 0.1.0 (abc1234), a machine'])
  const other = { ...run, result: 'failed', checks: null, seconds: 601 } as const
  t.same(renderProof(other), ['10 min', 'failed, 2026-11-29, 0.1.0 (abc1234), a machine'])
  t.same(renderProof(undefined), ['not recorded', 'not recorded'])
})
