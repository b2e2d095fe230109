/** Renews the picture of the console in the README: the calls of a minute of the demonstration, in both themes. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parse } from 'yaml'
import { parseCredits } from '../../schemas/money.ts'
import { signIn } from '../../test/support/manage.ts'
import { endAll } from '../harness/children.ts'
import { ROOT } from '../harness/machine.ts'
import { enterWorkFolder } from '../harness/work-folder.ts'
import { type Console, withConsole } from './service.ts'

const SECONDS = 60
const MS_PER_SECOND = 1000
const PAGE_BOUND_MS = 120_000
/** Programs with a key each, the models that they call, and how many calls they begin in a second at most. */
const PROGRAMS = [
  { name: 'support bot', models: ['demo-chat', 'sonata-small'], mostCalls: 3 },
  { name: 'web app', models: ['sonata-large', 'ballad-small', 'demo-cut'], mostCalls: 2 },
  { name: 'nightly report', models: ['ballad-large', 'demo-broken'], mostCalls: 1 },
] as const
const QUESTION = 'What does a tollgate do, and who pays for it?'

async function makeCalls(baseUrl: string, keys: readonly string[]): Promise<void> {
  const call = (key: string, model: string) =>
    fetch(`${baseUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, max_tokens: 400, messages: [{ role: 'user', content: QUESTION }] }),
    }).then(
      (response) => response.text(),
      // An answer that breaks off is part of the picture.
      () => '',
    )
  const answers: Promise<string>[] = []
  for (let second = 0; second < SECONDS; second += 1) {
    for (const [at, { models, mostCalls }] of PROGRAMS.entries())
      for (let count = (second * (at + 3)) % (mostCalls + 1); count > 0; count -= 1)
        answers.push(call(keys[at]!, models[(second + count) % models.length]!))
    await sleep(MS_PER_SECOND)
  }
  await Promise.all(answers)
}

async function takePictures({ baseUrl, database, browser }: Console): Promise<void> {
  const user = await database.users.create({
    email: 'ada@example.com',
    name: 'Ada',
    installationRole: null,
    credit: parseCredits('10000'),
  })
  const { cookie } = await signIn({ baseUrl, database }, { user })
  const keys: string[] = []
  for (const { name } of PROGRAMS)
    keys.push((await database.keys.create({ accountId: user.accountId, name })).raw)
  const from = new Date().toISOString()
  await makeCalls(baseUrl, keys)
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, timezoneId: 'UTC' })
  const [name = '', value = ''] = cookie.split('=', 2)
  await context.addCookies([{ name, value, url: baseUrl }])
  context.setDefaultTimeout(PAGE_BOUND_MS)
  const page = await context.newPage()
  const window = new URLSearchParams({ from, to: new Date().toISOString() })
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.goto(`${baseUrl}/console/calls?${window}`)
    await page.getByRole('row').nth(12).waitFor()
    await page.locator('canvas').nth(2).waitFor()
    await page.screenshot({ path: join(ROOT, 'docs', `console-${colorScheme}.png`), animations: 'disabled' })
  }
}

const work = await enterWorkFolder()
try {
  const demonstration = readFileSync(join(ROOT, 'src', 'config', 'demonstration.yaml'), 'utf8')
  await withConsole(work.folder, parse(demonstration), takePictures)
} finally {
  await endAll()
  work.leave()
}
