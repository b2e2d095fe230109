/** Settings that a channel leaves to its installation, and the profile of strangers. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfigFile } from '../../../src/config/load.ts'

const MODEL = 'models: [{ id: m, pricing: { unit: 1M_tokens, input: 1, output: 2 } }]'
const channel = (id: string, more = '') =>
  `  - { id: ${id}, provider: openai, api_key: k, models: { m: up }${more} }`

function hidden(top: string): (boolean | undefined)[] {
  const path = join(t.testdir(), 'c.yaml')
  const channels = [
    channel('a'),
    channel('b', ', hide_auth_errors: true'),
    channel('c', ', hide_auth_errors: false'),
  ]
  writeFileSync(path, [top, MODEL, 'channels:', ...channels, ''].join('\n'))
  const loaded = loadConfigFile(path, {})
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
  return loaded.config.channels.map(({ hide_auth_errors }) => hide_auth_errors)
}

t.test(
  'a channel hides refusals of its key as the installation does, unless it says otherwise',
  async (t) => {
    t.same(hidden(''), [false, true, false])
    t.same(hidden('hide_auth_errors: true'), [true, true, false])
    t.same(hidden('profile: public'), [true, true, false])
    t.same(hidden('profile: public\nhide_auth_errors: false'), [false, true, false])
  },
)
