import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { KEY_SHOWN_CHARS } from '../../../schemas/accounts/key.ts'
import { createLog, type LogOptions, type LogOutput } from '../../../src/telemetry/log.ts'
import { Scrubber } from '../../../src/telemetry/scrub.ts'
import { until } from '../../support/eventually.ts'

function logTo(t: Test, more: Partial<LogOptions> = {}): { log: LogOutput; lines: () => Promise<string[]> } {
  const destination = join(t.testdir(), 'log')
  const log = createLog({ level: 'info', pretty: false, destination, ...more })
  const lines = async () => {
    // The file is opened in the background.
    for (;;) {
      log.flush()
      try {
        const text = readFileSync(destination, 'utf8')
        if (text !== '') return text.trimEnd().split('\n')
      } catch {}
      await sleep(5)
    }
  }
  return { log, lines }
}

t.test('one JSON object a line, with time, level, message and request id', async (t) => {
  const { log, lines } = logTo(t, { fields: { role: 'gateway' } })
  log.debug({}, 'Too fine.')
  log.with({ request_id: 'req_1' }).info({ model: 'a' }, 'Call ended.')
  log.error({ err: new Error('gone') }, 'Lost.')
  log.error({ error: new Error('gone too') }, 'Lost.')
  const [first, second, third, ...rest] = (await lines()).map((line) => JSON.parse(line))
  t.match(first, { level: 'info', role: 'gateway', request_id: 'req_1', model: 'a', msg: 'Call ended.' })
  t.match(first.time, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  t.match(second, { level: 'error', err: { message: 'gone', stack: /Error: gone/ } })
  t.match(third, { level: 'error', error: { message: 'gone too', stack: /Error: gone too/ } })
  t.same(rest, [])
})

t.test('lines get out by themselves, also those that come during a write', async (t) => {
  const destination = join(t.testdir(), 'log')
  const log = createLog({ level: 'info', pretty: false, destination })
  // Enough to be written at once; the next one comes meanwhile.
  for (const more of ['', 'x'.repeat(5_000), '', '']) log.info({ more }, 'One more.')
  await until('all lines are written', () => readFileSync(destination, 'utf8').split('\n').length === 5)
  log.info({}, 'One more.')
  await until('the last line is written', () => readFileSync(destination, 'utf8').split('\n').length === 6)
})

t.test('no secret passes, wherever it stands', async (t) => {
  const { log, lines } = logTo(t)
  const secret = randomBytes(12).toString('hex')
  const key = `sk-tollgate-${randomBytes(32).toString('hex')}`
  log.hide([`plain ${secret}`])
  const cause = new Error(`connect postgres://user:${secret}@db/tollgate failed`)
  log.info(
    { headers: { authorization: `Bearer ${secret}`, 'x-api-key': secret, cookie: `a=${secret}` } },
    'a',
  )
  log.info({ rawHeaders: ['x-goog-api-key', secret, 'Authorization', `Bearer ${secret}`] }, 'b')
  log.info(
    { channel: { api_key: secret, apiKey: secret, masterKey: secret } },
    `body {"api_key":"${secret}"}`,
  )
  log.info(
    { url: `https://host/v1beta/models/x?key=${secret}&alt=sse` },
    `key sk-${secret} and sk-proj-${secret}`,
  )
  log.error({ err: new Error('Not booked.', { cause }) }, `plain ${secret}`)
  log.info({ body: JSON.stringify({ nested: JSON.stringify({ password: secret }) }) }, `x-api-key: ${secret}`)
  log.info({ key }, `The key ${key} was made.`)
  log.info({ TOLLGATE_MASTER_KEY: secret, S3_SECRET_ACCESS_KEY: secret }, `password=${secret}`)
  const all = await lines()
  t.equal(all.length, 8)
  for (const line of all) {
    t.doesNotThrow(() => JSON.parse(line), 'what is left is JSON')
    t.notOk(line.includes(secret), line)
    t.notOk(line.includes(key.slice(0, KEY_SHOWN_CHARS + 1)), line)
  }
  t.ok(all[6]?.includes(key.slice(0, KEY_SHOWN_CHARS)), 'as much of a key stays as may be shown')
})

t.test('what is no secret stays', async (t) => {
  const line = JSON.stringify({
    request_id: 'req_01JCZ0000000000000000000AB',
    input_tokens: 12,
    key_id: 'key_01JCZ0000000000000000000AB',
    key_prefix: 'sk-tollgate-0123abcd',
    url: 'https://api.example.com/v1/chat/completions',
    address: 'someone@example.com',
    msg: 'Basic checks passed: the token count is 12.',
  })
  t.equal(new Scrubber().scrub(line), line)
})

t.test('a long line costs no more than its length', async (t) => {
  const scrubber = new Scrubber()
  for (const piece of ['a://b:', 'sk-', 'Bearer ', 'api_key:', '\\"token', '?key', 'a-', '@', ' : ']) {
    const text = piece.repeat(200_000 / piece.length)
    t.equal(typeof scrubber.scrub(text), 'string', piece)
  }
})

t.test('a line for a terminal, with the error below', async (t) => {
  const { log, lines } = logTo(t, { pretty: true })
  log.warn({ err: new Error('gone'), request_id: 'req_1', count: 2 }, 'Retrying.')
  const [first = '', ...rest] = await lines()
  t.match(first, /\d\d:\d\d:\d\d\.\d{3}.* .*WARN.*Retrying\..*"request_id":"req_1","count":2/)
  t.match(rest.join('\n'), /^ +err: .*^ +Error: gone/ms)
})

t.test('what was logged last is written when the process ends, by exit or by an exception', async (t) => {
  const module = new URL('../../../src/telemetry/log.ts', import.meta.url)
  const run = (end: string) =>
    spawnSync(process.execPath, [
      '--input-type=module-typescript',
      '-e',
      `import { createLog } from ${JSON.stringify(module.href)}
       const log = createLog({ level: 'info' })
       for (let i = 0; i < 500; i++) log.info({ i }, 'Working.')
       log.fatal({}, 'The last line.')
       ${end}`,
    ]).stderr.toString()
  for (const end of ['process.exit(3)', 'throw new Error("crash")', '']) {
    const stderr = run(end)
    t.match(stderr, /The last line\./, end)
    t.equal(stderr.match(/Working\./g)?.length, 500, end)
  }
})

t.test('of secrets that live shortly the last ones are hidden', async (t) => {
  const { log, lines } = logTo(t)
  const tokens = Array.from(
    { length: 65 },
    (_, index) => `short-lived ${index} ${randomBytes(6).toString('hex')}`,
  )
  for (const token of tokens) log.hideRecent(token)
  log.info({ quoted: tokens.at(-1) }, `quoted ${tokens[1]}`)
  log.info({}, `forgotten ${tokens[0]}`)
  const text = JSON.stringify(await lines())
  t.notMatch(text, tokens.at(-1)!)
  t.notMatch(text, tokens[1]!)
  t.match(text, tokens[0]!)
})
