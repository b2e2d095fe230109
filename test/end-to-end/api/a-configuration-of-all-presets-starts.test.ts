/** Every example of the page of providers in one configuration: it is checked, what is missing is named, and it serves. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PRESETS } from '../../../src/channels/providers/presets.ts'
import { tollgate } from '../../src/cli/support.ts'
import { borrowService } from '../../support/lend-services.ts'
import { signIn } from '../../support/manage.ts'
import { readText } from '../../support/source-files.ts'
import { ask } from '../protocols/support.ts'
import { errorOf } from '../support.ts'

const [models = '', channels = ''] = [...readText('docs/providers.md').matchAll(/```yaml\n(.*?)```/gs)].map(
  ([, text = '']) => text,
)
const examples = channels.split(/^(?= {2}- )/m).slice(1)
const CONFIG = `${models}  - { id: sonata-large, pricing: { unit: 1M_tokens, input: "1", output: "2" } }
${channels}`

t.test('all presets', async (t) => {
  await t.test('config check names each variable that is not set', async (t) => {
    const dir = t.testdir()
    const file = join(dir, 'presets.yaml')
    writeFileSync(file, CONFIG)
    const { code, stdout } = await tollgate(['config', 'check', file, '--json'], { TOLLGATE_DATA_DIR: dir })
    t.equal(code, 0)
    const { channels, warnings } = JSON.parse(stdout) as {
      channels: number
      warnings: { message: string }[]
    }
    t.equal(channels, examples.length)
    const named = warnings.map(({ message }) => message).join('\n')
    const wanted = new Set([...CONFIG.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name))
    t.ok(wanted.size >= Object.keys(PRESETS).length - 1)
    for (const name of wanted) t.ok(named.includes(name), name)
  })

  await t.test('the service starts, and says that no channel is on', async (t) => {
    const service = await borrowService(t, CONFIG)
    const operator = await signIn(service, { role: 'operator' })
    const { body } = await operator.send('GET', '/channels')
    t.equal(body.data.length, examples.length)
    const { key } = await service.newKey('10')
    const answer = await ask(service, key, 'chat-completions', 'sonata-large')
    t.equal(answer.status, 503)
    t.match(await errorOf(answer), { code: 'no_channel_available' })
  })
})
