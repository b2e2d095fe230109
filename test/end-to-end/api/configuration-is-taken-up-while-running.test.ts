import { rename, writeFile } from 'node:fs/promises'
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { eventually, type TestModel } from '../../support/service.ts'
import {
  callConfig,
  readUntil,
  reconfigure,
  rowOf,
  say,
  secretsIn,
  traceOf,
  UPSTREAM_KEY,
} from '../support.ts'

const MESSAGES = say('how much')
const PROMPT_TOKENS = Math.ceil(JSON.stringify(MESSAGES).length / 4)
const OUTPUT_TOKENS = 4
/** A stream that is longer than it takes to take up a file. */
const SLOW_TOKENS = 70
const SPOKEN = { simulate: `tokens=${OUTPUT_TOKENS}` }

t.test('a changed configuration', async (t) => {
  const service = await borrowService(
    t,
    callConfig({ first: SPOKEN, slow: { simulate: `tokens=${SLOW_TOKENS},tps=50` } }),
  )
  const { key } = await service.newKey('1000000')
  const call = (model: string, more: object = {}) => service.chat(key, { model, messages: MESSAGES, ...more })
  const costOf = async (model: string) => {
    const response = await call(model)
    await response.text()
    return response.ok ? (await rowOf(service, key, traceOf(response))).cost : String(response.status)
  }
  const write = (models: Readonly<Record<string, TestModel>>) =>
    writeFile(service.configPath, callConfig(models))
  const slow = { simulate: `tokens=${SLOW_TOKENS},tps=50` }

  await t.test('is taken up: a new price, a new model, a model that is gone', async (t) => {
    t.equal(await costOf('first'), String(PROMPT_TOKENS + 2 * OUTPUT_TOKENS))
    t.equal(await costOf('second'), '400')
    const dearer = { ...SPOKEN, input: '3000000', output: '5000000' }
    await reconfigure(
      service,
      key,
      () => write({ first: dearer, second: SPOKEN, slow }),
      (ids) => ids.includes('second'),
    )
    t.equal(await costOf('first'), String(3 * PROMPT_TOKENS + 5 * OUTPUT_TOKENS))
    t.equal(await costOf('second'), String(PROMPT_TOKENS + 2 * OUTPUT_TOKENS))

    await reconfigure(
      service,
      key,
      async () => {
        // As editors and deployments replace a file: by another one under its name.
        await writeFile(`${service.configPath}.new`, callConfig({ second: SPOKEN, slow }))
        await rename(`${service.configPath}.new`, service.configPath)
      },
      (ids) => !ids.includes('first'),
    )
    t.equal(await costOf('first'), '400')
    t.equal(await costOf('second'), String(PROMPT_TOKENS + 2 * OUTPUT_TOKENS))
  })

  await t.test('does not touch calls that run: they end at the price they began with', async (t) => {
    const response = await call('slow', { stream: true })
    await reconfigure(
      service,
      key,
      () => write({ second: SPOKEN, third: SPOKEN, slow: { ...slow, output: '9000000' } }),
      (ids) => ids.includes('third'),
    )
    t.match((await readUntil(response)).toString('utf8'), /\[DONE\]/)
    const row = await rowOf(service, key, traceOf(response))
    t.equal(row.cost, String(PROMPT_TOKENS + 2 * SLOW_TOKENS))
  })

  await t.test('that is broken is refused whole, the reason in the log; the old one stays', async (t) => {
    const broken = [
      ['a typing error', callConfig({ fourth: SPOKEN }).replace('pricing:', 'pricings:'), /pricings/],
      ['no YAML', 'models: [ {', /Configuration refused/],
      [
        'an unknown variable',
        callConfig({ fourth: SPOKEN }).replace('TEST_SIMULATOR_URL', 'NO_SUCH_NAME'),
        /NO_SUCH_NAME/,
      ],
      [
        'a channel for no model',
        callConfig({ fourth: SPOKEN }).replace('      fourth:', '      fifth:'),
        /fifth/,
      ],
    ] as const
    for (const [what, text, reason] of broken) {
      const before = service.output().length
      await writeFile(service.configPath, text)
      const said = await eventually(`${what} is refused`, () => {
        const added = service.output().slice(before)
        // Not by the settler, which reads the file too and may come late.
        return added.includes('Configuration refused; the former one') && reason.test(added)
          ? added
          : undefined
      })
      t.match(said, reason, what)
      t.equal((await call('second')).status, 200)
      t.equal((await call('fourth')).status, 400)
    }
    await reconfigure(
      service,
      key,
      () => write({ second: SPOKEN, fourth: SPOKEN }),
      (ids) => ids.includes('fourth'),
    )
    t.equal((await call('fourth')).status, 200, 'mended, it is taken up')
  })

  await t.test('may turn a channel off', async (t) => {
    const off = callConfig({ second: SPOKEN, fifth: SPOKEN }).replace(UPSTREAM_KEY, '""')
    await reconfigure(
      service,
      key,
      () => writeFile(service.configPath, off),
      (ids) => ids.includes('fifth'),
    )
    t.equal(await costOf('second'), '503')
  })

  t.same(secretsIn(service, [key]), [], 'nothing secret was logged')
})
